"""Computes vectors of tokens, words and texts, and measures on them."""
