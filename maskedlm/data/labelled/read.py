"""Opens labelled files: decides once what a file is, and reads its objects.

  tfds:...                          a TFDS dataset
  PAR1 ...                          Parquet, whatever its name
  .json, .jsonl, .ndjson; {... or   JSON
  [{... in its first line
  anything else                     text: columns, brackets, a table

Formats of objects are in fields.py; those of text are functions of their own.
In OntoNotes, as the Hugging Face Hub has it, a row is a document of sentences
(https://huggingface.co/datasets/ontonotes/conll2012_ontonotesv5):

  {"document_id": "nw/wsj/23/wsj_2311", "sentences": [{"part_id": 0,
   "words": ["Ann", "slept"], "pos_tags": ["NNP", "VBD"],
   "parse_tree": "(TOP(S(NP*)(VP*)))",
   "named_entities": ["B-PERSON", "O"],
   "srl_frames": [{"verb": "slept", "frames": ["B-ARG0", "B-V"]}],
   "coref_spans": [[7, 0, 0]]}, ...]}

Spans of a chain are [chain, first word, last word], within their sentence.
"""

import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.data.labelled import bad_rows, fields, objects, tables
from maskedlm.data.labelled.lines import read_lines
from maskedlm.runtime import console


class Row(NamedTuple):
  """An object of a file, as its format has it."""

  values: Mapping[str, Any]  # The format's names -> values.
  line: int  # From 1; the row of Parquet, TFDS and a list of JSON.
  where: str  # FILE:LINE.


def has_objects(source: str) -> bool:
  """Returns whether a source holds objects with named fields.

  Raises:
    DataError: the file is missing, or can't be read as text.
  """
  is_json = tables.named_suffix(source) in objects.JSON_SUFFIXES
  if is_json or objects.is_parquet_or_tfds(source):
    return True
  first = next(filter(str.strip, read_lines(pathlib.Path(source))), "")
  return objects.is_object(first)


def read_objects(source: str, form: fields.Format) -> Iterator[Row]:
  """Yields the objects of a JSON or Parquet file, or of a TFDS dataset.

  Objects in which `form.filled` has no items are left out, and counted in a log
  line.

  Raises:
    DataError: the source can't be read, or breaks the format (fields.py); none
      of its objects is filled.
  """
  num_empty, is_empty = 0, True

  def parse(item: tuple[int, dict[str, Any]]) -> list[Row]:
    number, value = item
    where = f"{source}:{number}"
    rows = _sentences(value) if form.documents else [value]
    return [Row(fields.values(x, form, where), number, where) for x in rows]

  numbered = objects.read_objects(source, such_as=form.such_as)
  for row in itertools.chain.from_iterable(bad_rows.map_rows(parse, numbered)):
    if form.filled and not row.values[form.filled]:
      num_empty += 1
      continue
    is_empty = False
    yield row
  if num_empty:
    console.log(
      f"{source}: {counted(num_empty, 'row')} without {form.filled}, left out"
    )
  if is_empty:
    raise fields.no_rows(source, form)


def _sentences(row: dict[str, Any]) -> list[dict[str, Any]]:
  """Returns the sentences of a document, or the row if it is none."""
  value = row.get("sentences")
  if isinstance(value, list) and all(isinstance(x, dict) for x in value):
    return value
  return [row]
