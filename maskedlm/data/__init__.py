"""Turns raw text into numpy batches on the host; never imports jax."""
