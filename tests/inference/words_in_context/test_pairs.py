"""Readers of pairs of words in context, and their errors."""

import json

from maskedlm.inference.words_in_context import pairs

# Two pairs in WiC's format: "place" and "approach".
DATA = (
  "place\tN\t2-0\tIn my place he came .\tPlaces fill up .\n"
  "approach\tV\t1-3\tWinter approaches .\tWe saw it approach slowly\n"
)


def shown(instance):
  return instance.text.text[instance.begin : instance.end]


def test_a_marked_word():
  made = pairs.parse_marked(r"A \* in *New York*.", file="a.txt", line=3)
  assert made.text.text == "A * in New York." and shown(made) == "New York"
  assert (made.text.file, made.text.line) == ("a.txt", 3)


def test_pairs_of_files(tmp_path):
  tabs, objects = tmp_path / "a.txt", tmp_path / "a.jsonl"
  tabs.write_text("a *cat*\tthe *cats* ran\n\n*a*\tb *c*\n")
  objects.write_text(json.dumps({"text": "a *cat*", "text_b": "*x* y"}))
  found = list(pairs.read_pairs([str(tabs), str(objects)]))
  assert [(shown(p.a), shown(p.b)) for p in found] == [
    ("cat", "cats"),
    ("a", "c"),
    ("cat", "x"),
  ]
  assert [p.where for p in found[:2]] == [f"{tabs}:1", f"{tabs}:3"]


def write(folder, data=DATA, gold=None):
  path = folder / "dev.data.txt"
  path.write_text(data)
  if gold is not None:
    (folder / "dev.gold.txt").write_text(gold)
  return str(path)


def test_wic(tmp_path):
  unknown = pairs.read_wic(write(tmp_path))
  assert [pair.same for pair in unknown] == [None, None]
  found = pairs.read_wic(write(tmp_path, gold="F\nT\n"))
  assert [(shown(p.a), shown(p.b), p.same) for p in found] == [
    ("place", "Places", False),
    ("approaches", "approach", True),
  ]
