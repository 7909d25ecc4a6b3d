"""Imports word vectors as a workdir: an encoder without layers.

Its vectors are a table of words, whatever the context, so that every verb and
task that takes a model takes word2vec and GloVe, too. The tokenizer is a
WordPiece of whole words: it splits text at spaces and punctuation, as BERT's
does, and a word that the file lacks is [UNK]. [UNK] and the other special
tokens have the vector 0, unless the file has them.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import first_names
from maskedlm.core.errors import DataError
from maskedlm.data.tokenizers import tokenizer as tokenizers
from maskedlm.data.tokenizers import training, unreachable
from maskedlm.data.word_vectors import files, words
from maskedlm.data.word_vectors.files import WordVectors
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files, output_options
from maskedlm.training.checkpoints import write

MAX_POSITIONS = 512  # Tokens in a row; longer texts are read in windows.


class Imported(NamedTuple):
  """Facts about imported word vectors."""

  words: int
  width: int  # D.
  lowercase: bool  # Whether text is lowercased, as no word has a capital.


def import_word_vectors(
  path: str, out: pathlib.Path, *, most: int = 0, log: Callable[[str], None]
) -> Imported:
  """Reads a file of word vectors and writes the workdir `out`.

  Arguments are those of files.read_word_vectors. Lines are logged for words
  that are repeated, or that the tokenizer never makes of a text.

  Raises:
    ConfigError, DataError: the file can't be read.
    InteropError: `out` exists.
  """
  with output_options.new_folder(out) as unfinished:
    vectors = files.read_word_vectors(path, most=most, log=log)
    lowercase = not any(word != word.lower() for word in vectors.words)
    tokens, table = make_table(vectors)
    folder = unfinished / "tokenizer"
    definition = training.bert_json(
      tokens, lowercase=lowercase, normalization="", **words.NORMALIZER
    )
    folder.mkdir()
    output_files.write_text(folder / "tokenizer.json", definition)
    tokenizer = tokenizers.load_tokenizer(folder)
    tokenizer.save(folder)  # In the form that its sha256 refers to.
    cfg = make_config(len(tokens), vectors.values.shape[1])
    rows = cfg.padded_vocab_size - len(tokens)
    table = np.pad(table, ((0, rows), (0, 0)))
    write.write_workdir(
      unfinished,
      {"encoder": {"embeddings": {"token": {"embedding": table}}}},
      {"objective": "word_vectors", "encoder": dataclasses.asdict(cfg)},
      origin={"imported": {"word_vectors": str(path), "words": most}},
      corpus="imported",
      tokenizer=tokenizer.sha256,
      log=log,
    )
  if split := unreachable.unreachable_tokens(tokenizer):
    log(
      f"{path}: {len(split):,} of {len(vectors.words):,} words can't come out "
      "of any text, as it is split at punctuation: "
      + first_names(list(map(tokenizer.tokens, split)))
    )
  return Imported(len(vectors.words), vectors.values.shape[1], lowercase)


def make_table(vectors: WordVectors) -> tuple[list[str], np.ndarray]:
  """Returns the tokens, special ones first, and their vectors [V, D].

  Raises:
    DataError: a word begins with ##, which marks a part of a word.
  """
  if parts := [word for word in vectors.words if word.startswith("##")]:
    raise DataError(
      f"{len(parts):,} words begin with ##, such as {parts[0]!r}: in a "
      "WordPiece these are parts of words; rename or remove them."
    )
  row_of_word = {word: i for i, word in enumerate(vectors.words)}
  special = dict.fromkeys(training.WORDPIECE_SPECIALS)
  tokens = [*special, *(word for word in vectors.words if word not in special)]
  table = np.zeros((len(tokens), vectors.values.shape[1]), np.float32)
  of_token = [row_of_word.get(token, -1) for token in tokens]
  known = np.flatnonzero(np.array(of_token) >= 0)
  table[known] = vectors.values[[of_token[i] for i in known]]
  return tokens, table


def make_config(vocab_size: int, width: int) -> EncoderConfig:
  """Returns the architecture: a table, and nothing after it."""
  return EncoderConfig(
    vocab_size=vocab_size,
    width=width,
    num_layers=0,
    num_heads=1,
    mlp_width=1,
    max_positions=MAX_POSITIONS,
    dropout=0.0,
    attention_dropout=0.0,
    type_vocab_size=0,
    embedding_norm=False,
    position="alibi",  # It is in the attention, of which there is none.
    row_pool="mean",
    pair_types=1,
  )
