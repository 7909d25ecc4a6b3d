"""Fine-tuning: one file is one kind of task, all through the one loop."""
