"""Bracketed trees: parsing, writing, and what is ill-formed."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats.trees import Bracket
from maskedlm.finetune.constituency import trees

PTB = """
( (S (NP-SBJ-1 (NP (NNP Pierre)) (, ,) )
     (VP (MD will)
       (VP (VB join) (NP (-NONE- *T*-1)) (PRN (-LRB- -LRB-) (CD 61)))) (. .)))
"""


def parse(text, name="t.ptb"):
  return list(trees.parse_trees(enumerate(text.split("\n"), 1), name))


def test_a_tree_over_several_lines_by_hand():
  (tree,) = parse(PTB)
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
  assert (tree.root, tree.traces, tree.line) == ("", 1, 2)
  assert tree.lines == (2, 2, 3, 4, 4, 4, 4)


def test_two_trees_on_a_line_are_two():
  first, second = parse("(TOP (NP (NN a))) (NP (NN b))")
  assert (first.words, first.root) == (("a",), "TOP")
  assert (second.words, second.root) == (("b",), None)
  assert second.brackets == (Bracket("NP", 0, 1),)


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


@pytest.mark.parametrize(
  ("text", "line", "told"),
  [
    ("(S (NN a)))", 1, "closes no bracket"),
    (")", 1, "closes no bracket"),
    ("(S (NN a)\n(S (NN b))\n", 1, "not closed: a ) missing, perhaps before"),
    ("(S (NN a))\n(S (NP (NN b)", 2, "not closed: 2 ) missing"),
    ("\n()", 2, "() has no word"),
    ("(S (NN a) (NP ))", 1, "(NP) has no word"),
    ("(S)", 1, "(S) has no word"),
    ("(S ((NN a)))", 1, "no label"),
    ("(S (NP the dog))", 1, "'dog' is beside"),
    ("(S\n the (NN dog))", 2, "'the' is beside"),
    ("(S (DT the) dog)", 1, "'dog' is beside"),
    ("(S (NN a)) dog", 1, "'dog' is outside"),
    ("dog (NN a)", 1, "'dog' is outside"),
  ],
)
def test_ill_formed_trees_are_one_line(text, line, told):
  with pytest.raises(DataError) as error:
    parse(text)
  message = str(error.value)
  assert message.startswith(f"t.ptb:{line}: ") and told in message
  assert "\n" not in message and "expected" in message


def test_brackets_nest_as_deep_as_they_like():
  deep = 100_000
  text = "(S " * deep + "(NN a)" + ")" * deep + " (NN b)"
  text = f"(NP {text})"
  (tree,) = parse(text)
  assert len(tree.words) == 2 and len(tree.brackets) == deep + 1
  written = trees.format_tree(tree.words, tree.tags, tree.brackets, "TOP")
  assert written == f"(TOP {text})"
  with pytest.raises(DataError, match="not closed: 100,000 \\) missing"):
    parse("(S " * deep)
