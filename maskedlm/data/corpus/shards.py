"""Writes and maps the shards of a corpus, each of three .npy vectors.

NAME.tokens.npy holds the ids of whole documents, NAME.sentences.npy each
sentence's first token, and NAME.documents.npy each document's first sentence,
both counted within the shard. store.py joins the shards of a split.
"""

import contextlib
import hashlib
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.core.open_file import open_file
from maskedlm.data.corpus import memory_map
from maskedlm.runtime import output_files

SPLITS = ("train", "heldout")
COLUMNS = ("tokens", "sentences", "documents")  # The files of a shard.
START_DTYPE = np.dtype("<u4")  # For starts, which count within a shard.
_DTYPES = tuple(map(np.dtype, ("<u2", "<u4", "<i8")))  # Of all files.
HEADER = 128  # Bytes.
TOKENS = ".tokens.npy"  # The end of the names of files of tokens.
HASHED = 1 << 16  # Bytes of a tokens.npy that share a hash (block_hashes).
DIGEST = hashlib.sha256().digest_size  # Bytes.
# What helps against any damaged file of a corpus.
REMEDY = (
  "restore it from a copy, or remove the corpus and prepare or copy it again."
)
MAX_TOKENS = 1 << 32  # Of a shard; a document has fewer (reader.MAX_DOCUMENT).
BLOCK = 1 << 22  # Elements read at a time.


def token_dtype(vocab_size: int) -> np.dtype:
  """Returns uint16 if every id fits, else uint32; little-endian."""
  return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def column_dtypes(vocab_size: int) -> dict[str, np.dtype]:
  """Returns column -> the dtype of its file."""
  starts = dict.fromkeys(COLUMNS, START_DTYPE)
  return starts | {"tokens": token_dtype(vocab_size)}


def write_shards(
  folder: str | os.PathLike[str],
  documents: Iterable[tuple[str, list[np.ndarray]]],
  *,
  vocab_size: int,
  shard_tokens: int,
) -> dict[str, dict]:
  """Streams documents into the shards of each split, in a folder.

  Args:
    folder, vocab_size: where the files are written, and V.
    documents: pairs (split, token ids of each sentence).
    shard_tokens: a shard is closed before the document that would take it
      beyond this number.

  Returns:
    split -> its numbers of tokens, sentences and documents, and "shards": the
    same numbers for each shard.
  """
  done: dict[str, list[dict[str, int]]] = {split: [] for split in SPLITS}
  current: dict[str, _Shard] = {}
  with contextlib.ExitStack() as files:
    for split, sentences in documents:
      length = sum(len(sentence) for sentence in sentences)
      shard = current.get(split)
      if shard and shard.counts["tokens"] + length > shard_tokens:
        done[split].append(current.pop(split).close())
      if split not in current:
        prefix = os.path.join(folder, shard_name(split, len(done[split])))
        current[split] = _Shard(prefix, vocab_size, files)
      current[split].add(sentences)
    for split, shard in current.items():
      done[split].append(shard.close())
  return split_totals(done)


def split_totals(done: Mapping[str, list[dict[str, int]]]) -> dict[str, dict]:
  """Returns write_shards's result from the numbers of each split's shards."""
  return {
    split: {
      "shards": shards,
      **{column: sum(shard[column] for shard in shards) for column in COLUMNS},
    }
    for split, shards in done.items()
  }


class _Shard:
  """Three growing .npy files, whose headers `close` completes."""

  def __init__(self, prefix: str, vocab_size: int, files: contextlib.ExitStack):
    self.vocab_size = vocab_size
    self.dtypes = column_dtypes(vocab_size)
    self.counts = dict.fromkeys(COLUMNS, 0)
    self.files = {}
    for column, dtype in self.dtypes.items():
      name = f"{prefix}.{column}.npy"
      self.files[column] = files.enter_context(open(name, "wb"))  # noqa: SIM115
      self.files[column].write(header_bytes(dtype, 0))

  def add(self, sentences: list[np.ndarray]):
    tokens = np.concatenate(sentences)
    starts = offsets(list(map(len, sentences)))
    # Bugs, not user errors; later they would look like data.
    assert np.all(np.diff(starts) > 0), "empty sentence"
    assert tokens.min() >= 0 and tokens.max() < self.vocab_size, "token id"
    self._append("documents", np.array([self.counts["sentences"]]))
    self._append("sentences", self.counts["tokens"] + starts[:-1])
    self._append("tokens", tokens)

  def _append(self, column: str, values: np.ndarray):
    self.files[column].write(values.astype(self.dtypes[column]).tobytes())
    self.counts[column] += len(values)

  def close(self) -> dict[str, int]:
    for column, file in self.files.items():
      file.seek(0)
      file.write(header_bytes(self.dtypes[column], self.counts[column]))
      output_files.sync(file)
      file.close()
    return self.counts


def shard_name(split: str, index: int) -> str:
  return f"{split}-{index:05d}"


def header_bytes(dtype: np.dtype, length: int) -> bytes:
  """Returns the .npy header (version 1.0) of a vector, always 128 bytes.

  It is the one numpy writes, spelled out so that it doesn't depend on the
  version of numpy.
  """
  fields = f"'descr': '{dtype.str}', 'fortran_order': False"
  text = f"{{{fields}, 'shape': ({length},), }}".ljust(117) + "\n"
  return b"\x93NUMPY\x01\x00v\x00" + text.encode("ascii")


def offsets(counts: Sequence[int] | np.ndarray) -> np.ndarray:
  """Returns the running totals from 0, int64: [3, 2] -> [0, 3, 5]."""
  return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def load_array(path: str, name: str) -> np.ndarray:
  """Returns the memory-mapped vector of PATH/NAME.npy.

  Raises:
    CorpusError: the file is not such a vector. numpy would read a damaged
      header as another type or size, or raise errors of many types.
    OSError: the file can't be read, or is not a regular file.
  """
  with open_file(os.path.join(path, f"{name}.npy")) as file:
    header = file.read(HEADER)
    num_bytes = os.fstat(file.fileno()).st_size - HEADER
    for dtype in _DTYPES:
      size, rest = divmod(num_bytes, dtype.itemsize)
      if not rest and header == header_bytes(dtype, size):
        return memory_map.map_vector(file, dtype, size, offset=HEADER)
  raise CorpusError(f"{path}: the header of {name}.npy is damaged; {REMEDY}")


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
  """Yields the array [n] in slices of at most BLOCK elements."""
  for begin in range(0, len(array), BLOCK):
    yield array[begin : begin + BLOCK]


def tokens_file(split: str, index: int) -> str:
  """Returns the name of a shard's file of tokens."""
  return f"{shard_name(split, index)}{TOKENS}"


def block_hashes(path: str) -> bytes:
  """Returns the SHA-256 of each HASHED bytes of a file, one after the other.

  By them, a part of a file can be checked without the rest (streamed.py).
  """
  with open(path, "rb") as file:
    parts = iter(lambda: file.read(HASHED), b"")
    return b"".join(hashlib.sha256(part).digest() for part in parts)


def count_ids(tokens: np.ndarray, vocab_size: int) -> np.ndarray:
  """Returns how often each id occurs in tokens [n]: [V] int64."""
  total = np.zeros(vocab_size, np.int64)
  for block in blocks(tokens):
    total += np.bincount(block, minlength=vocab_size)
  return total


def count_tokens(path: str, num_shards: int, vocab_size: int) -> np.ndarray:
  """Returns how often each id occurs in the train shards: [V] int64."""
  total = np.zeros(vocab_size, np.int64)
  for index in range(num_shards):
    tokens = load_array(path, f"{shard_name('train', index)}.tokens")
    total += count_ids(tokens, vocab_size)
  return total


def shard_problems(
  path: str,
  name: str,
  *,
  counts: Mapping[str, int],
  vocab_size: int,
  special_ids: Collection[int] = (),
) -> Iterator[str]:
  """Yields the problems of a shard whose checksums are right.

  `counts` are its numbers of tokens, sentences and documents; no text has one
  of special_ids.
  """
  arrays = {c: load_array(path, f"{name}.{c}") for c in COLUMNS}
  for column, array in arrays.items():
    if array.shape != (counts[column],):
      yield f"{column}.npy: shape {array.shape}, expected ({counts[column]},)."
  for column, of in (("sentences", "tokens"), ("documents", "sentences")):
    starts = arrays[column]
    if len(starts) == 0 or starts[0] != 0:
      yield f"{column}.npy: the first start is not 0."
    elif not np.all(starts[:-1] < starts[1:]):
      yield f"{column}.npy: starts do not increase."
    elif starts[-1] >= len(arrays[of]):
      yield f"{column}.npy: a start is past the last of the {of}."
  highest = max((int(b.max()) for b in blocks(arrays["tokens"])), default=0)
  if highest >= vocab_size:
    yield f"tokens.npy: id {highest}, but the vocabulary has {vocab_size}."
    return
  is_special = np.zeros(vocab_size, bool)
  is_special[list(special_ids)] = True
  for begin, block in zip(
    itertools.count(0, BLOCK), blocks(arrays["tokens"]), strict=False
  ):
    places = np.flatnonzero(is_special[block])
    if len(places):
      yield (
        f"tokens.npy: token {begin + places[0]} is id {block[places[0]]}, a "
        "special token, which no text has."
      )
      return
