"""Pictures of models and runs.

Each module draws one picture; figure.py has what they share and is the only
one that imports matplotlib, an optional dependency, when needed.
"""
