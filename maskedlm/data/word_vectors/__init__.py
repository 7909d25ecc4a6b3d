"""Word vectors without context, and the files that hold them."""
