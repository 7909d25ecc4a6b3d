"""Vectors of an encoder, and what can be learnt from them.

inputs.py reads texts, units.py and rows.py cut them into what the encoder
reads, vectors.py makes their vectors. The other files work on vectors.
"""
