"""Splits labelled files into the examples to train on and those to score.

The split does not depend on the seed, so that runs can be compared.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data import hashing
from maskedlm.data.labelled import bad_rows
from maskedlm.finetune import data_files
from maskedlm.finetune.contract import Example, FinetuneTask
from maskedlm.finetune.options import DataOptions


def split_examples(
  task: FinetuneTask, data: DataOptions
) -> tuple[list[Example], list[Example]]:
  """Returns the training and the development set that config.data describes.

  Raises:
    ConfigError: data.train is empty.
    DataError: a file can't be read, or one of the sets would be empty.
  """
  if not data.train:
    raise ConfigError(
      "data.train is empty: give a labelled file, --config.data.train=FILE."
    )

  def read(source: str) -> list[Example]:
    with bad_rows.left_out(source, skip=data.skip_bad):
      return data_files.read_examples(task, source)

  examples = read(data.train)
  if data.dev:
    dev = read(data.dev)
  else:
    keys: Sequence = [*map(task.split_key, examples)] if task.split_key else []
    if len(set(keys)) < 2:  # One group can't be split: split by example.
      keys = range(len(examples))
    held = [hashing.uniform(0, "dev", key) < data.dev_share for key in keys]
    dev = [x for x, is_held in zip(examples, held, strict=True) if is_held]
    examples = [x for x, h in zip(examples, held, strict=True) if not h]
  for name, part in (("train", examples), ("dev", dev)):
    if not part:
      raise DataError(
        f"{getattr(data, name) or data.train}: no example is left for {name}; "
        "give more of them, or change --config.data.dev_share."
      )
  return _draw(examples, data.max_train), _draw(dev, data.max_dev)


def _draw(examples: list[Example], count: int) -> list[Example]:
  """Returns `count` random examples, in their order; all if `count` is 0."""
  if not 0 < count < len(examples):
    return examples
  place = hashing.permute(
    np.arange(len(examples)), len(examples), hashing.bits(0, "draw")
  )
  return [x for x, p in zip(examples, place, strict=True) if p < count]


def fingerprint(*parts: Sequence[Example]) -> str:
  """Returns the SHA-256 of the examples, whatever files they came from."""
  digest = hashlib.sha256()
  for part in parts:
    for example in part:
      if hasattr(example, "where"):
        example = example._replace(where="")
      digest.update(repr(example).encode("utf-8", "surrogatepass"))
    digest.update(b"\0")
  return digest.hexdigest()
