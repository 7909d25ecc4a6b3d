"""The corpus on disk: memory-mapped tokens, sentence and document starts.

`prepare` writes it through `write_corpus`; `rows` and `batches` read it through
`open_corpus` and `take`. docs/corpus_format.md gives the format to the byte.
Read top-down: the arrays -> opening -> writing -> verifying.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.corpus import tokenizer as tokenizer_lib
from maskedlm.corpus.errors import CorpusError

FORMAT = "maskedlm corpus"
VERSION = 1
SPLITS = ("train", "heldout")
START_DTYPE = np.dtype("<u4")  # Of starts, which count within a shard.
MAX_SHARD_TOKENS = 1 << 32
_HEADER_BYTES = 128
_BLOCK = 1 << 22  # Elements or bytes looked at together when a file is read.


class Concat(NamedTuple):
  """Memory-mapped arrays read as one, element i of part p as value + base."""

  parts: tuple[np.ndarray, ...]
  starts: np.ndarray  # [parts + 1] int64: index of each part's first element.
  bases: np.ndarray  # [parts]: what is added to the values of each part.


class Split(NamedTuple):
  """One side of the corpus: T tokens in S sentences in Dn documents."""

  tokens: Concat  # [T]
  sentences: Concat  # [S + 1]: each sentence's first token, and T.
  documents: Concat  # [Dn + 1]: each document's first sentence, and S.


class Corpus(NamedTuple):
  """An open corpus; nothing but the token counts was read into memory."""

  path: str
  meta: dict
  fingerprint: str  # SHA-256 of what determines tokens, sentences, documents.
  train: Split
  heldout: Split
  token_counts: np.ndarray  # [V] int64, of the train split.
  tokenizer: tokenizer_lib.Tokenizer


def size(concat: Concat) -> int:
  """How many elements the parts hold together."""
  return int(concat.starts[-1])


def take(concat: Concat, indices) -> np.ndarray:
  """The elements at `indices`, any shape: int64 starts, or native token ids.

  Raises IndexError where an index is negative or past the end.
  """
  indices = np.asarray(indices)
  dtype = np.result_type(concat.parts[0], concat.bases)
  if indices.size == 0:
    return np.empty(indices.shape, dtype)
  low, high = indices.min(), indices.max()
  if low < 0 or high >= size(concat):
    raise IndexError(f"{low}..{high} is not within 0..{size(concat) - 1}")
  first, last = np.searchsorted(concat.starts, [low, high], side="right") - 1
  if first == last:  # Nearly always: one gather.
    values = concat.parts[first][indices - concat.starts[first]]
    return values + concat.bases[first]
  flat = indices.reshape(-1)
  part = np.searchsorted(concat.starts, flat, side="right") - 1
  order = np.argsort(part, kind="stable")
  bounds = np.searchsorted(part[order], np.arange(first, last + 2))
  values = np.empty(flat.size, dtype)
  for p, begin, end in zip(range(first, last + 1), bounds, bounds[1:]):
    here = order[begin:end]
    local = concat.parts[p][flat[here] - concat.starts[p]]
    values[here] = local + concat.bases[p]
  return values.reshape(indices.shape)


def token_dtype(vocab_size: int) -> np.dtype:
  """uint16 where every id fits, else uint32; little-endian."""
  return np.dtype("<u2") if vocab_size <= 1 << 16 else np.dtype("<u4")


def unigram_entropy(corpus: Corpus) -> float:
  """Entropy in nats of the train split's token frequencies: -sum p ln p."""
  counts = corpus.token_counts[corpus.token_counts > 0]
  p = counts / counts.sum()
  return float(-np.sum(p * np.log(p)))


# Opening


def open_corpus(path) -> Corpus:
  """Maps a finished corpus.

  Sizes are checked here, content only by `verify`. Raises CorpusError where
  the corpus is missing, unfinished, of another version, or has lost a file or
  part of one.
  """
  path = os.path.abspath(path)
  meta = _read_meta(path)
  for name, file in meta["files"].items():
    if problem := _size_problem(path, name, file["bytes"]):
      raise CorpusError(problem)
  try:
    train, heldout = (_open_split(path, meta, split) for split in SPLITS)
    token_counts = np.load(os.path.join(path, "token_counts.npy"))
  except OSError as error:
    if error.errno != errno.EMFILE:
      raise
    raise CorpusError(
      f"{path}: its {len(meta['files'])} files are more than this process may"
      " open; raise the limit (`ulimit -n`), or prepare with a larger"
      " corpus.shard_tokens."
    ) from error
  return Corpus(
    path=path,
    meta=meta,
    fingerprint=meta["fingerprint"],
    train=train,
    heldout=heldout,
    token_counts=token_counts,
    tokenizer=tokenizer_lib.load(os.path.join(path, "tokenizer")),
  )


def _read_meta(path: str) -> dict:
  """meta.json, checked against its own checksum."""
  if not os.path.isdir(path):
    raise CorpusError(
      f"{path}: no corpus is there; make one with `maskedlm prepare`."
    )
  name = os.path.join(path, "meta.json")
  if path.endswith(".tmp") or not os.path.exists(name):
    raise CorpusError(
      f"{path}: not a finished corpus; run `maskedlm prepare` again, or give"
      " the path of a finished one."
    )
  again = "remove the corpus and run `maskedlm prepare` again."
  try:
    with open(name, encoding="utf-8") as file:
      meta = json.load(file)
  except ValueError as error:
    raise CorpusError(f"{name}: damaged ({error}); {again}") from error
  if not isinstance(meta, dict) or meta.get("format") != FORMAT:
    raise CorpusError(f'{name}: "format" is not "{FORMAT}"; {again}')
  if meta.get("version") != VERSION:
    raise CorpusError(
      f"{path}: corpus format version {meta.get('version')}, but this maskedlm"
      f" reads version {VERSION}; {again}"
    )
  if meta.get("checksum") != _digest(_without(meta, "checksum")):
    raise CorpusError(f"{name}: damaged (its checksum differs); {again}")
  return meta


def _size_problem(path: str, name: str, expected: int) -> str:
  """One line where a file is missing or is not as long as recorded, else ''."""
  again = "restore it from a copy, or remove the corpus and prepare it again."
  try:
    actual = os.path.getsize(os.path.join(path, name))
  except FileNotFoundError:
    return f"{path}: {name} is missing; {again}"
  if actual == expected:
    return ""
  return f"{path}: {name} has {actual} bytes, expected {expected}; {again}"


def _open_split(path: str, meta: Mapping, split: str) -> Split:
  shards = meta["splits"][split]["shards"]

  def parts(column):
    # Plain views: fancy indexing is slower on np.memmap itself.
    names = [_shard_file(split, i, column) for i in range(len(shards))]
    return [
      np.asarray(np.load(os.path.join(path, name), mmap_mode="r"))
      for name in names
    ]

  # A split without documents has no shard, but its dtype all the same.
  dtype = np.dtype(meta["token_dtype"])
  tokens = parts("tokens") or [np.empty(0, dtype)]
  end = np.zeros(1, START_DTYPE)  # With its base: T, or S.
  return Split(
    tokens=_concat(tokens, np.zeros(len(tokens), dtype)),
    sentences=_concat(
      [*parts("sentences"), end], _offsets(s["tokens"] for s in shards)
    ),
    documents=_concat(
      [*parts("documents"), end], _offsets(s["sentences"] for s in shards)
    ),
  )


def _concat(parts: list[np.ndarray], bases: np.ndarray) -> Concat:
  return Concat(tuple(parts), _offsets(len(part) for part in parts), bases)


def _offsets(counts: Iterable[int]) -> np.ndarray:
  """[3, 2] -> [0, 3, 5], int64."""
  return np.cumsum([0, *counts], dtype=np.int64)


# Writing


def write_corpus(
  path,
  documents: Iterable[tuple[str, list[np.ndarray]]],
  *,
  tokenizer: tokenizer_lib.Tokenizer,
  shard_tokens: int,
  options: Mapping[str, Any],
  report: Counter,
) -> Corpus:
  """Writes documents, (split, token ids of each sentence), as a corpus.

  Documents keep their order within a split. A shard is closed before the
  document that would take it beyond shard_tokens. `options` and `report` are
  stored as they are (JSON); the report is read when the documents are
  exhausted, so it may count what happens meanwhile.

  All is written to PATH.tmp, which becomes PATH in one rename at the end: an
  interrupted write leaves no PATH, and a PATH.tmp left by a killed one is
  removed first. Raises CorpusError where PATH exists, where nothing is left to
  train on, and where the disk is full.
  """
  path = os.path.abspath(path)
  if os.path.lexists(path) and not _is_empty_directory(path):
    raise CorpusError(f"{path}: already there; remove it, or use another path.")
  work = path + ".tmp"
  shutil.rmtree(work, ignore_errors=True)
  try:
    os.makedirs(work)
    tokenizer.save(os.path.join(work, "tokenizer"))
    splits = _write_shards(work, documents, tokenizer.vocab_size, shard_tokens)
    if not splits["train"]["documents"]:
      raise CorpusError(
        f"{path}: there is no document to train on; check corpus.source and"
        " corpus.heldout_share."
      )
    counts = _count_tokens(work, splits["train"], tokenizer.vocab_size)
    with open(os.path.join(work, "token_counts.npy"), "wb") as file:
      file.write(_header(counts.dtype, len(counts)) + counts.tobytes())
      _sync(file)
    meta = _make_meta(work, tokenizer, splits, options, report)
    with open(os.path.join(work, "meta.json"), "w", encoding="ascii") as file:
      json.dump(meta, file, indent=1, sort_keys=True)
      _sync(file)
    os.rename(work, path)
  except OSError as error:
    raise CorpusError(
      f"{path}: could not be written ({error}); free some space there, or use"
      " another path."
    ) from error
  finally:
    shutil.rmtree(work, ignore_errors=True)
  return open_corpus(path)


def _is_empty_directory(path: str) -> bool:
  return os.path.isdir(path) and not os.listdir(path)


def _write_shards(work, documents, vocab_size: int, shard_tokens: int) -> dict:
  """Streams the documents into shards; returns each split's counts."""
  if not 0 < shard_tokens < MAX_SHARD_TOKENS:
    raise CorpusError(
      f"corpus.shard_tokens={shard_tokens} must be within"
      f" 1..{MAX_SHARD_TOKENS - 1}."
    )
  done = {split: [] for split in SPLITS}
  current = {}
  with contextlib.ExitStack() as files:
    for split, sentences in documents:
      length = sum(len(sentence) for sentence in sentences)
      shard = current.get(split)
      if shard and shard.counts["tokens"] + length > shard_tokens:
        done[split].append(current.pop(split).close())
      if split not in current:
        prefix = os.path.join(work, _shard_name(split, len(done[split])))
        current[split] = _Shard(prefix, vocab_size, files)
      current[split].add(sentences)
    for split, shard in current.items():
      done[split].append(shard.close())
  return {
    split: {
      "shards": shards,
      **{column: sum(shard[column] for shard in shards) for column in COLUMNS},
    }
    for split, shards in done.items()
  }


class _Shard:
  """Three .npy files that grow; their lengths are known at the close."""

  def __init__(self, prefix: str, vocab_size: int, files: contextlib.ExitStack):
    self.vocab_size = vocab_size
    self.dtypes = {
      "tokens": token_dtype(vocab_size),
      "sentences": START_DTYPE,
      "documents": START_DTYPE,
    }
    self.counts = dict.fromkeys(COLUMNS, 0)
    self.files = {}
    for column, dtype in self.dtypes.items():
      file = open(f"{prefix}.{column}.npy", "wb", buffering=1 << 18)  # noqa: SIM115
      file.write(_header(dtype, 0))
      self.files[column] = files.enter_context(file)

  def add(self, sentences: list[np.ndarray]):
    tokens = np.concatenate(sentences)
    starts = _offsets(len(sentence) for sentence in sentences)
    # Our own bugs, not the user's: nothing later could tell them from data.
    assert np.all(np.diff(starts) > 0), "empty sentence"
    assert 0 <= tokens.min() and tokens.max() < self.vocab_size, "token id"
    if len(tokens) >= MAX_SHARD_TOKENS:
      raise CorpusError(
        f"a document of {len(tokens)} tokens is over the limit of"
        f" {MAX_SHARD_TOKENS - 1}; separate documents by a blank line."
      )
    self._append("documents", np.array([self.counts["sentences"]]))
    self._append("sentences", self.counts["tokens"] + starts[:-1])
    self._append("tokens", tokens)

  def _append(self, column: str, values: np.ndarray):
    self.files[column].write(values.astype(self.dtypes[column]).tobytes())
    self.counts[column] += len(values)

  def close(self) -> dict[str, int]:
    for column, file in self.files.items():
      file.seek(0)
      file.write(_header(self.dtypes[column], self.counts[column]))
      _sync(file)
      file.close()
    return self.counts


def _shard_name(split: str, index: int) -> str:
  return f"{split}-{index:05d}"


def _header(dtype: np.dtype, length: int) -> bytes:
  """The .npy header (version 1.0) of a vector: 128 bytes for any length.

  numpy's own, written out so that it can't change with numpy's version.
  """
  text = (
    f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
  )
  return b"\x93NUMPY\x01\x00v\x00" + text.ljust(117).encode() + b"\n"


def _sync(file):
  """To the disk itself, so that a power cut can't outlive the rename."""
  file.flush()
  os.fsync(file.fileno())


def _count_tokens(path: str, counts: Mapping, vocab_size: int) -> np.ndarray:
  """[V] int64: how often each id stands in the train split."""
  total = np.zeros(vocab_size, np.int64)
  for index in range(len(counts["shards"])):
    name = f"{_shard_name('train', index)}.tokens.npy"
    tokens = np.load(os.path.join(path, name), mmap_mode="r")
    for block in _blocks(tokens):
      total += np.bincount(block, minlength=vocab_size)
  return total


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
  for begin in range(0, len(array), _BLOCK):
    yield array[begin : begin + _BLOCK]


def _make_meta(work, tokenizer, splits, options, report) -> dict:
  names = sorted(
    os.path.relpath(os.path.join(folder, name), work).replace(os.sep, "/")
    for folder, _, names in os.walk(work)
    for name in names
  )
  meta = {
    "format": FORMAT,
    "version": VERSION,
    "vocab_size": tokenizer.vocab_size,
    "token_dtype": token_dtype(tokenizer.vocab_size).str,
    "splits": splits,
    "tokenizer": {
      "kind": tokenizer.kind,
      "sha256": tokenizer.sha256,
      "special": {k: int(v) for k, v in tokenizer.special._asdict().items()},
    },
    "options": dict(options),
    "report": dict(report),
    "files": {
      name: {
        "bytes": os.path.getsize(os.path.join(work, name)),
        "sha256": _sha256(os.path.join(work, name)),
      }
      for name in names
    },
  }
  meta["fingerprint"] = _fingerprint(meta)
  meta["checksum"] = _checksum(meta)
  return meta


def _fingerprint(meta: Mapping) -> str:
  """Of the data alone: equal however, from where and when it was prepared."""
  keys = ("format", "version", "vocab_size", "token_dtype", "splits")
  return _digest(
    {
      **{key: meta[key] for key in keys},
      "tokenizer": meta["tokenizer"],
      "shards": {
        name: file["sha256"]
        for name, file in meta["files"].items()
        if name.split("-")[0] in SPLITS
      },
    }
  )


def _checksum(meta: Mapping) -> str:
  return _digest({k: v for k, v in meta.items() if k != "checksum"})


def _digest(value) -> str:
  text = json.dumps(value, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(text.encode("ascii")).hexdigest()


def _sha256(path: str, progress: Callable[[int], None] = lambda n: None) -> str:
  digest = hashlib.sha256()
  with open(path, "rb") as file:
    while block := file.read(_BLOCK):
      digest.update(block)
      progress(len(block))
  return digest.hexdigest()


# Verifying


def verify(path, progress: Callable[[int, int], None] | None = None) -> list:
  """Reads the whole corpus; returns every problem found, one line each.

  progress(done, total) is called with the bytes hashed so far and in all.
  """
  path = os.path.abspath(path)
  try:
    meta = _read_meta(path)
  except CorpusError as error:
    return [str(error)]
  files = meta["files"]
  total = sum(file["bytes"] for file in files.values())
  done = 0

  def hashed(num_bytes):
    nonlocal done
    done += num_bytes
    if progress:
      progress(done, total)

  problems = {}  # File name -> its problem.
  for name, file in files.items():
    if problem := _size_problem(path, name, file["bytes"]):
      problems[name] = problem
    elif _sha256(os.path.join(path, name), hashed) != file["sha256"]:
      problems[name] = f"{path}: {name} is damaged: its SHA-256 differs."
  if problems:
    return list(problems.values())
  # From here on only a wrong writer can be at fault.
  return _wrong_content(path, meta)


def _wrong_content(path: str, meta: Mapping) -> list[str]:
