"""Draws pictures of models and runs.

Each module draws one picture; figure.py has shared functions. matplotlib, an
optional dependency, is only imported when needed.
"""
