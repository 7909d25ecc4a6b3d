"""Files of semantic roles: JSON and both kinds of columns, and bad ones."""

import json

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats.predicates import Predicate
from maskedlm.finetune.semantic_roles import json_rows, props, semantic_roles

WORDS = ["The", "shop", "they", "like", "shut", "its", "doors", "down", "."]
LIKE = Predicate(3, (Entity("A1", 0, 2), Entity("A0", 2, 3)))
SHUT = Predicate(
  4, (Entity("A0", 0, 4), Entity("A1", 5, 7), Entity("C-V", 7, 8))
)
IN_2005 = """\
The     DT  -     (A1*  (A0*
shop    NN  -     *)    *
they    PRP -     (A0*) *
like    VBP like  (V*)  *)
shut    VBD shut  *     (V*)
its     PRP -     *     (A1*
doors   NNS -     *     *)
down    RP  -     *     (C-V*)
.       .   -     *     *

Yes     UH  -
"""
IN_2012 = """\
#begin document (a/b); part 000
a/b 0 0 The DT (TOP* - - - x * (A1* (A0* (1
a/b 0 1 shop NN * shop - - x * *) * 1)
a/b 0 2 they PRP * - - - x * (A0*) * -
a/b 0 3 like VBP * like 01 - x * (V*) *) -
a/b 0 4 shut VBD * shut 05 - x * * (V*) -
a/b 0 5 its PRP * - - - x * * (A1* -
a/b 0 6 doors NNS * - - - x * * *) -
a/b 0 7 down RP * - - - x * * (C-V*) -
a/b 0 8 . . *) - - - x * * * -

a/b 0 0 Yes UH * - - - x * -
#end document
"""


def plain(example):
  """Returns the words and predicates without senses."""
  return list(example.words), [p._replace(sense="") for p in example.predicates]


def read(path):
  return semantic_roles.read_examples(path)


def in_json(**fields):
  return json.dumps({"words": WORDS, **fields}) + "\n"


def predicate(index, *args):
  return {"index": index, "args": [list(x) for x in args]}


@pytest.mark.parametrize("text", [IN_2005, IN_2012])
def test_columns(text, file):
  path = file(text, "f.conll")
  first, second = read(path)
  assert plain(first) == (WORDS, [LIKE, SHUT])
  assert plain(second) == (["Yes"], [])
  assert first.where == f"{path}:{1 + (text is IN_2012)}"
  if text is IN_2012:
    assert [p.sense for p in first.predicates] == ["like.01", "shut.05"]


def test_json(file):
  like = predicate(3, (0, 1, "A1"), (2, 2, "A0"), (3, 3, "V"))
  shut = predicate(4, (7, 7, "C-V"), (0, 3, "A0"), (5, 6, "A1"))
  shut["sense"] = "shut.05"
  text = in_json(id="x", predicates=[shut, like]) + in_json(predicates=[])
  first, second, third, fourth = read(
    file(
      text + in_json() + in_json(predicates=[{"index": 2}]),
      "f.jsonl",
    )
  )
  assert plain(first) == (WORDS, [LIKE, SHUT])
  assert (first.name, first.predicates[1].sense) == ("x", "shut.05")
  assert second.predicates == () and third.predicates is None
  assert fourth.predicates == (Predicate(2),) and not fourth.has_args
  assert [semantic_roles.has_label(x) for x in (second, third, fourth)] == [
    True,
    False,
    False,
  ]


def test_what_is_written_is_read_again(file):
  pairs = [(WORDS, [LIKE, SHUT]), (["a b"], [])]
  for text in (props.format_2005(pairs), props.format_2012(pairs)):
    first, second = read(file(text, "f.conll"))
    assert plain(first) == (WORDS, [LIKE, SHUT])
    assert plain(second) == (["a_b"], [])
  kept = [SHUT._replace(sense="shut.05")]
  (made,) = read(file(props.format_2012([(WORDS, kept)]), "f.conll"))
  assert list(made.predicates) == kept
  (block,) = props.format_props(pairs[:1]).strip().split("\n\n")
  assert block.splitlines()[3:5] == ["like (V*) *)", "shut * (V*)"]


def test_comments_are_reported_and_words_are_not_lost(file, capsys):
  text = "# a note\n" + IN_2005 + "\n# # -\n1 CD -\n"
  examples = read(file(text, "f.conll"))
  assert [x.words[0] for x in examples] == ["The", "Yes", "#"]
  assert "comments (# ...): 1, the first in line 1" in capsys.readouterr().err


@pytest.mark.parametrize("text", [IN_2005, IN_2012])
@pytest.mark.parametrize(
  ("old", "new", "said"),
  [
    # One column less than in the sentence's first line.
    (("*     (A1*", "* (A1* -"), ("(A1*", "(A1* -"), r"columns?; expected \d+"),
    (("*     *)", "* *) -"), ("*     *", "* * -"), "within A1"),
    (("*     (A1*", "* (A1* -"), ("*     *", "* * -"), "not open"),
    (("(A0*) *", "(A0*) * -"), ("(A0*) (A2*)", "(A0*) (A2*) -"), "within A0"),
    (
      ("(A0*) *", "(A0*) * -"),
      ("(A0* *", "(A0* * -"),
      "opens a bracket within",
    ),
    (("(V*)  *)", "(V*) *) -"), ("(V*) )", "(V*) ) -"), r"'\)' in column"),
  ],
)
def test_bad_brackets(text, old, new, said, file):
  at = 0 if text is IN_2005 else 1
  assert old[at] in text
  broken = text.replace(old[at], new[at], 1)
  assert broken != text
  with pytest.raises(DataError, match=rf"f\.conll:\d+: .*{said}"):
    read(file(broken, "f.conll"))


@pytest.mark.parametrize(
  ("text", "old", "new", "line", "said"),
  [
    (IN_2005, "VBP like ", "VBP - ", 1, "1 predicate, but 2 columns of arg"),
    (IN_2005, "NNS - ", "NNS door ", 1, "3 predicates, but 2 columns of arg"),
    (IN_2012, "like 01", "like - ", 2, "1 predicate, but 2 columns of arg"),
    (IN_2012, "0 5 its", "0 6 its", 7, "the word number '6'; expected 5"),
    (IN_2005, "Yes     UH  -", "Yes UH", 11, "2 columns; expected at least 3"),
    (IN_2005, "Yes     UH  -", "Yes UH yes", 11, "1 predicate, but 0 columns"),
    (IN_2005, "*     (V*)", "*     *)", 5, "not open"),
    (IN_2005, "(A0*\nshop", "*\nshop", 4, "not open"),
    (IN_2005, "(V*)  *)", "*     *)", None, ""),  # V may be left out.
    (IN_2005, "*     (C-V*)", "*     (C-V*", 8, "C-V.* is not closed"),
    (IN_2005, "*     (V*)", "* (A3*)", 1, "A3 .* covers the predicate"),
  ],
)
def test_bad_columns(text, old, new, line, said, file):
  assert old in text
  path = file(text.replace(old, new, 1), "f.conll")
  if line is None:
    assert len(read(path)) == 2
    return
  with pytest.raises(DataError, match=rf"f\.conll:{line}: .*{said}"):
    read(path)


def test_no_column_of_predicates(file):
  with pytest.raises(DataError, match="no column of predicates"):
    read(file("The\nshop\n", "f.conll"))


@pytest.mark.parametrize(
  ("fields", "said"),
  [
    ({"predicates": [predicate(9)]}, "index 9, .* 9 words: expected 0 to 8"),
    ({"predicates": [predicate(-1)]}, "index -1"),
    ({"predicates": [predicate(True)]}, "no 'index'"),
    ({"predicates": [predicate("3")]}, "no 'index'"),
    ({"predicates": [3]}, "no 'index'"),
    ({"predicates": {"index": 3}}, "expected a list"),
    ({"predicates": [{"index": 3, "args": "A0"}]}, "'args' 'A0'"),
    ({"predicates": [predicate(3), {"index": 4}]}, "no 'args', but others do"),
    ({"predicates": [predicate(3), predicate(3)]}, "two predicates have"),
    ({"predicates": [predicate(3, (5, 9, "A0"))]}, "from word 5 to 9, but"),
    ({"predicates": [predicate(3, (6, 5, "A0"))]}, "end is before the start"),
    ({"predicates": [predicate(3, (0, 1, "A0"), (1, 2, "A1"))]}, "overlapping"),
    ({"predicates": [predicate(3, (0, 1))]}, r"argument '\[0, 1\]'"),
    ({"predicates": [predicate(3, (0, 1, "A 0"))]}, "expected .first word"),
    ({"predicates": [predicate(3, (0, 1.5, "A0"))]}, "expected .first word"),
    ({"words": "The shop"}, "no list of texts"),
    ({"words": ["The", ""]}, "the word '' is empty"),
    ({"words": ["The", 4]}, "the word 4 is"),
    ({"words": None}, "no 'words'"),
  ],
)
def test_bad_json(fields, said, file):
  path = file(in_json() + in_json(**fields), "f.jsonl")
  with pytest.raises(DataError, match=rf"f\.jsonl:2: .*{said}"):
    read(path)


def test_rows_without_words(file, capsys):
  path = file(in_json() + in_json(words=[]), "f.jsonl")
  assert len(read(path)) == 1
  assert "rows without words, left out: 1" in capsys.readouterr().err
  with pytest.raises(DataError, match="the file has no words"):
    read(file(in_json(words=[]), "f.jsonl"))


def test_predictions_are_rows(file):
  made = {"id": "7", "text": " ".join(WORDS), "words": WORDS, "predicates": []}
  made["predicates"] = [
    {"index": 3, "word": "like", "probability": 0.9, "args": [[2, 2, "A0"]]}
  ]
  path = file(json_rows.format_predictions([made]), "f.jsonl")
  (example,) = read(path)
  assert example.predicates == (Predicate(3, (Entity("A0", 2, 3),)),)
  assert example.name == "7"
