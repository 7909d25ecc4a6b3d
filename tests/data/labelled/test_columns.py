"""Files of token columns as others write them: comments, ragged lines, more."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio, columns
from maskedlm.data.labelled.formats import layers, tags

CONLLU = (
  "# text = Eve ran\n1\tEve\teve\tPROPN\tNNP\t_\t2\tnsubj\t_\tS-PER\n"
  "2-3\tranoff\t_\t_\t_\t_\t_\t_\t_\t_\n"
  "2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\tO\n"
  "3\toff\toff\tADP\tRP\t_\t2\tcase\t_\tO\n\n"
)


def rows(path, **options):
  return [x.rows for x in columns.read_columns(path, **options).blocks]


@pytest.mark.parametrize(
  "comment",
  [
    "# id 62\tdomain=en",  # As many columns as words, but a tab.
    "# a sentence of five columns",
    "# sent_id = 1",
    "# newdoc id = x y",
    "#\thttp://example.org/x",
    "# x\n# y",
    "#begin document (a/b); part 000",
    "-DOCSTART- -X- O O",
  ],
)
def test_comments_before_sentences(file, capsys, comment):
  text = f"{comment}\na _ _ O\nfork _ _ B-X\n\n\n{comment}\n# _ _ O\n"
  first, second = columns.read_columns(file(text)).blocks
  assert first.rows == (("a", "_", "_", "O"), ("fork", "_", "_", "B-X"))
  assert second.rows == (("#", "_", "_", "O"),)
  count = len(comment.splitlines())
  assert first.numbers == (count + 1, count + 2)
  assert [text for _, text in second.before] == comment.splitlines()
  if comment.startswith(("# ", "#\t")):
    told = f"comments (# ...): {2 * count}, the first in line 1"
    assert told in capsys.readouterr().err


def test_a_comment_is_told_by_the_columns_of_its_own_sentence(file):
  """In CoNLL-2005, sentences differ in their numbers of columns."""
  text = "# a note\nThe DT - (A1* (A0*\nshop NN - *) *)\n\n# # -\n1 CD -\n"
  first, second = rows(file(text), between="spaces")
  assert first[0][0] == "The" and second == (("#", "#", "-"), ("1", "CD", "-"))


def test_hashes_with_tags_are_words(file, capsys):
  for tab in (" ", "\t"):
    text = "# SYM\n#tag NOUN\n# SYM\n\n# SYM\nthe DET\n".replace(" ", tab)
    assert rows(file(text)) == [
      (("#", "SYM"), ("#tag", "NOUN"), ("#", "SYM")),
      (("#", "SYM"), ("the", "DET")),
    ]
  assert not capsys.readouterr().err


def test_odd_characters_end_neither_lines_nor_columns(file):
  # Characters at which str.splitlines and str.split would split.
  odd = ["a\u2028b", "\x85", "\u00a0", "\u3000", "a\x0cb", "\u200d", "\ufe0f"]
  for between in ("\t", " "):
    text = "".join(f"{word}{between}O\n" for word in odd)
    assert rows(file(text)) == [tuple((word, "O") for word in odd)]


@pytest.mark.parametrize("name", ["f.txt", "f.conllu"])
def test_columns_of_conllu_can_be_chosen(file, name):
  path = file(CONLLU, name)
  for options, words, found in (
    ({}, "Eve ran off", "PROPN VERB ADP"),
    ({"conllu_tag": "xpos"}, "Eve ran off", "NNP VBD RP"),
    ({"tag_column": 9}, "Eve ran off", "S-PER O O"),
    ({"token_column": 1, "tag_column": -3}, "Eve ran off", "nsubj root case"),
    ({"token_column": 2, "tag_column": 9}, "eve run off", "S-PER O O"),
    ({"token_column": 2}, "eve run off", "PROPN VERB ADP"),
  ):
    (example,) = tags.read_file(path, **options)
    assert example.words == tuple(words.split())
    assert example.tags == tuple(found.split())


def test_what_is_written_is_read_again(file):
  """Characters that can't stand in a field become spaces or _."""
  pairs = [[("EU", "a b", "\u2028"), ("B-ORG", "O", "O")], [("#",), ("O",)]]
  text = columns.format_columns(pairs)
  assert text == "EU\tB-ORG\na b\tO\n\u2028\tO\n\n#\tO\n\n"
  assert [tuple(zip(*x, strict=True)) for x in rows(file(text))] == [
    tuple(map(tuple, x)) for x in pairs
  ]
  odd = [[["a\tb", "", " "], ["O", "O", "O"]]]
  assert columns.format_columns(odd) == "a b\tO\n_\tO\n \tO\n\n"
  assert columns.format_columns(odd, " ") == "a_b O\n_ O\n_ O\n\n"


def test_ranges_and_empty_nodes_of_conllu_plus_are_no_words(file, capsys):
  text = (
    "1-2\tzum\tO\n1\tzu\tO\n2\tdem\tO\n3\tBonn\tB-LOC\n3.1\t_\tO\n\n"
    "1\tBob\tB-PER\n2\tran\tO\n"
  )
  path = file(text, "a.conllup")
  found = tags.read_file(path, token_column=1)
  assert [x.words for x in found] == [("zu", "dem", "Bonn"), ("Bob", "ran")]
  assert [x.lines for x in found] == [(2, 3, 4), (7, 8)]
  assert ": 2 ranges of words and empty nodes" in capsys.readouterr().err
  (first, _) = layers.read_layers(path, token_column=1)  # An ID is no layer.
  assert first.spans == (bio.Entity("LOC", 2, 3),)
  with pytest.raises(DataError, match="column 0 numbers the words; set --con"):
    tags.read_file(path)
  other = text.replace("2\tran", "4-5\tran")  # One row decides nothing.
  assert len(tags.read_file(file(other), token_column=1)[0].words) == 3


@pytest.mark.parametrize("score", ["0.93", "1"])
def test_scores_before_the_words_are_no_ids(file, score):
  """Some look like empty nodes, as 5.1, but every sentence has a word 1."""
  path = file(f"{score}\tAnn\tB-PER\n0.8\tran\tO\n\n0.93\tBo\tB-PER\n")
  found = tags.read_file(path, token_column=1)
  assert [x.words for x in found] == [("Ann", "ran"), ("Bo",)]
  assert tags.read_file(path)[1].words == ("0.93",)
