"""Which examples a run has: labelled files -> those to train on and to score.

The same whatever the seed, so that runs compare.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data import hashing
from maskedlm.finetune import data_files
from maskedlm.finetune.contract import Example


def split(
  kind, options, data: ConfigDict
) -> tuple[list[Example], list[Example]]:
  """(train, dev) as config.data says; dev may be held out of train.

  Raises:
    ConfigError: there is no data.train.
    DataError: what the kind finds in a file; no example is left for one.
  """
  if not data.train:
    raise ConfigError(
      "data.train is empty: give a labelled file, --config.data.train=FILE."
    )
  examples = data_files.read(kind, data.train, options)
  if data.dev:
    dev = data_files.read(kind, data.dev, options)
  else:
    group = getattr(kind, "group", None)
    keys = [group(example) for example in examples] if group else ()
    if len(set(keys)) < 2:  # Nothing to divide by: each goes alone.
      keys = range(len(examples))
    share = np.array([float(hashing.uniform(0, "dev", key)) for key in keys])
    held = share < data.dev_share
    dev = [x for x, is_held in zip(examples, held, strict=True) if is_held]
    examples = [x for x, h in zip(examples, held, strict=True) if not h]
  for name, part in (("train", examples), ("dev", dev)):
    if not part:
      raise DataError(
        f"{data[name] or data.train}: no example is left for {name}; give "
        "more of them, or change --config.data.dev_share."
      )
  return _draw(examples, data.max_train), _draw(dev, data.max_dev)


def _draw(examples: list[Example], count: int) -> list[Example]:
  """`count` of them, in their order; 0 = all."""
  if not 0 < count < len(examples):
    return examples
  place = hashing.permute(
    np.arange(len(examples)), len(examples), hashing.bits(0, "draw")
  )
  return [x for x, p in zip(examples, place, strict=True) if p < count]


def fingerprint(*parts: Sequence[Example]) -> str:
  """SHA-256 of the examples, whatever files they came from."""
  digest = hashlib.sha256()
  for part in parts:
    for example in part:
      if hasattr(example, "where"):
        example = example._replace(where="")
      digest.update(repr(example).encode("utf-8", "surrogatepass"))
    digest.update(b"\0")
  return digest.hexdigest()
