"""Code for the device: encoder, heads, losses, masking; never imports data."""
