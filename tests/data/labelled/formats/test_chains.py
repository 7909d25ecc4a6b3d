"""Coreference chains of CoNLL-2012: reading and writing."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import chains as chain_files


def document(*sentences, name="(d); part 000", end="#end document"):
  """Returns a file of words "word" or "word/marks", by sentence."""
  lines = [f"#begin document {name}"]
  for sentence in sentences:
    for i, cell in enumerate(sentence.split()):
      word, _, marks = cell.partition("/")
      lines.append(f"d 0 {i} {word} NN * - - - - * {marks or '-'}")
    lines.append("")
  return "\n".join([*lines, *([end] if end else [])]) + "\n"


def test_read(file):
  path = file(
    "\ufeff# made by hand\n"
    + document("Ann/(7) lost her/(12|(7) keys/12)", "They/(12)")
    + document("no chains", name="(d); part 001").replace("\n", "\r\n")
  )
  first, second = chain_files.read_file(path)
  assert first.words == ("Ann", "lost", "her", "keys", "They")
  assert first.sentence_ends == (4, 5)
  assert {frozenset(chain) for chain in first.chains} == {
    frozenset({(0, 1), (2, 3)}),
    frozenset({(2, 4), (4, 5)}),
  }
  assert first.id == "(d); part 000"
  assert first.where.endswith(":2")
  assert (second.chains, second.id) == ((), "(d); part 001")


def test_a_mention_that_is_marked_twice(file, capsys):
  """In two chains it is in both; in one, once."""
  path = file(document("Ann/(1)|(2) she/(1)|(1) he/(2)"))
  (found,) = chain_files.read_file(path)
  assert found.chains == (((0, 1), (1, 2)), ((0, 1), (2, 3)))
  assert "1 mention marked twice" in capsys.readouterr().err


def test_chains_need_the_word_and_the_last_column_alone(file):
  text = "#begin document x\nx 0 7 Ann (1)\nx 0 7 she (1)\n#end document\n"
  (found,) = chain_files.read_file(file(text))
  assert found.words == ("Ann", "she") and found.chains == (((0, 1), (1, 2)),)
  assert found.id == "x"


def test_what_is_written_is_read_again(file):
  chains = (
    ((0, 5), (1, 3), (3, 4)),  # In its own chain.
    ((0, 1), (0, 3), (2, 3)),
    ((1, 2), (5, 7)),
  )
  words = ("a", "b c", "d", "e", "f", "g", "h")
  documents = [
    ("(x/y); part 002", words, (4, 7), chains),
    ("", ("a",), (1,), ()),
  ]
  text = chain_files.format_documents(documents)
  assert text.startswith("#begin document (x/y); part 002\nx/y 2 0 a - *")
  first, second = chain_files.read_file(file(text))
  assert first.words == ("a", "b_c", *words[2:])
  assert first.sentence_ends == (4, 7)
  assert sorted(first.chains) == sorted(chains)
  assert (second.id, second.chains) == ("(input); part 000", ())


def test_ontogum(data_dir, file):
  """The counts of its README."""
  path = data_dir / "coref" / "ontogum" / "dev.conll"
  if not path.exists():
    pytest.skip(f"{path} is absent")
  documents = chain_files.read_file(str(path))
  chains = [d.chains for d in documents]
  assert (len(documents), sum(map(len, chains))) == (12, 296)
  assert sum(len(d.words) for d in documents) == 10_631
  assert sum(len(d.sentence_ends) for d in documents) == 438
  assert sum(len(c) for cs in chains for c in cs) == 1_234
  text = chain_files.format_documents(
    [(d.id, d.words, d.sentence_ends, d.chains) for d in documents]
  )
  again = chain_files.read_file(file(text))
  assert [set(d.chains) for d in again] == [set(d.chains) for d in documents]


def test_clusters_count_the_words_of_the_document(file):
  """As in e2e-coref's .jsonlines, whose spans include their last word."""
  row = {
    "doc_key": "d",
    "sentences": [["Ann", "lost", "her", "keys"], ["They", "were", "hers"]],
    "clusters": [[[0, 0], [2, 2], [6, 6]], [[2, 3], [4, 4]]],
  }
  (found,) = chain_files.read_file(file(json.dumps(row), "a.jsonlines"))
  assert found.chains == (((0, 1), (2, 3), (6, 7)), ((2, 4), (4, 5)))
  assert (found.sentence_ends, found.id) == ((4, 7), "(d); part 000")
  row["clusters"] = [[[6, 7]]]
  with pytest.raises(DataError, match=r"a.jsonlines:1: the span \[6, 7\] of"):
    chain_files.read_file(file(json.dumps(row), "a.jsonlines"))
