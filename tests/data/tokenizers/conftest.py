"""Trained tokenizers of each kind."""

import pytest

from helpers import tokenizer_kinds
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


@pytest.fixture(scope="session")
def made(tmp_path_factory):
  """Maps tokenizer_kinds.NAMES to (tokenizer, library's ids), when asked."""
  found = {}

  def get(name):
    if name not in found:
      folder = tmp_path_factory.mktemp("tokenizer")
      found[name] = tokenizer_kinds.make(name, folder)
    return found[name]

  return get
