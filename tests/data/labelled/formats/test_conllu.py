"""Dependency trees of CoNLL-U and JSON: what is read and what is written."""

import json

import pytest

from maskedlm.data.labelled.formats import conllu

FILE = """\
# sent_id = 1
# text = I don't
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t0:root\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:ccomp\t_

1\tNew York\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_by_hand(file, capsys):
  path = file(FILE, "a.conllu")
  first, second = conllu.read_file(path)
  assert first.words == ("I", "do", "n't")
  assert (first.heads, first.labels) == ((2, 0, 2), ("nsubj", "root", "advmod"))
  assert first.lines == (3, 5, 6) and first.where == f"{path}:3"
  assert (second.words, second.heads, second.labels) == (
    ("New York",),
    None,
    None,
  )
  assert "1 empty node (such as 3.1 in line 7)" in capsys.readouterr().err
  # Ranges, comments and the other columns are kept; DEPS is of another tree.
  written = conllu.format_sentence(first, (0, 3, 1), ("root", "x:y", "z"))
  lines = FILE.splitlines()
  assert written.splitlines() == [
    *lines[:2],
    "1\tI\tI\tPRON\tPRP\tCase=Nom\t0\troot\t_\t_",
    lines[3],
    "2\tdo\tdo\tAUX\tVBP\t_\t3\tx:y\t_\t_",
    "3\tn't\tnot\tPART\tRB\t_\t1\tz\t_\t_",
  ]


def test_what_is_written_is_read(file):
  example = conllu.of_words(["New\tYork", "#", "is"])
  written = conllu.format_sentence(example, (3, 3, 0), ("a", "b", "root"))
  (found,) = conllu.read_file(file(written, "b.conllu"))
  assert found.words == ("New York", "#", "is")
  assert (found.heads, found.labels) == ((3, 3, 0), ("a", "b", "root"))
  assert found.comments == ("# text = New York # is",)


def test_ewt_comes_back_to_the_byte(data_dir):
  path = data_dir / "ud_pos/English-EWT/en_ewt-ud-dev.conllu"
  if not path.exists():
    pytest.skip("there is no ud_pos/English-EWT in MASKEDLM_DATA")
  written = "".join(
    f"{conllu.format_sentence(x, x.heads, x.labels)}\n"
    for x in conllu.read_file(str(path))
  )
  lines = path.read_text().splitlines()
  kept = [x for x in lines if "." not in x.split("\t")[0] or x[0] == "#"]
  assert written.splitlines() == kept


def test_objects(file, capsys):
  hub = {
    "tokens": ["don't", "do", "n't"],
    "head": ["None", "0", "1"],
    "deprel": ["_", "root", "advmod"],
  }
  ours = {"tokens": ["He", "left"], "heads": [2, 0], "labels": ["a", "root"]}
  rows = (hub, {"words": ["x"]}, {"tokens": []}, ours)
  path = file("".join(f"{json.dumps(x)}\n" for x in rows), "a.jsonl")
  first, second, third = conllu.read_file(path)
  assert first.words == ("do", "n't") and first.heads == (0, 1)
  assert first.labels == ("root", "advmod") and first.where == f"{path}:1"
  assert (second.words, second.heads) == (("x",), None)
  assert (third.heads, third.lines) == ((2, 0), (4, 4))
  said = capsys.readouterr().err
  assert "1 word without a head beside others" in said
  assert "1 row without words, left out" in said
