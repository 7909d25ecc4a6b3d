"""Files of semantic roles: JSON and both kinds of columns."""

import json

import pytest

from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import props, roles
from maskedlm.data.labelled.formats.predicates import Predicate

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
  return roles.read_file(path)


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
    file(text + in_json() + in_json(predicates=[{"index": 2}]), "f.jsonl")
  )
  assert plain(first) == (WORDS, [LIKE, SHUT])
  assert (first.name, first.predicates[1].sense) == ("x", "shut.05")
  assert second.predicates == () and third.predicates is None
  assert fourth.predicates == (Predicate(2),) and not fourth.has_args
  assert second.has_args


def test_what_is_written_is_read_again(file):
  pairs = [(WORDS, [LIKE, SHUT]), (["a b"], [])]
  for text in (props.format_sentences(pairs), roles.format_2012(pairs)):
    first, second = read(file(text, "f.conll"))
    assert plain(first) == (WORDS, [LIKE, SHUT])
    assert plain(second) == (["a_b"], [])
  kept = [SHUT._replace(sense="shut.05")]
  (made,) = read(file(roles.format_2012([(WORDS, kept)]), "f.conll"))
  assert list(made.predicates) == kept
  (block,) = props.format_props(pairs[:1]).strip().split("\n\n")
  assert block.splitlines()[3:5] == ["like (V*) *)", "shut * (V*)"]


def test_comments_are_reported_and_words_are_not_lost(file, capsys):
  text = "# a note\n" + IN_2005 + "\n# # -\n1 CD -\n"
  examples = read(file(text, "f.conll"))
  assert [x.words[0] for x in examples] == ["The", "Yes", "#"]
  assert "comments (# ...): 1, the first in line 1" in capsys.readouterr().err
