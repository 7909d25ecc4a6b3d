"""Prepares corpora in this process, without output; reads their files."""

import pathlib

import numpy as np

from maskedlm.data.prepare import local, prepare
from maskedlm.pretraining.config import typed

SENTENCE = "a cat and the dog sat on it then it ran under a big red mat hill"
WORDS = SENTENCE.split()


def make_text(seed, num_documents):
  """Returns documents of one to nine sentences, one per line."""
  rng = np.random.default_rng(seed)
  documents = [
    [
      " ".join(rng.choice(WORDS, rng.integers(2, 12))) + "."
      for _ in range(rng.integers(1, 10))
    ]
    for _ in range(num_documents)
  ]
  return "\n\n".join("\n".join(lines) for lines in documents) + "\n"


def silent(line):
  pass


def prepare_corpus(config, path, runner=local.run, *, log=silent):
  config = typed(config)
  return prepare.prepare(config, path, log=log, run=runner)


def read_files(path):
  """Returns name -> content of all files under a folder."""
  root = pathlib.Path(path)
  return {
    str(file.relative_to(root)): file.read_bytes()
    for file in root.rglob("*")
    if file.is_file()
  }
