"""Vectors -> a file, as they come: .npz, .safetensors or .jsonl.

The file gets its name when it is whole; until then one of that name stays as
it was. Arrays, whose size stands at their beginning, grow in files of their
own beside it, and are put together at the end: no more is in memory than is
given at once. What is in a file is in docs/guides/use/embeddings.md.
"""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.inference.vectors.vectors import Vectors
from maskedlm.runtime import output_files

Write = Callable[[Vectors], None]


class Column(NamedTuple):
  """An array that grows along its first axis."""

  path: pathlib.Path
  dtype: str  # numpy's name, little-endian.
  shape: tuple[int, ...]  # Of one element of the first axis.


def check(path: str | pathlib.Path) -> None:
  """That vectors can be written there; raises what outputs.check does."""
  output_files.check(path, option="--out", suffixes=tuple(WRITERS))


@contextlib.contextmanager
def open_writer(
  path: str | pathlib.Path, about: Mapping[str, Any]
) -> Iterator[Write]:
  """The function that takes Vectors, in order; the file is there at the end.

  After an error nothing of it is left.

  Args:
    path: ends in a name of WRITERS.
    about: JSON-able; stored with the vectors (but not in .jsonl).

  Raises:
    ConfigError: see `check`.
    StorageError: a full disk and the like (storage.told).
  """
  check(path)
  path = pathlib.Path(path)
  with (
    output_files.writing(path, option="--out"),
    tempfile.TemporaryDirectory(
      prefix=f".{path.name}.", dir=path.parent
    ) as folder,
  ):
    made = pathlib.Path(folder, path.name)
    with WRITERS[path.suffix.lower()](made, about) as write:
      yield write
    os.replace(made, path)


@contextlib.contextmanager
def _jsonl(path: pathlib.Path, about: Mapping[str, Any]) -> Iterator[Write]:
  """An object for each vector."""
  del about
  with path.open("w", encoding="utf-8") as file:

    def write(vectors: Vectors) -> None:
      # 9 digits are what a float32 has; this is the quick way to print them.
      form = ", ".join(["%.9g"] * vectors.values.shape[1])
      for i, (begin, end) in enumerate(vectors.offsets.tolist()):
        source = vectors.sources[i]
        fields = {
          "file": source.file,
          "line": source.line,
          "text": int(vectors.texts[i]),
          "begin": begin,
          "end": end,
          "form": source.text[begin:end],
        }
        if vectors.ids[i] >= 0:
          fields["id"] = int(vectors.ids[i])
        head = json.dumps(fields, ensure_ascii=False)
        values = form % tuple(vectors.values[i].tolist())
        file.write(f'{head[:-1]}, "vector": [{values}]}}\n')

    yield write


@contextlib.contextmanager
def _arrays(
  path: pathlib.Path, about: Mapping[str, Any], assemble: Callable
) -> Iterator[Write]:
  """assemble(path, columns, about) makes the file of what was written."""
  with contextlib.ExitStack() as stack:
    columns: dict[str, Column] = {}
    files, source_files, count, end = {}, [], 0, 0

    def append(name: str, values: np.ndarray, dtype: str) -> None:
      if name not in columns:
        column = Column(path.with_name(f"{name}.raw"), dtype, values.shape[1:])
        columns[name] = column
        files[name] = stack.enter_context(column.path.open("wb"))
      files[name].write(np.ascontiguousarray(values, dtype).data)

    def write(vectors: Vectors) -> None:
      nonlocal count, end
      append("vectors", vectors.values, "<f4")
      append("texts", vectors.texts, "<i8")
      append("offsets", vectors.offsets, "<i8")
      append("ids", vectors.ids, "<i4")
      # The texts that begin here; they are numbered in the order they come.
      _, first = np.unique(vectors.texts, return_index=True)
      for i in first[vectors.texts[first] >= count]:
        source = vectors.sources[i]
        if source.file not in source_files:
          source_files.append(source.file)
        encoded = np.frombuffer(source.text.encode(), np.uint8)
        if not count:
          append("text_starts", np.array([0]), "<i8")
        count, end = count + 1, end + len(encoded)
        append("text_starts", np.array([end]), "<i8")
        append("text_bytes", encoded, "|u1")
        append("text_lines", np.array([source.line]), "<i8")
        place = source_files.index(source.file)
        append("text_files", np.array([place]), "<i4")

    yield write
    for file in files.values():
      file.close()
    assemble(path, columns, {**about, "files": source_files})


def _npz(path: pathlib.Path, columns: Mapping[str, Column], about) -> None:
  arrays = {name: _mapped(column) for name, column in columns.items()}
  with path.open("wb") as file:
    np.savez(file, **arrays, about=np.array(json.dumps(about)))


def _mapped(column: Column) -> np.ndarray:
  if not column.path.stat().st_size:  # mmap takes no empty file.
    return np.zeros((0, *column.shape), column.dtype)
  size = column.path.stat().st_size // _item_bytes(column)
  shape = (size, *column.shape)
  return np.memmap(column.path, column.dtype, mode="r", shape=shape)


def _item_bytes(column: Column) -> int:
  return np.dtype(column.dtype).itemsize * int(np.prod(column.shape))


SAFETENSORS = {"<f4": "F32", "<i8": "I64", "<i4": "I32", "|u1": "U8"}


def _safetensors(
  path: pathlib.Path, columns: Mapping[str, Column], about
) -> None:
  """Its library wants all tensors in memory; the format is simple.

  8 bytes of the header's length, the header in JSON, the tensors; those of
  larger numbers first, so that each begins at a multiple of its number's size.
  https://github.com/huggingface/safetensors#format
  """
  order = sorted(
    columns, key=lambda name: (-np.dtype(columns[name].dtype).itemsize, name)
  )
  header: dict[str, Any] = {"__metadata__": {"maskedlm": json.dumps(about)}}
  end = 0
  for name in order:
    column = columns[name]
    begin, end = end, end + column.path.stat().st_size
    header[name] = {
      "dtype": SAFETENSORS[column.dtype],
      "shape": [(end - begin) // _item_bytes(column), *column.shape],
      "data_offsets": [begin, end],
    }
  encoded = json.dumps(header).encode()
  encoded += b" " * (-len(encoded) % 8)
  with path.open("wb") as file:
    file.write(len(encoded).to_bytes(8, "little") + encoded)
    for name in order:
      with columns[name].path.open("rb") as column_file:
        shutil.copyfileobj(column_file, file, 1 << 20)
      columns[name].path.unlink()  # So that the disk holds it once.


WRITERS = {
  ".npz": lambda path, about: _arrays(path, about, _npz),
  ".safetensors": lambda path, about: _arrays(path, about, _safetensors),
  ".jsonl": _jsonl,
}
