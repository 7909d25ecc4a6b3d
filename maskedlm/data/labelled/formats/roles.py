"""Semantic roles: CoNLL-2005, CoNLL-2012, and JSON or Parquet.

  {"id": "a-1", "words": ["Ann", "gave", "up"], "predicates": [{"index": 1,
   "sense": "give_up.07", "args": [[0, 0, "ARG0"], [1, 2, "V"]]}]}

OntoNotes of the Hub is read, too (read.py): its srl_frames. Words are
counted from 0, and the end of a span is included. V may be left out where it is
the predicate's word alone. A sentence with "predicates": [] has none; without
the field, or without the field "args", they are not known.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, bio, columns, fields, read
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import conll2012, props
from maskedlm.data.labelled.formats.predicates import (
  Example,
  Predicate,
  make_predicate,
  with_verb,
)


def _argument(value: Any) -> Entity:
  if isinstance(value, list) and len(value) == 3:
    begin, last = map(fields.whole_number_of, value[:2])
    label = fields.text_of(value[2])
    # What a label can be in columns.
    if label.strip() and not set(label) & set("()* \t\n"):
      return Entity(label, begin, last + 1)
  raise ValueError(f"it has the argument {value!r:.40}")


def _bio_tag(tag: str) -> str:
  bio.split_tag(tag)
  return tag


_PREDICATE = fields.Format(
  {
    "index": fields.whole_number("index"),
    "sense": fields.key("sense", optional=True),
    "args": fields.items(
      "args",
      of=_argument,
      expected="a list of [first word, last word, label]",
      optional=True,
    ),
  },
  such_as='{"index": 1, "args": [[0, 0, "ARG0"]]}',
)
SENTENCE = fields.Format(
  {
    "words": fields.texts("words", "tokens"),
    "predicates": fields.objects("predicates", optional=True),
    "frames": fields.objects("srl_frames", optional=True),
    "id": fields.key("id", optional=True),
  },
  such_as='{"words": ["Ann", "slept"], "predicates": '
  f"[{_PREDICATE.such_as}]}}",
  filled="words",
  documents=True,
)
_FRAME = fields.Format(
  {"tags": fields.texts("frames", of=_bio_tag)},
  such_as='{"verb": "slept", "frames": ["B-ARG0", "B-V"]}',
)


def read_file(source: str) -> list[Example]:
  """Returns the sentences of a file; its first word's line tells the columns.

  Raises:
    DataError: the file is missing, not text or has no word; see of_values,
      props.read_sentences and conll2012.read_sentences.
  """
  if read.has_objects(source):
    rows = read.read_objects(source, SENTENCE)
    return [*bad_rows.map_rows(lambda x: of_values(x.values, x.where), rows)]
  file = columns.read_columns(source, between="spaces")
  if not conll2012.is_format(file):
    return props.read_sentences(file)
  return [*bad_rows.map_rows(_parse_2012, conll2012.read_sentences(file))]


def of_values(values: Mapping[str, Any], where: str) -> Example:
  """Returns the sentence of an object's values under SENTENCE.

  Raises:
    DataError: predicates or args have another form; an index or span is not in
      the sentence; a predicate is listed twice; see also make_predicate.
  """
  words, listed, frames, name = values.values()
  count, predicates, has_args = len(words), None, True
  if listed is not None:
    forms = [fields.values(x, _PREDICATE, where) for x in listed]
    with_args = [x["args"] is not None for x in forms]
    has_args = all(with_args)
    if any(with_args) and not has_args:
      raise DataError(
        f"{where}: the predicate {with_args.index(False)} of the list has no "
        "'args', but others do; expected them for all or for none ([] if there "
        "are no arguments)."
      )
    predicates = [
      make_predicate(
        x["index"],
        x["args"] or (),
        count=count,
        where=where,
        sense=x["sense"] or "",
      )
      for x in forms
    ]
  elif frames is not None:
    predicates = [_parse_frame(x, count, where) for x in frames]
  in_order = None
  if predicates is not None:
    in_order = tuple(sorted(predicates, key=lambda p: p.index))
    for before, after in itertools.pairwise(in_order):
      if before.index == after.index:
        raise DataError(
          f"{where}: two predicates have the index {after.index}; expected "
          "each word at most once."
        )
  return Example(words, in_order, has_args, name=name or "", where=where)


def _parse_frame(frame: Mapping[str, Any], count: int, where: str) -> Predicate:
  """Returns the predicate of one of OntoNotes' srl_frames, of BIO tags."""
  tags = fields.values(frame, _FRAME, where)["tags"]
  if len(tags) != count or "B-V" not in tags:
    raise DataError(
      f"{where}: the frame {str(frame)[:40]!r}; expected 'frames', a BIO tag "
      "for each word, one of them B-V."
    )
  spans = bio.find_entities(tags)
  return make_predicate(tags.index("B-V"), spans, count=count, where=where)


def _parse_2012(sentence: conll2012.Sentence) -> Example:
  lemmas = sentence.column(conll2012.LEMMA)
  framesets = sentence.column(conll2012.FRAMESET)
  senses = {
    i: f"{lemma}.{frameset}"
    for i, (lemma, frameset) in enumerate(zip(lemmas, framesets, strict=True))
    if frameset not in props.NONE
  }
  sentence.column(conll2012.ALL - 1)
  columns = range(conll2012.FIRST_ROLES, len(sentence.block.rows[0]) - 1)
  return props.make_example(*sentence, conll2012.WORD, senses, columns)


def format_rows(rows: Iterable[Mapping[str, Any]]) -> str:
  """Returns JSON Lines, for read_file, of predictions or other objects.

  Of these, "id", "words" and "predicates" are kept.
  """
  keys = ("index", "sense", "args")
  objects = (
    {
      **{n: row[n] for n in ("id", "words") if n in row},
      "predicates": [
        {name: x[name] for name in keys if name in x} for x in row["predicates"]
      ],
    }
    for row in rows
  )
  return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in objects)


def format_2012(
  sentences: Iterable[tuple[Sequence[str], Sequence[Predicate]]],
) -> str:
  """Returns CoNLL-2012 columns, with - or * in those that are unknown.

  The lemma of a predicate without a sense is its word, and its frameset XX.
  """
  columns_of = []
  for words, predicates in sentences:
    senses = {p.index: p.sense or f"{words[p.index]}.XX" for p in predicates}
    columns_of.append(
      conll2012.sentence_columns(
        words,
        senses=[senses.get(i, "") for i in range(len(words))],
        roles=[with_verb(p) for p in predicates],
      )
    )
  return conll2012.format_documents([("(predictions); part 000", columns_of)])
