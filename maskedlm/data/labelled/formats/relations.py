"""Relations of two parts of a text: SemEval-2010 task 8 and JSON or Parquet.

  1 <TAB> "The <e1>child</e1> was wrapped and bound into the <e2>cradle</e2>."
  Other
  Comment: ...

  {"sentence": "The <e1>child</e1> in the <e2>cradle</e2>.",
   "relation": "Other"}                                        the Hub's SemEval
  {"text": "The child ...", "e1": "child", "e1_offset": 4, "e2": "cradle",
   "e2_offset": 17, "relation": "Other"}                       predict's output

In JSON a text is in text or sentence, a relation in relation or label; offsets
count characters. Hendrickx et al. 2010 (https://aclanthology.org/S10-1006) are
the source of the first format.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, fields, read
from maskedlm.data.labelled.labels import NO_LABEL
from maskedlm.data.labelled.lines import read_lines

RELATION = re.compile(r"([^\s()]+)(\(e1,e2\)|\(e2,e1\))?")
_SENTENCE = re.compile(r"([0-9]+)[\t ]+(.*)")
_TAG = re.compile(r"</?e[12]>")
_COMMENT = "Comment"


class Mention(NamedTuple):
  """A part of a text, text[begin:end], in characters (code points)."""

  begin: int
  end: int


class Example(NamedTuple):
  """A sentence without its tags, and the relation between two parts of it."""

  text: str
  e1: Mention
  e2: Mention
  relation: str | None = None
  id: str = ""
  where: str = ""  # FILE:LINE of the sentence.


_PLACES = ("e1", "e1_offset", "e2", "e2_offset")
_FORM = fields.Format(
  {
    "text": fields.text("text", "sentence"),
    "relation": fields.key("relation", "label", optional=True),
    "id": fields.key("id", optional=True),
    "e1": fields.text("e1", optional=True),
    "e1_offset": fields.whole_number("e1_offset", optional=True),
    "e2": fields.text("e2", optional=True),
    "e2_offset": fields.whole_number("e2_offset", optional=True),
  },
  such_as='{"text": "The <e1>child</e1> in the <e2>cradle</e2>.", "relation": '
  '"Other"}, or one with text, e1, e1_offset, e2 and e2_offset',
)


def read_file(source: str, *, other: str = "Other") -> list[Example]:
  """Returns the sentences of a file: SemEval's format, JSON, Parquet or TFDS.

  A relation that is null, empty, - or ?, and not `other`, is None. A row
  without an id is named by its file and its number.
  """
  if not read.has_objects(source):
    return read_semeval(source, other=other)
  name = pathlib.Path(source).name

  def read_row(row: read.Row) -> Example:
    return _parse_values(row.values, row.where, f"{name}:{row.line}", other)

  return [*bad_rows.map_rows(read_row, read.read_objects(source, _FORM))]


def read_semeval(source: str, *, other: str = "Other") -> list[Example]:
  """Returns the sentences of a file in the task's format.

  The line after a sentence has its relation; blank lines and lines that begin
  with "Comment" are skipped. In a file without relations, like the test set as
  it was distributed, they are None.

  Raises:
    DataError: the file is missing, empty or not UTF-8; a line is malformed; a
      sentence lacks an entity, or a relation although others have one.
  """
  groups: list[list[tuple[str, str]]] = []  # A sentence, and its relation.
  for number, line in enumerate(read_lines(pathlib.Path(source)), 1):
    line = line.strip()
    if line and not line.startswith(_COMMENT):
      if not groups or len(groups[-1]) > 1 or not RELATION.fullmatch(line):
        groups.append([])
      groups[-1].append((f"{source}:{number}", line))
  if not groups:
    raise DataError(f"{source}: no sentences; expected at least one.")
  has_relations = any(len(group) > 1 for group in groups)

  def read_group(lines: Sequence[tuple[str, str]]) -> Example:
    example = _parse_lines(lines, other)
    if has_relations and len(lines) == 1:
      raise DataError(
        f"{example.where}: the sentence has no relation, but others do; "
        "expected it on the next line, such as Cause-Effect(e1,e2) or Other."
      )
    return example

  return [*bad_rows.map_rows(read_group, groups)]


def _parse_lines(lines: Sequence[tuple[str, str]], other: str) -> Example:
  """Returns the example of (FILE:LINE, text) of a sentence and its relation."""
  (where, line), *relation = lines
  match = _SENTENCE.fullmatch(line)
  if not match:
    raise DataError(
      f"{where}: {line[:40]!r}; expected a sentence (number, tab, sentence "
      "in quotes), then a relation such as Cause-Effect(e1,e2), "
      "Cause-Effect(e2,e1) or Other, or a line that begins with Comment."
    )
  text = match[2]
  if "\t" in text:
    raise DataError(
      f"{where}: a tab within the sentence; expected the relation in the next "
      "line, not in another column."
    )
  if len(text) > 1 and text[0] == text[-1] == '"':
    text = text[1:-1]
  relation_name = _relation(relation[0][1], other) if relation else None
  parts = parse_entity_tags(text, where=where)
  return Example(*parts, relation_name, id=match[1], where=where)


def of_object(value: Mapping[str, Any], where: str) -> Example:
  """Returns the example of an object without its relation and id.

  Raises:
    DataError: a field or a tag is missing, or an entity is not at its offset.
  """
  values = fields.values(value, _FORM, where)
  example = _parse_values(values, where, "", "")
  return example._replace(relation=None, id="", where="")


def parse_entity_tags(text: str, *, where: str) -> tuple[str, Mention, Mention]:
  """Returns (text without tags, e1, e2), given <e1>...</e1> and <e2>...</e2>.

  Raises:
    DataError: a tag is missing or repeated, or an entity is empty or closed
      before it is opened.
  """
  plain, begin, places = "", 0, {}
  for match in _TAG.finditer(text):
    if match.group() in places:
      raise DataError(
        f"{where}: the sentence has {match.group()} twice; expected each of "
        "<e1>, </e1>, <e2> and </e2> once."
      )
    plain += text[begin : match.start()]
    begin = match.end()
    places[match.group()] = len(plain)
  plain += text[begin:]
  for tag in ("<e1>", "</e1>", "<e2>", "</e2>"):
    if tag not in places:
      raise DataError(
        f"{where}: the sentence has no {tag}; expected tags around both "
        "entities, such as The <e1>child</e1> in the <e2>cradle</e2>."
      )
  mentions = []
  for name in ("e1", "e2"):
    mentions.append(Mention(places[f"<{name}>"], places[f"</{name}>"]))
    if not plain[slice(*mentions[-1])].strip():
      raise DataError(
        f"{where}: <{name}></{name}> is empty; expected the words of an entity."
      )
  e1, e2 = mentions
  return plain, e1, e2


def find_mention(
  text: str, name: str, begin: int, *, what: str, where: str
) -> Mention:
  """Returns the mention that a file specifies by its text and its offset.

  `begin` counts the characters before it; `what` names the field in errors.

  Raises:
    DataError: the mention is empty, or the text at the offset is different.
  """
  if not name.strip():
    raise DataError(f"{where}: {what} is empty; expected a part of the text.")
  actual = text[max(begin, 0) : max(begin, 0) + len(name)]
  if actual == name and begin >= 0:
    return Mention(begin, begin + len(name))
  places = [m.start() for m in re.finditer(re.escape(name), text)]
  nearest = min(places, key=lambda place: abs(place - begin), default=None)
  hint = (
    "the text doesn't contain it" if nearest is None else f"it is at {nearest}"
  )
  raise DataError(
    f"{where}: {what} {name!r} is not at its offset {begin}, where the text "
    f"has {actual!r}; {hint}. Offsets count characters, not bytes."
  )


def _relation(text: str, other: str) -> str | None:
  return text if text == other or text not in NO_LABEL else None


def _parse_values(
  values: Mapping[str, Any], where: str, name: str, other: str
) -> Example:
  text = values["text"]
  absent = [place for place in _PLACES if values[place] is None]
  if len(absent) == len(_PLACES):
    parts = parse_entity_tags(text, where=where)
  elif absent:
    raise DataError(f"{where}: no {absent[0]!r}; expected {_FORM.such_as}.")
  else:
    places = ((x, values[x], values[f"{x}_offset"]) for x in ("e1", "e2"))
    parts = (
      text,
      *(find_mention(text, n, at, what=x, where=where) for x, n, at in places),
    )
  relation = _relation(values["relation"] or "", other)
  return Example(*parts, relation, values["id"] or name, where)
