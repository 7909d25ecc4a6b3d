"""Runs on the device: encoder, heads, losses, masking. Never imports data."""
