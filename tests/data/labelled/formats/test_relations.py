"""Relations of two parts of a text: SemEval's format and objects."""

import json
from collections import Counter

import pytest

from maskedlm.data.labelled.formats import relations

FILE = (
  '1\t"The <e1>child</e1> sat in a <e2>cradle</e2>."\r\n'
  "Other\r\n"
  "Comment: not a <e1>container\r\n"
  "\r\n"
  '27\t""Run," said <e1>Ann Lee</e1> to her <e2>dog</e2>"\r\n'
  "Product-Producer(e2,e1)\r\n"
  "Comment:\r\n"
)


def test_read(file):
  path = file("\ufeff" + FILE)
  first, second = relations.read_file(path)
  assert first == (
    "The child sat in a cradle.",
    (4, 9),
    (19, 25),
    "Other",
    "1",
    f"{path}:1",
  )
  assert second.text == '"Run," said Ann Lee to her dog'
  assert second.text[slice(*second.e1)] == "Ann Lee"
  assert second.text[slice(*second.e2)] == "dog"
  assert (second.relation, second.id) == ("Product-Producer(e2,e1)", "27")
  assert second.where == f"{path}:5"


def test_odd_characters_keep_their_places():
  text = "\U0001f600 <e1>cafe\u0301</e1>\u200b, 中<e2>文\U0001f468\u200d</e2>!"
  plain, e1, e2 = relations.parse_entity_tags(text, where="")
  assert plain == "\U0001f600 cafe\u0301\u200b, 中文\U0001f468\u200d!"
  assert plain[slice(*e1)] == "cafe\u0301"
  assert plain[slice(*e2)] == "文\U0001f468\u200d"


@pytest.mark.parametrize(
  ("relation", "expected"),
  [("Cause", "Cause"), (3, "3"), ("", None), (None, None), ("-", None)],
)
def test_objects(file, relation, expected):
  """As the Hub has SemEval, and as predict writes its answers."""
  marked = {"sentence": "A <e1>fire</e1> made <e2>smoke</e2>."}
  row = {"text": "A fire made smoke.", "e1": "fire", "e1_offset": 2}
  row |= {"e2": "smoke", "e2_offset": 12, "id": 7}
  rows = [marked | {"label": relation}, row | {"relation": relation}]
  path = file("".join(f"{json.dumps(x)}\n" for x in rows), "a.jsonl")
  first, second = relations.read_file(path)
  found = (row["text"], (2, 6), (12, 17), expected)
  assert first == (*found, "a.jsonl:1", f"{path}:1")
  assert second == (*found, "7", f"{path}:2")


def test_the_real_file(data_dir):
  path = data_dir / "relation" / "semeval2010_task8" / "TRAIN_FILE.TXT"
  examples = relations.read_file(str(path))
  assert [e.id for e in examples] == [str(i) for i in range(1, 8001)]
  counts = Counter(e.relation for e in examples)
  # As grep -c counts them.
  assert counts["Other"] == 1410
  assert counts["Cause-Effect(e2,e1)"] == 659
  assert counts["Entity-Destination(e2,e1)"] == 1
  for example in examples:
    assert "<e" not in example.text and example.e1.end <= example.e2.begin
