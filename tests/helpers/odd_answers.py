"""Files of questions and answers in the forms of the world, made from rules."""

import itertools
import json
from collections.abc import Iterator

CONTEXT = "Ada met Bob. Then Bob, of Köln, left 😀 with Eve."
# (question, answer, its offset); the last has no answer.
QUESTIONS = (("Who?", "Ada", 0), ("Where?", "Köln", 26), ("With?", "Eve", 44))
NONE = "When?"

IDS = {
  "text": lambda i: {"id": f"q{i}"},
  "number": lambda i: {"id": 51870 + i},
  "none": lambda i: {},
  "null": lambda i: {"id": None},
  "empty": lambda i: {"id": ""},
}
ANSWERS = {
  "list": lambda text, start: [{"text": text, "answer_start": start}],
  "more": lambda text, start: [
    {"text": text, "answer_start": start, "answer_id": 3, "answer_end": 9}
  ],
  "hub": lambda text, start: {"text": [text], "answer_start": [start]},
}
NO_ANSWER = (
  {"answers": []},
  {"answers": {"text": [], "answer_start": []}},
  {"answers": [{"text": "", "answer_start": -1}]},
  {
    "answers": [],
    "is_impossible": True,
    "plausible_answers": [{"text": "x"}],
  },
  {"answers": None, "is_impossible": True},
)
FAULTS = (
  {"answers": "Ada"},
  {"answers": [3]},
  {"answers": [{"text": "Rome", "answer_start": 0}]},
  {"answers": [{"text": "Ada", "answer_start": 2}]},
  {"answers": [{"text": "Ada", "answer_start": "x"}]},
  {"answers": [{"text": "Bob"}]},
  {"answers": {"text": "Ada", "answer_start": 0}},
  {"answers": [{"text": "Ada", "answer_start": "0"}]},
  {"answers": [{"text": "Ada", "answer_start": -1}]},
  {"answers": [], "is_impossible": False},
  {"answers": [{"text": "Ada", "answer_start": 0}], "is_impossible": True},
  {"is_impossible": "perhaps"},
  {"is_impossible": "true"},
  {"id": [1]},
  {"id": "q0"},
  {"question": None},
  {"question": ""},
  {"context": None},
  {"context": ["Ada"]},
)


def _questions(key, form, none) -> list[dict]:
  found = [
    {**IDS[key](i), "question": asked, "answers": ANSWERS[form](text, start)}
    for i, (asked, text, start) in enumerate(QUESTIONS)
  ]
  return [*found, {**IDS[key](len(found)), "question": NONE, **none}]


def _files(questions) -> Iterator[tuple[str, str]]:
  flat = [{"context": CONTEXT, "title": "t", **q} for q in questions]
  paragraph = {"context": CONTEXT, "qas": questions}
  article = {"paragraphs": [paragraph]}
  yield "official.json", json.dumps({"data": [article]})
  yield "articles.json", json.dumps([article], indent=1)
  yield "article.json", json.dumps(article)
  yield "paragraphs.json", json.dumps([paragraph])
  yield "data of paragraphs.json", json.dumps({"data": [paragraph]})
  yield "rows.json", json.dumps(flat)
  yield "data.json", json.dumps({"data": flat, "version": None})
  yield "lines.jsonl", "\n".join(map(json.dumps, flat)) + "\n"
  yield "lines.txt", "\r\n\r\n".join(map(json.dumps, flat))


def good_files() -> Iterator[tuple[str, bytes]]:
  """Yields (name, content) of some 400 files with QUESTIONS and NONE."""
  choices = itertools.product(IDS, ANSWERS, NO_ANSWER)
  for number, (key, form, none) in enumerate(choices):
    for name, text in _files(_questions(key, form, none)):
      bom = b"\xef\xbb\xbf" if number % 3 == 0 else b""
      yield f"{number} {name}", bom + text.encode()


def broken_files() -> Iterator[tuple[str, bytes]]:
  """Yields (name, content) of some 120 files with a fault."""
  for number, fault in enumerate(FAULTS):
    questions = _questions("text", "list", NO_ANSWER[0])
    questions[1] |= fault
    for name, text in _files(questions):
      if "context" in fault and "qas" in text:
        continue  # The paragraph's counts.
      yield f"{number} {name}", text.encode()
  whole = json.dumps({"data": [{"paragraphs": []}]})
  for name, content in {
    "cut": whole[:-3].encode(),
    "utf-16": whole.encode("utf-16"),
    "parquet": b"PAR1" + bytes(range(99)),
    "zip": b"PK\x03\x04" + bytes(range(256)),
    "none": whole.encode(),
    "empty": b"",
    "blank": b" \n",
    "text": b"Who?\tAda met Bob.",
    "number": b"3",
  }.items():
    yield f"{name}.json", content
