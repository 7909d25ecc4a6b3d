"""Fine-tuning: a folder for each task, all trained by the same loop."""
