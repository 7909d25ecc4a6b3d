"""Trees in brackets, CoNLL-2012 and JSON: parsing and writing."""

import pytest

from maskedlm.data.labelled.formats import treebanks, trees
from maskedlm.data.labelled.formats.trees import Bracket

PTB = """
( (S (NP-SBJ-1 (NP (NNP Pierre)) (, ,) )
     (VP (MD will)
       (VP (VB join) (NP (-NONE- *T*-1)) (PRN (-LRB- -LRB-) (CD 61)))) (. .)))
"""


def parse(text, name="t.ptb"):
  """Returns the trees of a text."""
  pieces = enumerate(text.split("\n"), 1)
  return [tree for tree, _ in trees.parse_trees(pieces, name)]


def test_a_tree_over_several_lines_by_hand():
  ((tree, traces),) = trees.parse_trees(enumerate(PTB.split("\n"), 1), "t")
  assert tree.words == ("Pierre", ",", "will", "join", "-LRB-", "61", ".")
  assert tree.tags == ("NNP", ",", "MD", "VB", "-LRB-", "CD", ".")
  assert tree.brackets == (
    Bracket("S", 0, 7),
    Bracket("NP-SBJ-1", 0, 2),
    Bracket("NP", 0, 1),
    Bracket("VP", 2, 6),
    Bracket("VP", 3, 6),
    Bracket("PRN", 4, 6),
  )
  assert (tree.root, traces, tree.where) == ("", 1, "t:2")
  assert tree.lines == (2, 2, 3, 4, 4, 4, 4)


def test_roots_are_taken_off_only_around_the_whole():
  (tree,) = parse("(ROOT (TOP (NP (NN a) (TOP (NN b)))))")
  assert tree.brackets == (Bracket("NP", 0, 2), Bracket("TOP", 1, 2))
  assert tree.root == "TOP"
  (forest,) = parse("( (NP (NN a)) (. .))")
  assert forest.brackets == (Bracket("NP", 0, 1),)
  (bare,) = parse("(NN a)")
  assert (bare.tags, bare.brackets, bare.root) == (("NN",), (), None)


@pytest.mark.parametrize(
  "line",
  [
    "(ROOT (S (NP (PRP He)) (VP (VBD left)) (. .)))",
    "( (NP (QP (CD 3) (CD 4))) (NN x))",
    "(TOP (FRAG (S (VP (VB Go)))))",
    "(TOP (UH oh) (UH no))",
  ],
)
def test_what_is_written_is_what_was_read(line):
  (tree,) = parse(line)
  written = trees.format_tree(tree.words, tree.tags, tree.brackets, tree.root)
  assert written == line
  chains = trees.join_chains(tree.brackets)
  assert trees.split_chains(chains) == list(tree.brackets)


def test_words_that_would_break_a_tree():
  written = trees.format_tree((":-)", "1 000"), ("UH", "CD"), (), "TOP")
  assert written == "(TOP (UH :--RRB-) (CD 1_000))"
  plain = [trees.plain_word(x) for x in ("-LRB-", "1\\/2", "``", "a-b")]
  assert plain == ["(", "1/2", '"', "a-b"]


@pytest.mark.parametrize(
  ("label", "stripped", "kept"),
  [
    ("NP-SBJ-1", "NP", "NP-SBJ"),
    ("NP=2", "NP", "NP"),
    ("PP-LOC-PRD", "PP", "PP-LOC-PRD"),
    ("S-12", "S", "S"),
    ("-X-", "-X", "-X-"),
    ("ADVP|PRT", "ADVP|PRT", "ADVP|PRT"),
  ],
)
def test_functions_and_indices(label, stripped, kept):
  assert trees.plain_label(label, strip_functions=True) == stripped
  assert trees.plain_label(label, strip_functions=False) == kept


def test_brackets_nest_as_deep_as_they_like():
  deep = 100_000
  text = "(S " * deep + "(NN a)" + ")" * deep + " (NN b)"
  text = f"(NP {text})"
  (tree,) = parse(text)
  assert len(tree.words) == 2 and len(tree.brackets) == deep + 1
  written = trees.format_tree(tree.words, tree.tags, tree.brackets, "TOP")
  assert written == f"(TOP {text})"


# --- Files ---

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
  text = CONLL.replace("cat NN *) - - - * * -", "cat NN *) - - - * -")
  path = file(text, "x.conll")
  first, second = treebanks.read_file(path)
  assert first.words == ("The", "cat", "-LRB-", "sat", ".")
  assert first.tags == ("DT", "NN", "-LRB-", "VBD", ".")
  assert first.brackets == (
    Bracket("S", 0, 5),
    Bracket("NP", 0, 2),
    Bracket("VP", 2, 4),
  )
  assert first.lines == (2, 3, 4, 5, 6) and first.root == "TOP"
  assert (second.words, second.where) == (("No",), f"{path}:8")
  assert first.document == "x.conll"


def test_functions_traces_and_empty_trees(file, capsys):
  text = "(S (NP-SBJ (-NONE- *)) (VP-X=1 (VB Go)))\n(S (NP (-NONE- *)))\n"
  path = file(text, "t.mrg")
  (tree,) = treebanks.read_file(path)
  assert tree.brackets == (Bracket("S", 0, 1), Bracket("VP", 0, 1))
  (kept,) = treebanks.read_file(path, strip_functions=False)
  assert kept.brackets[1].label == "VP-X"
  said = capsys.readouterr().err
  assert f"{path}: 2 traces (-NONE-), left out" in said
  assert f"{path}: 1 tree without words, left out, the first in line 2" in said


def test_any_number_of_brackets_around_the_same_words(file):
  labels = [f"X{i}" for i in range(101)]
  text = "".join(f"({label} " for label in labels) + "(NN a)" + ")" * 101
  (tree,) = treebanks.read_file(file(text + "\n", "t.mrg"))
  assert [bracket[:] for bracket in tree.brackets] == [
    (label, 0, 1) for label in labels
  ]


def test_gum_comes_back_to_the_byte(data_dir):
  path = data_dir / "parsing/gum/dev.ptb"
  if not path.exists():
    pytest.skip("there is no parsing/gum in MASKEDLM_DATA")
  found = treebanks.read_file(str(path), strip_functions=False)
  written = [
    trees.format_tree(x.words, x.tags, x.brackets, x.root) for x in found
  ]
  assert written == path.read_text().splitlines()
