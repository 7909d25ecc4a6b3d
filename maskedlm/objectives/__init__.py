"""Pretraining objectives: one module each, found by its name."""
