"""Scores texts by a pretrained model: how probable they are, what follows."""
