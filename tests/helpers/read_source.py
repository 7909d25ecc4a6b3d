"""Reads a source as a whole or in pieces, with its report."""

from collections import Counter

from maskedlm.data.sources import reader

INVALID = "invalid UTF-8 bytes or lone surrogates replaced by U+FFFD"


def read(source, text_field="text"):
  """Returns (documents, report); the report has no zeros."""
  report = Counter()
  found = list(
    reader.read_documents(source, text_field=text_field, report=report)
  )
  assert all(count > 0 for count in report.values())
  return found, dict(report)


def read_pieces(source, text_field="text", num_bytes=1):
  """Returns (pieces, their documents, report)."""
  pieces = reader.list_pieces(
    source, text_field=text_field, num_bytes=num_bytes
  )
  report, found = Counter(), []
  for piece in pieces:
    found += reader.read_documents(
      source, piece=piece, text_field=text_field, report=report
    )
  return pieces, found, dict(report)
