"""Files with word senses: both formats, and malformed files."""

from collections import Counter

from helpers import sense_files
from maskedlm.inference.word_senses import data, inputs
from maskedlm.inference.word_senses.data import Sentence, TargetWord


def test_both_formats_give_the_same_sentences(tmp_path):
  columns = sense_files.write_columns(tmp_path)
  seen = Counter()
  made = list(data.read_sentences(columns, seen=seen))
  assert seen == {"bytes": len(sense_files.COLUMNS), "texts": 3}
  assert [s.line for s in made] == [2, 7, 11]
  cat = TargetWord("br-a01.s000.t000", 1, "cat", "NOUN", ("cat.1",))
  sit = TargetWord("br-a01.s000.t001", 2, "sit", "VERB", ("sit.1",))
  words = ("The", "cat", "sat", ".")
  assert made[0] == Sentence(words, (cat, sit), "br-a01", columns, 2)
  assert made[1].targets[0].senses == ("cat.2", "cat.1")
  # The word without characters is skipped.
  assert made[2].words == ("An", "old", "cat")
  assert [t.word for t in made[2].targets] == [1, 2]

  xml = sense_files.write_xml(tmp_path)
  others = list(data.read_sentences(xml))
  assert [s.line for s in others] == [4, 10, 16]
  for ours, theirs in zip(made, others, strict=True):
    assert ours._replace(file="", line=0) == theirs._replace(file="", line=0)


def test_held_out_documents_are_stable(tmp_path):
  names = [f"d{i:03d}" for i in range(2000)]
  held_out = {n for n in names if data.is_held_out(n, 0.1)}
  assert 160 < len(held_out) < 240  # 200 expected, standard deviation 13.
  assert held_out < {n for n in names if data.is_held_out(n, 0.2)}
  assert not any(data.is_held_out(n, 0.0) for n in names)

  made = list(data.read_sentences(sense_files.write_columns(tmp_path)))
  assert list(data.select_documents(made, lambda d: d == "br-a02")) == made[2:]
  assert list(data.select_documents(made, lambda d: True, limit=1)) == made[:2]
  assert list(data.select_documents(made, lambda d: True, limit=2)) == made


def test_first_senses(tmp_path):
  path = tmp_path / "first"
  path.write_text("bank\tNOUN\tb.2\nbank\tNOUN\tb.1\nbank\tVERB\tb.3\n")
  assert data.read_first_senses(str(path)) == {
    ("bank", "NOUN"): "b.2",
    ("bank", "VERB"): "b.3",
  }
  path.write_text(
    "bank%1:14:00:: 08420278 2 20\nbank%1:17:01:: 09213565 1 25\n"
    "able%5:00:00:capable:00 00510348 1 3\nwell%4:02:00:: 00011093 1 109\n"
  )
  assert data.read_first_senses(str(path)) == {
    ("bank", "NOUN"): "bank%1:17:01::",
    ("able", "ADJ"): "able%5:00:00:capable:00",
    ("well", "ADV"): "well%4:02:00::",
  }


def test_marked_texts():
  made = inputs.parse_marked_text(
    r"Two *New  York|New_York|NOUN*, *is*n't 2\*3."
  )
  assert made.words == ("Two", "New York", ",", "is", "n't", "2*3", ".")
  york, is_ = made.targets
  assert york[1:] == (1, "New_York", "NOUN", ())
  assert is_[1:] == (3, "", "", ())


def test_json_and_marked_lines(tmp_path):
  path = tmp_path / "asked.jsonl"
  path.write_text(
    '{"tokens": ["a", "b"], "target": 1, "lemma": "b", "pos": "NOUN"}\n\n'
    '{"body": "the *cat*"}\n'
  )
  read = inputs.read_marked_words([str(path)], field="body")
  target = TargetWord("t000", 1, "b", "NOUN", ())
  assert next(read) == Sentence(("a", "b"), (target,), "", str(path), 1)
  assert next(read).line == 3
