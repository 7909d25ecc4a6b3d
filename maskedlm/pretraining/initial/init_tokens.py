"""Starts pretraining with token embeddings from word vectors.

config.init_tokens names a file of word2vec, GloVe or fastText
(data/word_vectors/files.py). The token of a whole word that the file has starts
from that word's vector; other tokens, such as parts of words, and all other
parameters start at random. One factor scales all vectors, so that they are
about as long as random rows.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.data.tokenizers.vocabulary_map import token_spellings
from maskedlm.data.word_vectors import files
from maskedlm.data.word_vectors.files import WordVectors

_TABLE = "encoder/embeddings/token/embedding"


def check(config: Any, params: Params) -> None:
  """Checks config.init_tokens for fresh parameters, or their shapes.

  Raises:
    ConfigError: there is init_from, too; the model has no table of tokens, or
      one of another width; or there is no such file.
    DataError: the file's first word can't be read.
  """
  path = config.init_tokens
  if not pathlib.Path(path).is_file():
    raise ConfigError(f"init_tokens={path}: no such file.")
  if config.init_from:
    raise ConfigError(
      f"init_tokens={path} beside init_from={config.init_from}, which has "
      "embeddings of its own: leave one of them out."
    )
  table = traverse_util.flatten_dict(params, sep="/").get(_TABLE)
  if table is None:
    raise ConfigError(
      f"init_tokens={path}: this model has no embeddings of tokens; leave it "
      "out."
    )
  first = files.read_word_vectors(path, most=1, log=lambda line: None)
  D, E = first.values.shape[1], table.shape[1]
  if D != E:
    raise ConfigError(
      f"init_tokens={path} has vectors of {D} numbers, but this model's "
      f"embeddings have {E}: set model.embedding_width={D}, or model.width."
    )


def initial_tokens(
  path: str, tokenizer: Tokenizer, *, log: Callable[[str], None]
) -> Callable[[Params], Params]:
  """Returns start_from of loop.run: fresh parameters -> those to start from.

  Raises (when the result is called):
    ConfigError, DataError: the file can't be read, or has no such word.
  """

  def begin(fresh: Params) -> Params:
    vectors = files.read_word_vectors(path, log=log)
    places = match_words(tokenizer, vectors)
    if not places:
      raise ConfigError(
        f"init_tokens={path}: none of its words, such as {vectors.words[0]!r}, "
        "is a token of the tokenizer: are they of one language?"
      )
    log(
      f"token embeddings of {path}: {len(places):,} of "
      f"{tokenizer.vocab_size:,} tokens; initialized: the others"
    )
    flat = traverse_util.flatten_dict(fresh, sep="/")
    flat[_TABLE] = replace_rows(flat[_TABLE], places, vectors.values)
    return traverse_util.unflatten_dict(flat, sep="/")

  return begin


def match_words(tokenizer: Tokenizer, found: WordVectors) -> dict[int, int]:
  """Returns {id: index in found.words} of the tokens that are whole words.

  If no word has a capital, tokens are compared in lower case.
  """
  index = {word: i for i, word in enumerate(found.words)}
  lowercase = not any(word != word.lower() for word in found.words)
  places = {}
  for token, (begins_word, text) in token_spellings(tokenizer).items():
    word = text.lower() if lowercase else text
    if begins_word and word in index:
      places[token] = index[word]
  return places


def replace_rows(
  table: jax.Array, places: dict[int, int], values: np.ndarray
) -> jax.Array:
  """Returns the random table [V, E] with rows from `values` [n, E], scaled.

  `places` has {row of the table: row of values}. The root mean square of the
  values used becomes the table's.
  """
  rows, of_values = (np.array(list(x)) for x in (places, places.values()))
  used = values[of_values]
  size = max(np.sqrt(np.mean(np.float64(used) ** 2)), 1e-12)
  spread = jnp.sqrt(jnp.mean(jnp.square(table)))
  return table.at[rows].set(used / size * spread)
