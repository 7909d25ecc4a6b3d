"""Writes meta.json: the content of a corpus, how it was made, its checksums.

store.py opens the corpus that `finish_corpus` completes. The format is
described in docs/reference/corpus-format.md.
"""

import hashlib
import json
import os
import pathlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maskedlm.core.errors import CorpusError
from maskedlm.data.corpus import shards
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.runtime import output_files

FORMAT = "maskedlm corpus"
# Version 1 has the ids of each sentence by itself, without the whitespace
# before it; in version 2, a document has those of its text as a whole. The
# arrays are the same.
VERSION = 2
READABLE = (1, 2)
# The file of shards.block_hashes of all token_files; older corpora lack it.
HASHES = "token_blocks.sha256"


def finish_corpus(
  path: str,
  work: str,
  *,
  splits: Mapping[str, Mapping],
  counts: np.ndarray,
  files: Mapping[str, Mapping],
  hashes: Mapping[str, bytes],
  tokenizer: Tokenizer,
  options: Mapping[str, Any],
  report: Counter,
  domains: Sequence[Mapping],
) -> None:
  """Adds what belongs to no shard to a folder, and renames it to path.

  Args:
    path: the corpus's folder, which must not exist.
    work: the folder with the tokenizer and every shard.
    splits: from shards.write_shards.
    counts: int64 [V], how often each token occurs in the train split.
    files: name -> bytes and sha256, where known; the others are computed.
    hashes: name of a file of tokens -> its shards.block_hashes, likewise.
    tokenizer, options, report, domains: see store.write_corpus.

  Raises:
    CorpusError: there is nothing to train on.
  """
  if not splits["train"]["documents"]:
    raise CorpusError(
      f"{path}: there is no document to train on; check corpus.source and"
      " corpus.heldout_share."
    )
  with open(os.path.join(work, "token_counts.npy"), "wb") as file:
    file.write(shards.header_bytes(np.dtype("<i8"), len(counts)))
    file.write(counts.astype("<i8").tobytes())
    output_files.sync(file)
  with open(os.path.join(work, HASHES), "wb") as file:
    for name in token_files(splits):
      path_in_work = os.path.join(work, name)
      file.write(hashes.get(name) or shards.block_hashes(path_in_work))
    output_files.sync(file)
  names = sorted(
    os.path.relpath(os.path.join(folder, name), work).replace(os.sep, "/")
    for folder, _, names in os.walk(work)
    for name in names
  )
  meta = {
    "format": FORMAT,
    "version": VERSION,
    "vocab_size": tokenizer.vocab_size,
    "token_dtype": shards.token_dtype(tokenizer.vocab_size).str,
    "splits": splits,
    "block_bytes": shards.HASHED,
    **({"parts": list(domains)} if domains else {}),
    "tokenizer": {
      "kind": tokenizer.kind,
      "sha256": tokenizer.sha256,
      "special": {k: int(v) for k, v in tokenizer.special._asdict().items()},
    },
    "options": dict(options),
    "report": dict(report),
    "files": {
      name: files.get(name) or file_entry(pathlib.Path(work, name))
      for name in names
    },
  }
  meta["fingerprint"] = fingerprint(meta)
  meta["checksum"] = checksum(meta)
  with open(os.path.join(work, "meta.json"), "w", encoding="ascii") as file:
    json.dump(meta, file, indent=1, sort_keys=True)
    output_files.sync(file)
  os.rename(work, path)


def token_files(splits: Mapping[str, Mapping]) -> list[str]:
  """Returns the names of the files of tokens, in the order of HASHES."""
  return [
    shards.tokens_file(split, index)
    for split in shards.SPLITS
    for index in range(len(splits[split]["shards"]))
  ]


def file_entry(path: pathlib.Path) -> dict[str, Any]:
  """Returns a file's entry in meta.json: its bytes and sha256."""
  return {"bytes": path.stat().st_size, "sha256": output_files.sha256(path)}


def fingerprint(meta: Mapping) -> str:
  """Returns the SHA-256 of the data alone, not of how it was prepared."""
  keys = ("format", "vocab_size", "token_dtype", "splits", "parts")
  return _digest(
    {
      **{key: meta[key] for key in keys if key in meta},
      "version": 1,  # That of the arrays.
      "tokenizer": meta["tokenizer"],
      "shards": {
        name: file["sha256"]
        for name, file in meta["files"].items()
        if name.split("-")[0] in shards.SPLITS
      },
    }
  )


def checksum(meta: Mapping) -> str:
  """Returns the SHA-256 of meta.json without the checksum itself."""
  return _digest({k: v for k, v in meta.items() if k != "checksum"})


def _digest(value) -> str:
  text = json.dumps(value, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(text.encode("ascii")).hexdigest()
