"""Merges small shards into shards of equal size, each independently.

This is the last step of a Beam run, after workers have encoded the text in
pieces: the documents of all pieces, in their order, become the shards that
shards.write_shards would have made from one stream. `plan_shards` chooses the
documents of each shard, `write_shard` writes one.
"""

import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.data.corpus import manifest, shards
from maskedlm.runtime import output_files


class ShardSlice(NamedTuple):
  """Documents begin to end - 1 of a small shard."""

  folder: str
  name: str  # Such as train-00000.
  begin: int
  end: int


def plan_shards(
  small_shards: Iterable[tuple[str, str]], *, shard_tokens: int
) -> Iterator[list[ShardSlice]]:
  """Yields the slices that make up each shard.

  A shard is closed before the document that would take it beyond shard_tokens.
  `small_shards` are (folder, name) of each small shard, in order.
  """
  slices, used = [], 0
  for folder, name in small_shards:
    tokens, sentences, documents = _open(folder, name)
    ends = sentences[documents[1:]].astype(np.int64)
    ends = np.append(ends, len(tokens))
    begin, done = 0, 0  # Document, and tokens before it.
    while begin < len(documents):
      room = done + shard_tokens - used
      end = int(np.searchsorted(ends, room, side="right"))
      if end <= begin and not used:
        end = begin + 1  # A document of more than shard_tokens.
      if end > begin:
        slices.append(ShardSlice(folder, name, begin, end))
        used += int(ends[end - 1]) - done
        begin, done = end, int(ends[end - 1])
      if begin < len(documents):
        yield slices
        slices, used = [], 0
  if slices:
    yield slices


def write_shard(
  folder: str, name: str, slices: Iterable[ShardSlice], *, vocab_size: int
) -> tuple[dict[str, int], dict[str, dict], np.ndarray]:
  """Writes a shard to a folder; its files appear when they are complete.

  Returns:
    The shard's numbers of tokens, sentences and documents; bytes and sha256 of
    each file by name; counts [V] of its tokens.
  """
  counts = np.zeros(vocab_size, np.int64)
  arrays: dict[str, list[np.ndarray]] = {x: [] for x in shards.COLUMNS}
  total = dict.fromkeys(shards.COLUMNS, 0)
  for source in slices:
    tokens, sentences, documents = _open(source.folder, source.name)
    first, last = _bounds(documents, source.begin, source.end, len(sentences))
    low, high = _bounds(sentences, first, last, len(tokens))
    starts = sentences[first:last].astype(np.int64) - low
    firsts = documents[source.begin : source.end].astype(np.int64) - first
    arrays["tokens"].append(tokens[low:high])
    arrays["sentences"].append(starts + total["tokens"])
    arrays["documents"].append(firsts + total["sentences"])
    for column in shards.COLUMNS:
      total[column] += len(arrays[column][-1])
    counts += shards.count_ids(tokens[low:high], vocab_size)
  files = {}
  for column, dtype in shards.column_dtypes(vocab_size).items():
    file = f"{name}.{column}.npy"
    files[file] = _write(pathlib.Path(folder, file), arrays[column], dtype)
  return total, files, counts


def _bounds(starts, begin: int, end: int, size: int) -> tuple[int, int]:
  """Returns the range that elements begin to end - 1 cover, at most to size."""
  stop = int(starts[end]) if end < len(starts) else size
  return int(starts[begin]), stop


def _write(
  path: pathlib.Path, arrays: list[np.ndarray], dtype: np.dtype
) -> dict:
  """Writes the arrays as one .npy vector; returns its bytes and sha256."""
  with output_files.whole_file(path) as file:
    file.write(shards.header_bytes(dtype, sum(map(len, arrays))))
    for array in arrays:
      for block in shards.blocks(array):
        file.write(block.astype(dtype).tobytes())
  return manifest.file_entry(path)


def _open(folder: str, name: str) -> tuple[np.ndarray, ...]:
  """Returns the memory-mapped tokens, sentences, documents of a small shard."""
  return tuple(
    shards.load_array(folder, f"{name}.{column}") for column in shards.COLUMNS
  )
