"""Files with word senses: both formats, and malformed files."""

from collections import Counter

import pytest

from helpers import sense_files
from maskedlm.core.errors import DataError
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


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("a\t_\t_\t_\nb\t_\t_\n", r"f:2: 3 columns between tabs; expected token"),
    ("a\t_\t_\ts.1\n", r"f:1: a word with a sense has no lemma"),
    ("a\ta\t\ts.1\n", r"f:1: a word with a sense has no part of speech"),
    (" \ta\tNOUN\ts.1\n", r"f:1: a word with a sense has no token"),
    ("a\ta\tNOUN\t\n", r"f:1: the sense is empty; write _"),
    ("a\t_\t_\t_\n", r"f: no word with a sense; expected"),
    ("", r"f: no word with a sense; expected"),
    ("<corpus></corpus>", r"f: is XML, but not named NAME\.data\.xml"),
  ],
  ids=lambda value: value[:8].replace("\t", " ").strip() or "empty",
)
def test_bad_columns(tmp_path, text, message):
  (tmp_path / "f").write_text(text)
  with pytest.raises(DataError, match=message):
    list(data.read_sentences(str(tmp_path / "f")))


def test_bad_xml(tmp_path):
  whole = sense_files.XML

  def check(message, xml=whole, keys=sense_files.KEYS):
    path = sense_files.write_xml(tmp_path, xml, keys)
    with pytest.raises(DataError, match=message):
      list(data.read_sentences(path))

  check(r"data\.xml:9: not XML: mismatched", whole.replace("/se", "/"))
  no_lemma = whole.replace('lemma="sit" ', "")
  check(r"data\.xml:7: a word with a sense has no lemma \(br-a01\.s0", no_lemma)
  no_id = whole.replace('id="br-a01.s000.t000"', "")
  check(r"data\.xml:6: the instance '' has no key", no_id)
  check(
    r"key\.txt: 1 keys have no .*, such as x", keys=sense_files.KEYS + "x y"
  )
  check(r"key\.txt:2: the instance a is repeated", keys="a b\na c\n")
  check(r"key\.txt:1: the instance a has no sense", keys="a\n")
  check(r"data\.xml:6: the instance 'br-a01\.s000\.t000' has no key", keys="\n")
  with pytest.raises(DataError, match=r"none\.tsv: No such file"):
    list(data.read_sentences(str(tmp_path / "none.tsv")))
  (tmp_path / "small.gold.key.txt").unlink()
  with pytest.raises(DataError, match=r"small\.gold\.key\.txt: no such file"):
    list(data.read_sentences(str(tmp_path / "small.data.xml")))


def test_bad_first_senses(tmp_path):
  path = tmp_path / "first"
  for text, message in (
    ("bank\tNOUN\n", r"first:1: expected lemma, part of speech and sense"),
    ("bank%1:14:00:: 1 1 0\nbank\n", r"first:2: neither lemma"),
    ("\n", r"first: no sense in the file"),
  ):
    path.write_text(text)
    with pytest.raises(DataError, match=message):
      data.read_first_senses(str(path))


def test_marked_texts():
  made = inputs.parse_marked_text(
    r"Two *New  York|New_York|NOUN*, *is*n't 2\*3."
  )
  assert made.words == ("Two", "New York", ",", "is", "n't", "2*3", ".")
  york, is_ = made.targets
  assert york[1:] == (1, "New_York", "NOUN", ())
  assert is_[1:] == (3, "", "", ())
  for text, message in (
    ("none", "no word is marked; expected"),
    ("a *b c", "1 asterisks: one is not closed"),
    ("a ** b", r"\*\* is not a marked word"),
    ("*a|b|c|d*", "is not a marked word"),
  ):
    with pytest.raises(DataError, match=message):
      inputs.parse_marked_text(text)


def test_json_and_marked_lines(tmp_path):
  path = tmp_path / "asked.jsonl"
  path.write_text(
    '{"tokens": ["a", "b"], "target": 1, "lemma": "b", "pos": "NOUN"}\n\n'
    '{"body": "the *cat*"}\n{"tokens": ["a"], "target": 1}\n'
  )
  read = inputs.read_marked_words([str(path)], field="body")
  target = TargetWord("t000", 1, "b", "NOUN", ())
  assert next(read) == Sentence(("a", "b"), (target,), "", str(path), 1)
  assert next(read).line == 3
  with pytest.raises(DataError, match=r"jsonl:4: target=1; expected the index"):
    next(read)
  path.write_text('{"tokens": ["a"], "target": true}\n')
  with pytest.raises(DataError, match="target=True; expected the index"):
    next(inputs.read_marked_words([str(path)]))
  path.write_text("\n")
  with pytest.raises(DataError, match=r"asked\.jsonl: no line with text"):
    next(inputs.read_marked_words([str(path)]))


def test_semcor(data_dir):
  path = data_dir / "wsd" / "semcor.tsv"
  if not path.exists():
    pytest.skip(f"no {path}")
  counts, documents = Counter(), set()
  for sentence in data.read_sentences(str(path)):
    documents.add(sentence.document)
    counts.update(target.pos for target in sentence.targets)
  assert len(documents) == 352 and counts.total() == 117_208
  assert (counts["VERB"], counts["NOUN"]) == (57_164, 39_056)
