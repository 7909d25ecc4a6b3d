"""Similarity of two words in context, and the WiC task."""
