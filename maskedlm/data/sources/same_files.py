"""Compares options that name files, in whichever way their paths are spelt.

`text:a`, `text:./a/` and `text:/home/me/a` are the same text to a run that is
resumed in /home/me, and to a corpus that is prepared there. The values are kept
as they were given; only comparisons use `canonical`.
"""

import os
from typing import Any

from maskedlm.core import own_file
from maskedlm.data.sources import reader
from maskedlm.runtime import buckets

_PATHS = ("init_from", "init_tokens", "corpus.path", "tokenizer.path")
_LISTS = ("data.train", "data.dev")  # Of fine-tuning; their order matters.


def is_same(name: str, a: Any, b: Any) -> bool:
  """Returns whether two values of the option `name` mean the same."""
  if name in own_file.OPTIONS and own_file.is_own(a) and own_file.is_own(b):
    return own_file.is_same(a, b)
  return a == b or canonical(name, a) == canonical(name, b)


def canonical(name: str, value: Any) -> Any:
  """Returns an option's value, with the absolute real paths of its files.

  Values of options that name no files are returned as they are.
  """
  if not (isinstance(value, str) and value):
    return value
  if name in _PATHS:
    return _path(value)
  if name in _LISTS:
    return value if value.startswith("tfds:") else _paths(value)
  if name == "corpus.source":
    return _source(value)
  if name == "corpus.parts":
    return tuple(map(_part, _items(value)))
  return value


def _part(item: str) -> Any:
  """Returns NAME:SOURCE or a folder (domains.parse_domains) in one form."""
  name, colon, source = item.partition(":")
  if not colon:
    return _path(item)
  typed = source.partition(":")[0] in reader.SOURCE_TYPES
  return name, _source(source if typed else f"text:{source}")


def _source(source: str) -> Any:
  """Returns a source in one form; its files are sorted when they are read."""
  kind, _, spec = source.partition(":")
  if kind == "docstrings":
    return kind, frozenset(_items(spec))
  if kind == "tfds":
    dataset, at, folder = spec.partition("@")
    return kind, dataset, at and _path(folder)
  return kind, frozenset(_paths(spec))


def _paths(spec: str) -> tuple[str, ...]:
  return tuple(map(_path, _items(spec)))


def _items(text: str) -> list[str]:
  # A path with a comma in it is cut as well, but its first part is made
  # absolute, so that two spellings of it are still the same.
  return [item for item in map(str.strip, text.split(",")) if item]


def _path(path: str) -> str:
  if buckets.is_address(path):
    return buckets.normalize(path)
  return os.path.realpath(os.path.expanduser(path))
