"""Encodes WordPiece many times faster with nanotoken (extra `fast`).

libraries.py uses it where possible. The ids are the same:
tests/data/tokenizers/test_fast_wordpiece.py compares the two. Tokenizers that
nanotoken doesn't support, and other releases of it, are left to `tokenizers`.
"""

import importlib.metadata
import itertools
import json
from collections.abc import Callable, Mapping

import numpy as np

RELEASE = "0.1.0"  # The release that the tests compare.

# Words in each of nanotoken's two caches. They take 16 MB per process and give
# two thirds of the speed of the default size, which takes 130 MB.
CACHE = 1 << 17


def make_encoder(
  definition: dict, vocab: Mapping[str, int]
) -> Callable[[list[str]], list[np.ndarray]] | None:
  """Returns a function, texts -> ids int32 [n] of each; None if unsupported.

  It runs on one thread and encodes the spellings of special tokens as text.

  Args:
    definition: content of a tokenizer.json.
    vocab: token -> id in `tokenizers`, which renumbers added tokens if their
      ids in the file don't fit.
  """
  try:
    import nanotoken
  except ImportError:
    return None
  if importlib.metadata.version("nanotoken") != RELEASE:
    return None
  tokens = definition.get("added_tokens", [])
  plain = [token for token in tokens if not token["special"]]
  if any(vocab[token["content"]] != token["id"] for token in plain):
    return None
  definition = definition | {"added_tokens": plain, "post_processor": None}
  nanotoken.set_cache_entries(CACHE)
  try:
    library = nanotoken.Tokenizer.from_json(json.dumps(definition))
  except nanotoken.UnsupportedTokenizerError:
    return None

  def encode_batch(texts: list[str]) -> list[np.ndarray]:
    batch = library.encode_batch(
      texts, add_special_tokens=False, parallel=False
    )
    ids, offsets = batch.ids.astype(np.int32), batch.offsets.tolist()
    return [ids[a:b] for a, b in itertools.pairwise(offsets)]

  return encode_batch
