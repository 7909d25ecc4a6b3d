"""Heads of fine-tuning: of rows, words, spans and arcs, and their decoding."""
