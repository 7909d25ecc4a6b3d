"""Trained tokenizers of each kind."""

import pytest

from helpers.tokenizer_texts import KINDS, sentences
from maskedlm.data.tokenizers.tokenizer import train_tokenizer


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
  """Maps (kind, lowercase) to a tokenizer and the directory of its files."""
  made = {}
  for kind, lowercase in KINDS:
    tokenizer = train_tokenizer(
      sentences(), kind=kind, vocab_size=1009, lowercase=lowercase
    )
    folder = tmp_path_factory.mktemp(f"{kind}{lowercase}")
    tokenizer.save(folder)
    made[kind, lowercase] = tokenizer, folder
  return made
