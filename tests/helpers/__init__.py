"""Shared by several tests: configs, corpora, encoders, stand-ins."""
