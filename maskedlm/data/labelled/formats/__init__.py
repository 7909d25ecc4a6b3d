"""Formats of other people's files: what a row holds, and what breaks it."""
