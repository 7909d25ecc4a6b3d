"""Measures pretrained models on text."""
