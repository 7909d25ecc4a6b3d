"""Writes vectors to a .npz or .jsonl file in bounded memory.

The file gets its name when it is complete; until then, an existing file of that
name is untouched. docs/guides/use/embeddings.md describes the contents.
"""

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np
from scipy import sparse

from maskedlm.inference.vectors import codes, splade
from maskedlm.inference.vectors.vectors import Vectors
from maskedlm.runtime import output_files, output_options

Write = Callable[[Vectors], None]


@contextlib.contextmanager
def open_writer(
  path: str | pathlib.Path, about: Mapping[str, Any]
) -> Iterator[Write]:
  """Yields a function that appends Vectors; the block's end completes the file.

  There is no file if the block raises. The path ends in a key of WRITERS;
  `about`, JSON-serialisable, is stored in an .npz, not in a .jsonl.

  Raises:
    ConfigError: the path has another suffix, or can't be written.
    StorageError: the disk is full or unreachable.
  """
  output_options.check_file(path, option="--out", suffixes=tuple(WRITERS))
  path = pathlib.Path(path)
  with (
    output_options.named_errors(path, option="--out"),
    output_files.whole_file(path) as file,
    WRITERS[path.suffix.lower()](file, about) as write,
  ):
    yield write


@contextlib.contextmanager
def _jsonl_writer(file: IO[bytes], about: Mapping[str, Any]) -> Iterator[Write]:
  """Writes JSON Lines, an object for each vector."""
  del about

  def write(vectors: Vectors) -> None:
    # A float32 has 9 digits; one format string per row is the fastest way.
    form = ", ".join(["%.9g"] * vectors.values.shape[1])
    for i, (begin, end) in enumerate(vectors.offsets.tolist()):
      source = vectors.sources[i]
      fields = {"file": source.file, "line": source.line}
      fields |= {"text": int(vectors.texts[i]), "begin": begin, "end": end}
      fields["form"] = source.text[begin:end]
      if source.name:
        fields["name"] = source.name
      if vectors.ids[i] >= 0:
        fields["id"] = int(vectors.ids[i])
      head = json.dumps(fields, ensure_ascii=False)
      values = form % tuple(vectors.values[i].tolist())
      file.write(f'{head[:-1]}, "vector": [{values}]}}\n'.encode())

  yield write


@contextlib.contextmanager
def _npz_writer(out: IO[bytes], about: Mapping[str, Any]) -> Iterator[Write]:
  """Writes an .npz; its arrays grow in temporary files beside it."""
  folder = os.path.dirname(out.name)
  with contextlib.ExitStack() as stack:
    # Name -> a file, and the type and shape of one element in it.
    columns: dict[str, tuple[IO[bytes], np.dtype]] = {}
    source_files, names, count, end, words = [], [], 0, 0, 0

    def append(name: str, values, dtype: str = "") -> None:
      values = np.ascontiguousarray(values, dtype or None)
      if name not in columns:
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        element = np.dtype((values.dtype, values.shape[1:]))
        columns[name] = file, element
      columns[name][0].write(values.data)

    def write(vectors: Vectors) -> None:
      nonlocal count, end, words
      if sparse.issparse(x := vectors.values):
        fields = splade.to_columns(x, begins=not count, before=words)
        for name, values in fields.items():
          append(name, values)
        words += len(fields["words"])
      else:
        append("vectors", x, "<f4")
      if about.get("codes"):
        append("codes", codes.encode(x, about["codes"]))
      append("texts", vectors.texts, "<i8")
      append("offsets", vectors.offsets, "<i8")
      append("ids", vectors.ids, "<i4")
      # Texts are numbered in order; these appear for the first time.
      _, first = np.unique(vectors.texts, return_index=True)
      for i in first[vectors.texts[first] >= count]:
        source = vectors.sources[i]
        if source.file not in source_files:
          source_files.append(source.file)
        encoded = np.frombuffer(source.text.encode(), np.uint8)
        starts = [end, end + len(encoded)]
        append("text_starts", starts[bool(count) :], "<i8")
        count, end = count + 1, starts[1]
        append("text_bytes", encoded)
        append("text_lines", [source.line], "<i8")
        append("text_files", [source_files.index(source.file)], "<i4")
        names.append(source.name)

    yield write
    # numpy writes memory-mapped arrays without loading them whole.
    arrays = {name: _map_array(*column) for name, column in columns.items()}
    if any(names):
      arrays["text_names"] = np.array(names)
    stored = np.array(json.dumps({**about, "files": source_files}))
    np.savez(out, allow_pickle=False, **arrays, about=stored)


def _map_array(file: IO[bytes], element: np.dtype) -> np.ndarray:
  """Returns a memory map, or an empty array, as mmap refuses empty files."""
  file.flush()
  is_empty = not file.tell()
  return np.empty(0, element) if is_empty else np.memmap(file, element, "r")


WRITERS = {".npz": _npz_writer, ".jsonl": _jsonl_writer}
