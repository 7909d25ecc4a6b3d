"""Reads and writes predicates in JSON Lines, and Parquet with the same fields.

  {"id": "a-1", "words": ["Ann", "gave", "up"], "predicates": [{"index": 1,
   "sense": "give_up.07", "args": [[0, 0, "ARG0"], [1, 2, "V"]]}]}

OntoNotes of the Hub is read, too (common/ontonotes.py): its srl_frames. Words
are counted from 0, and the end of a span is included. V may be left out
where it is the predicate's word alone. A sentence with "predicates": [] has
none; without the field, or without the field "args", they are not known.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects
from maskedlm.finetune.common import bio, ontonotes
from maskedlm.finetune.common.bio import Entity
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.semantic_roles.predicates import (
  Example,
  Predicate,
  make_predicate,
)
from maskedlm.runtime import console

_SUCH_AS = (
  '{"words": ["Ann", "slept"], "predicates": [{"index": 1, "args": '
  '[[0, 0, "ARG0"]]}]}'
)


def read_file(path: str) -> list[Example]:
  """Returns the sentences of a JSON Lines, JSON or Parquet file.

  Raises:
    DataError: see read_object; the file has no words.
  """
  examples, empty = [], 0
  rows = objects.read_objects(path, such_as=_SUCH_AS)
  for number, fields in ontonotes.each_sentence(rows):
    where = f"{path}:{number}"
    if fields.get("words") == []:
      empty += 1
      continue
    examples.append(read_object(fields, where))
  if empty:
    console.log(f"{path}: rows without words, left out: {empty:,}")
  if not examples:
    raise DataError(f"{path}: the file has no words; expected {_SUCH_AS}.")
  return examples


def read_object(fields: Mapping[str, Any], where: str) -> Example:
  """Returns the sentence of an object.

  Raises:
    DataError: words, predicates or args are missing or of another form; an
      index or span is not in the sentence; a predicate is listed twice; see
      also predicates.make_predicate.
  """
  words = fields.get("words")
  if words is None:
    names = ", ".join(map(repr, fields)) or "no fields"
    raise DataError(
      f"{where}: no 'words'; there are {names}; expected {_SUCH_AS}."
    )
  if not isinstance(words, list) or not words:
    raise DataError(
      f"{where}: 'words' is no list of texts; expected {_SUCH_AS}."
    )
  for word in words:
    if not isinstance(word, str) or not word.strip():
      raise DataError(
        f"{where}: the word {word!r} is empty or no text; expected {_SUCH_AS}."
      )
  if "srl_frames" in fields and "predicates" not in fields:
    return Example(
      tuple(words),
      predicates=_of_frames(fields, len(words), where),
      where=where,
    )
  found = fields.get("predicates")
  if found is not None and not isinstance(found, list):
    raise DataError(
      f"{where}: 'predicates' is {str(found)[:40]!r}; expected a list, as in "
      f"{_SUCH_AS}."
    )
  example = Example(
    tuple(words), name=objects.as_text(fields.get("id")), where=where
  )
  if found is None:
    return example
  with_args = [isinstance(p, dict) and p.get("args") is not None for p in found]
  if any(with_args) and not all(with_args):
    raise DataError(
      f"{where}: the predicate {with_args.index(False)} of the list has no "
      "'args', but others do; expected them for all or for none ([] if there "
      "are no arguments)."
    )
  return example._replace(
    predicates=_distinct(
      [_predicate(p, len(words), where) for p in found], where
    ),
    has_args=all(with_args),
  )


def format_predictions(predictions: Sequence[Prediction]) -> str:
  """Returns the words and predicates of predictions, for read_file."""
  kept = ("index", "sense", "args")
  rows = (
    {
      **{n: p[n] for n in ("id", "words") if n in p},
      "predicates": [
        {name: x[name] for name in kept if name in x} for x in p["predicates"]
      ],
    }
    for p in predictions
  )
  return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _predicate(fields: Any, count: int, where: str) -> Predicate:
  if not isinstance(fields, dict) or not _is_int(fields.get("index")):
    raise DataError(
      f"{where}: the predicate {str(fields)[:40]!r} has no 'index', a number "
      f"from 0; expected {_SUCH_AS}."
    )
  index = fields["index"]
  if not 0 <= index < count:
    raise DataError(
      f"{where}: the predicate's index {index}, but the sentence has "
      f"{counted(count, 'word')}: expected 0 to {count - 1}."
    )
  args = fields.get("args")
  if not isinstance(args, list | None):
    raise DataError(
      f"{where}: the predicate {index} has 'args' {str(args)[:40]!r}; expected "
      f"a list, as in {_SUCH_AS}."
    )
  return make_predicate(
    index,
    [_argument(arg, index, where) for arg in args or ()],
    count=count,
    where=where,
    sense=objects.as_text(fields.get("sense")),
  )


def _of_frames(
  fields: Mapping[str, Any], count: int, where: str
) -> tuple[Predicate, ...]:
  """Returns the predicates of OntoNotes' srl_frames, of BIO tags."""
  found = []
  for frame in fields["srl_frames"] or ():
    tags = frame.get("frames") if isinstance(frame, dict) else None
    if not isinstance(tags, list) or len(tags) != count or "B-V" not in tags:
      raise DataError(
        f"{where}: the frame {str(frame)[:40]!r}; expected 'frames', a BIO tag "
        "for each word, one of them B-V."
      )
    index = tags.index("B-V")
    spans = bio.find_entities(tags)
    found.append(make_predicate(index, spans, count=count, where=where))
  return _distinct(found, where)


def _argument(arg: Any, index: int, where: str) -> Entity:
  is_right = (
    isinstance(arg, list)
    and len(arg) == 3
    and all(map(_is_int, arg[:2]))
    and isinstance(arg[2], str)
    # What a label can be in columns.
    and arg[2].strip()
    and not set(arg[2]) & set("()* \t\n")
  )
  if not is_right:
    raise DataError(
      f"{where}: the predicate {index} has the argument {str(arg)[:40]!r}; "
      'expected [first word, last word, label], such as [0, 3, "ARG0"].'
    )
  return Entity(arg[2], arg[0], arg[1] + 1)


def _distinct(
  predicates: Sequence[Predicate], where: str
) -> tuple[Predicate, ...]:
  found = sorted(predicates, key=lambda p: p.index)
  for before, after in itertools.pairwise(found):
    if before.index == after.index:
      raise DataError(
        f"{where}: two predicates have the index {after.index}; expected each "
        "word at most once."
      )
  return tuple(found)


def _is_int(value: Any) -> bool:
  return isinstance(value, int) and not isinstance(value, bool)
