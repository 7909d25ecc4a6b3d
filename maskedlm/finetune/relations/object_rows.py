"""Reads relations from objects: JSON, Parquet and TFDS.

  {"sentence": "The <e1>child</e1> in the <e2>cradle</e2>.",
   "relation": "Other"}                                        the Hub's SemEval
  {"text": "The child ...", "e1": "child", "e1_offset": 4, "e2": "cradle",
   "e2_offset": 17, "relation": "Other"}                       predict's output

A text is in text or sentence, a relation in relation or label; offsets count
characters.
"""

import pathlib

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.finetune.common import mentions
from maskedlm.finetune.common.gold_labels import NO_LABEL
from maskedlm.finetune.relations import semeval
from maskedlm.finetune.relations.semeval import Example

_TEXT = ("text", "sentence")
_RELATION = ("relation", "label")
_PLACES = ("e1", "e1_offset", "e2", "e2_offset")


def read_file(path: str, *, other: str = "Other") -> list[Example]:
  """Returns the examples of a JSON or Parquet file, or of "tfds:...".

  A relation that is null, empty, - or ?, and not `other`, is None. A row
  without an id is named by its file and its number.

  Raises:
    DataError: see tables.read_records and read_object; a relation is no text.
  """
  examples = []
  for record in tables.read_records(path):
    key = tables.as_text(record.fields.get("id"))
    example = read_object(record)._replace(
      id=key or f"{pathlib.Path(path).name}:{record.line}", where=record.where
    )
    name = next((name for name in _RELATION if name in record.fields), "")
    value = record.fields.get(name)
    if isinstance(value, list | dict | bool):
      raise DataError(
        f"{record.where}: the {name} is {tables.as_text(value):.40}; expected "
        "the name of a relation, such as Cause-Effect(e1,e2)."
      )
    relation = tables.as_text(value).strip()
    if relation == other or relation not in NO_LABEL:
      example = example._replace(relation=relation)
    examples.append(example)
  return examples


def read_object(record: tables.Record) -> Example:
  """Returns the text and entities of an object.

  Raises:
    DataError: a field or a tag is missing, or an entity is not at its offset.
  """
  fields, where = record.fields, record.where
  is_marked = fields.keys().isdisjoint(("e1", "e2"))
  text = next((name for name in _TEXT if name in fields), _TEXT[0])
  for name in (text, *(() if is_marked else _PLACES)):
    if name not in fields:
      raise DataError(
        f"{where}: no {name!r}; expected an object such as "
        '{"text": "The <e1>child</e1> in the <e2>cradle</e2>."}, or one with '
        f"text, {', '.join(_PLACES)}; there are "
        f"{', '.join(map(repr, fields)) or 'no fields'}."
      )
  plain = tables.get_text(record, text)
  if is_marked:
    return Example(*semeval.parse_entity_tags(plain, where=where))
  e1, e2 = (
    mentions.find_mention(
      plain,
      tables.get_text(record, name),
      tables.get_field(record, f"{name}_offset"),
      what=name,
      where=where,
    )
    for name in ("e1", "e2")
  )
  return Example(plain, e1, e2)
