"""Computes and analyses vectors of tokens, words and texts."""
