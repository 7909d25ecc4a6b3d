"""meta.json: what a corpus holds, how it came about, and its checksums.

Below `store`, which opens what `finish` here completes. The format is in
docs/reference/corpus-format.md.
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
VERSION = 1


def finish_corpus(
  path: str,
  work: str,
  *,
  splits: Mapping[str, Mapping],
  counts: np.ndarray,
  files: Mapping[str, Mapping],
  tokenizer: Tokenizer,
  options: Mapping[str, Any],
  report: Counter,
  parts: Sequence[Mapping],
) -> None:
  """Makes a corpus of a folder `work` with all the shards: renames it to path.

  Args:
    path: where nothing is yet.
    work: has the tokenizer and every shard.
    splits: as shards.write_shards gives it.
    counts: [V], of the tokens of the train split.
    files: bytes and sha256 of files, by name; of others it is computed.
    tokenizer, options, report, parts: see write_corpus.

  Raises CorpusError where nothing is left to train on.
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
  meta = build_manifest(work, tokenizer, splits, options, report, parts, files)
  with open(os.path.join(work, "meta.json"), "w", encoding="ascii") as file:
    json.dump(meta, file, indent=1, sort_keys=True)
    output_files.sync(file)
  os.rename(work, path)


def build_manifest(
  work, tokenizer, splits, options, report, parts, files
) -> dict:
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
    **({"parts": list(parts)} if parts else {}),
    "tokenizer": {
      "kind": tokenizer.kind,
      "sha256": tokenizer.sha256,
      "special": {k: int(v) for k, v in tokenizer.special._asdict().items()},
    },
    "options": dict(options),
    "report": dict(report),
    "files": {
      name: files.get(name)
      or {
        "bytes": os.path.getsize(os.path.join(work, name)),
        "sha256": output_files.sha256(pathlib.Path(work, name)),
      }
      for name in names
    },
  }
  meta["fingerprint"] = fingerprint(meta)
  meta["checksum"] = checksum(meta)
  return meta


def fingerprint(meta: Mapping) -> str:
  """Of the data alone: equal however, from where and when it was prepared."""
  keys = ("format", "version", "vocab_size", "token_dtype", "splits", "parts")
  return _digest(
    {
      **{key: meta[key] for key in keys if key in meta},
      "tokenizer": meta["tokenizer"],
      "shards": {
        name: file["sha256"]
        for name, file in meta["files"].items()
        if name.split("-")[0] in shards.SPLITS
      },
    }
  )


def checksum(meta: Mapping) -> str:
  return _digest({k: v for k, v in meta.items() if k != "checksum"})


def _digest(value) -> str:
  text = json.dumps(value, sort_keys=True, separators=(",", ":"))
  return hashlib.sha256(text.encode("ascii")).hexdigest()
