"""Pictures of models and runs; canvas.py holds what they share.

A file is a picture: its command, and how it is drawn. What is measured for it
is in maskedlm/analysis. Only canvas.py imports matplotlib, when it is needed.
"""
