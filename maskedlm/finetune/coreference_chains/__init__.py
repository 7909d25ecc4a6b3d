"""Coreference chains: which mentions of a document are about the same thing."""
