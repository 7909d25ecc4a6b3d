"""Sentences in lines of input, and the text of words."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import sentences
from maskedlm.data.labelled.sentences import Sentence, parse_line, parse_words


def test_a_line_is_a_text_or_an_object():
  found = parse_line(" Jane  met @bob.")
  assert found.words == ("Jane", "met", "@bob", ".")
  assert found.offsets == ((1, 5), (7, 10), (11, 15), (15, 16))
  assert parse_line('{"tokens": ["a b", ""]}') == Sentence(("a b", ""))
  assert parse_line('{"text": "{a"}').words == ("{", "a")
  assert parse_line("{laughs} no").words == ("{", "laughs", "}", "no")
  assert parse_line("\ud800").text == "\ufffd"  # It could not be printed.


def test_words_between_spaces():
  assert parse_words("He  said : no.") == ("He", "said", ":", "no.")
  assert parse_words('{"text": "{ a b."}') == ("{", "a", "b.")
  assert parse_words('{"tokens": ["a b", "c"]}') == ("a b", "c")
  for line in (" ", '{"tokens": []}', '{"tokens": ["a", " "]}'):
    with pytest.raises(DataError, match=r"has no words.*; expected"):
      parse_words(line)


@pytest.mark.parametrize("parse", [parse_line, parse_words])
@pytest.mark.parametrize(
  ("line", "part"),
  [
    ('{"tokens": "a b"}', "'tokens' is 'a b'; expected a list of texts"),
    ('{"tokens": [1]}', "'tokens' is '[1]'; expected a list of texts"),
    ("{}", "no 'text' or 'tokens'; there are no fields; expected"),
    ('{"oops', "not JSON"),
    ('{"text": 1}', "'text' is '1'; expected a text"),
  ],
)
def test_other_lines_are_refused(parse, line, part):
  with pytest.raises(DataError) as error:
    parse(line)
  assert str(error.value).startswith(f"input {line!r}")
  assert part in str(error.value)


def test_words_without_a_text_are_joined_by_spaces():
  text, offsets = sentences.sentence_text(Sentence(("a", "", "b c")))
  assert text == "a  b c" and offsets == [(0, 1), (2, 2), (3, 6)]
  found = parse_line("Oh, no")
  assert sentences.sentence_text(found) == ("Oh, no", ((0, 2), (2, 3), (4, 6)))
