"""A corpus whose ids tell the places of its tokens."""

import pytest

from helpers.splits import make_corpus, numbered_documents


@pytest.fixture(scope="session")
def numbered(tmp_path_factory):
  """(60 documents, their corpus); some sentences are longer than a row."""
  documents = numbered_documents(6, 60, 25, 23)
  return documents, make_corpus(
    tmp_path_factory.mktemp("numbered"), documents, documents[40:], 3
  )
