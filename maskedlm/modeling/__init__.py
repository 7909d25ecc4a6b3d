"""Device side: encoder, heads, losses, corruption. Never imports corpus."""
