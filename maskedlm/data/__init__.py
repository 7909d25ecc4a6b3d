"""Host side: from raw text to numpy batches. Never imports jax."""
