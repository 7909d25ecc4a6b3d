"""WordPiece many times as fast, where nanotoken is installed (extra `fast`).

Beside tokenizer_libraries.py, which asks for it. It is only another way to the
same ids: tests/corpus/test_fast_wordpiece.py compares the two, and setup.py has
the version that was compared. What it can't do as `tokenizers` does it refuses.
"""

import itertools
import json
from collections.abc import Callable

import numpy as np

# Of words whose tokens it remembers, twice: 16 MB a process, two thirds of the
# speed that its own default has, of 130 MB.
CACHE = 1 << 17


def encoder(definition: dict) -> Callable[[list[str]], list[np.ndarray]] | None:
  """texts -> ids [n] int32 of each, on one thread; None where it can't.

  `definition` is a tokenizer.json's. Its special tokens are text here.
  """
  try:
    import nanotoken
  except ImportError:
    return None
  tokens = definition.get("added_tokens", [])
  plain = [token for token in tokens if not token["special"]]
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
