"""Shards of one size made of many small ones, each on its own.

The last step of beam.py: workers have encoded the text in pieces, and here
the pieces' documents, in their order, become the shards that
shards.write_shards would have made of the same stream. Read top-down:
which documents a shard has -> writing one.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.data.corpus import shards


class Run(NamedTuple):
  """Documents begin to end of a small shard."""

  folder: str
  name: str  # As train-00000.
  begin: int
  end: int


def layout(
  pieces: Iterable[tuple[str, str]], *, shard_tokens: int
) -> Iterator[list[Run]]:
  """The runs that each shard is made of; pieces: (folder, name) in order.

  A shard is closed before the document that would take it beyond shard_tokens.
  """
  runs, used = [], 0
  for folder, name in pieces:
    tokens, sentences, documents = _open(folder, name)
    ends = sentences[documents[1:]].astype(np.int64)
    ends = np.append(ends, len(tokens))
    begin, done = 0, 0  # Document, and tokens before it.
    while begin < len(documents):
      room = done + shard_tokens - used
      end = int(np.searchsorted(ends, room, side="right"))
      if end <= begin and not used:
        end = begin + 1  # It has more than shard_tokens.
      if end > begin:
        runs.append(Run(folder, name, begin, end))
        used += int(ends[end - 1]) - done
        begin, done = end, int(ends[end - 1])
      if begin < len(documents):
        yield runs
        runs, used = [], 0
  if runs:
    yield runs


def write(folder: str, name: str, runs: Iterable[Run], *, vocab_size: int):
  """Writes the shard NAME of these runs to a folder.

  Returns (the shard's three numbers, bytes and sha256 of each file by name,
  counts [V] of its tokens). A file appears when it is whole.
  """
  counts = np.zeros(vocab_size, np.int64)
  arrays = {column: [] for column in shards.COLUMNS}
  total = dict.fromkeys(shards.COLUMNS, 0)
  for run in runs:
    tokens, sentences, documents = _open(run.folder, run.name)
    first, last = _bounds(documents, run.begin, run.end, len(sentences))
    low, high = _bounds(sentences, first, last, len(tokens))
    arrays["tokens"].append(tokens[low:high])
    arrays["sentences"].append(
      sentences[first:last].astype(np.int64) - low + total["tokens"]
    )
    arrays["documents"].append(
      documents[run.begin : run.end].astype(np.int64)
      - first
      + total["sentences"]
    )
    for column in shards.COLUMNS:
      total[column] += len(arrays[column][-1])
    for block in shards.blocks(tokens[low:high]):
      counts += np.bincount(block, minlength=vocab_size)
  files = {
    f"{name}.{column}.npy": _write(
      os.path.join(folder, f"{name}.{column}.npy"), found, dtype
    )
    for (column, found), dtype in zip(
      arrays.items(),
      (shards.token_dtype(vocab_size), *[shards.START_DTYPE] * 2),
      strict=True,
    )
  }
  return total, files, counts


def _bounds(starts, begin: int, end: int, size: int) -> tuple[int, int]:
  """What elements begin to end span, where the last one ends at size."""
  last = int(starts[end]) if end < len(starts) else size
  return int(starts[begin]), last


def _write(path: str, arrays: list[np.ndarray], dtype: np.dtype) -> dict:
  digest, size = hashlib.sha256(), 0
  with shards.new_file(path) as file:

    def put(data):
      nonlocal size
      file.write(data)
      digest.update(data)
      size += len(data)

    put(shards.header_bytes(dtype, sum(map(len, arrays))))
    for array in arrays:
      for block in shards.blocks(array):
        put(block.astype(dtype).tobytes())
  return {"bytes": size, "sha256": digest.hexdigest()}


def _open(folder: str, name: str) -> tuple[np.ndarray, ...]:
  """tokens, sentences, documents of a small shard, mapped."""
  return tuple(
    np.asarray(shards.load_array(folder, f"{name}.{column}"))
    for column in shards.COLUMNS
  )
