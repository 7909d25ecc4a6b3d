"""Files of trees: brackets, CoNLL-2012 columns, JSON, and bad ones."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.constituency import files, trees

CONLL = """#begin document (d); part 000
d 0 0 The DT (TOP(S(NP* - - - * -
d 0 1 cat NN *) - - - * * -
d 0 2 ( -LRB- (VP* - - - * -
d 0 3 sat VBD *) - - - * -
d 0 4 . . *)) - - - * -

d 0 0 No UH (TOP(INTJ*)) - - - * -
#end document
"""


def test_columns_by_hand(file):
  first, second = files.read_trees(file(CONLL, "x.conll"))
  assert first.words == ("The", "cat", "-LRB-", "sat", ".")
  assert first.tags == ("DT", "NN", "-LRB-", "VBD", ".")
  assert first.brackets == (
    Bracket("S", 0, 5),
    Bracket("NP", 0, 2),
    Bracket("VP", 2, 4),
  )
  assert first.lines == (2, 3, 4, 5, 6) and first.root == "TOP"
  assert (second.words, second.line) == (("No",), 8)


def test_what_predict_writes_is_read(file):
  line = "(ROOT (S (NP-SBJ (PRP He)) (VP (VBD left))))"
  text = json.dumps({"tokens": ["He", "left"], "tree": line}) + "\n"
  (tree,) = files.read_trees(file(text, "p.jsonl"))
  assert tree.brackets[1] == Bracket("NP", 0, 1)
  (same,) = files.read_trees(file(f"\n{line}\r\n\n", "p.ptb"))
  assert same.brackets == tree.brackets and same.line == 2


def test_functions_traces_and_empty_trees(file, capsys):
  text = "(S (NP-SBJ (-NONE- *)) (VP-X=1 (VB Go)))\n(S (NP (-NONE- *)))\n"
  path = file(text, "t.mrg")
  (tree,) = files.read_trees(path)
  assert tree.brackets == (Bracket("S", 0, 1), Bracket("VP", 0, 1))
  (kept,) = files.read_trees(path, strip_functions=False)
  assert kept.brackets[1].label == "VP-X"
  said = capsys.readouterr().err
  assert f"{path}: 2 traces (-NONE-), left out" in said
  assert f"{path}: 1 tree without words, left out, the first in line 2" in said


@pytest.mark.parametrize(
  ("text", "name", "line", "told"),
  [
    ("The/DT cat/NN\n", "t.ptb", 1, "outside of all brackets"),
    ("(S (NP (-NONE- *)))\n", "t.ptb", None, "no tree with words"),
    ("\n\n", "t.ptb", None, "no tree with words"),
    ("d 0 0 The DT (S* x\nd 0 1 a NN x\n", "c.conll", 2, "'x'"),
    ("d 0 0 The DT (S* x\nd 0 1\n", "c.conll", 2, "3 columns"),
    ("d 0 0 The DT (S*) x\nd 0 1 a NN (S*) x\n", "c.conll", 1, "2 trees"),
    ("d 0 0 The DT (S(NP*) x\n\n", "c.conll", 1, "not closed"),
    ('{"words": ["a"]}\n', "j.jsonl", 1, "no column 'tree'"),
    ('{"tree": "(S (NN a)"}\n', "j.jsonl", 1, "not closed"),
    ('{"tree": "(S (NN a)) (S (NN a))"}\n', "j.jsonl", 1, "2 trees"),
    ("(S " * 101 + "(NN a)" + ")" * 101, "t.ptb", 1, "101 brackets around"),
  ],
)
def test_bad_files_are_one_line(file, text, name, line, told):
  path = file(text, name)
  with pytest.raises(DataError) as error:
    files.read_trees(path)
  message = str(error.value)
  assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
  assert told in message and "\n" not in message


def test_a_missing_file_is_named(tmp_path):
  with pytest.raises(DataError, match=r"none\.ptb: No such file"):
    files.read_trees(tmp_path / "none.ptb")


def test_gum_comes_back_to_the_byte(data_dir):
  path = data_dir / "parsing/gum/dev.ptb"
  if not path.exists():
    pytest.skip("there is no parsing/gum in MASKEDLM_DATA")
  found = files.read_trees(path, strip_functions=False)
  written = [
    trees.format_tree(x.words, x.tags, x.brackets, x.root) for x in found
  ]
  assert written == path.read_text().splitlines()
