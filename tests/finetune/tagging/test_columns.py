"""Files of token columns as others write them: comments, ragged lines, more."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.spans import layered_files
from maskedlm.finetune.tagging import columns, conll

CONLLU = (
  "# text = Eve ran\n1\tEve\teve\tPROPN\tNNP\t_\t2\tnsubj\t_\tS-PER\n"
  "2-3\tranoff\t_\t_\t_\t_\t_\t_\t_\t_\n"
  "2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\tO\n"
  "3\toff\toff\tADP\tRP\t_\t2\tcase\t_\tO\n\n"
)


@pytest.fixture
def write(tmp_path):
  def make(text, name="f.conll"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return str(path)

  return make


def pairs(sentences):
  return [
    list(zip(s.words, s.tags or "?" * len(s.words), strict=True))
    for s in sentences
  ]


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
def test_comments_before_sentences(write, capsys, comment):
  text = f"{comment}\na _ _ O\nfork _ _ B-X\n\n\n{comment}\n# _ _ O\n"
  found = conll.read_sentences(write(text))
  assert pairs(found) == [[("a", "O"), ("fork", "B-X")], [("#", "O")]]
  if comment.startswith(("# ", "#\t")):
    count = 2 * len(comment.splitlines())
    assert f"comments (# ...): {count}, the first in line 1" in (
      capsys.readouterr().err
    )


def test_the_last_suffix_says_the_format(write):
  found = conll.read_sentences(write("Ann\tB-PER\n", "from.jsonl.conll"))
  assert pairs(found) == [[("Ann", "B-PER")]]


def test_hashes_with_tags_are_words(write, capsys):
  for tab in (" ", "\t"):
    text = "# SYM\n#tag NOUN\n# SYM\n\n# SYM\nthe DET\n".replace(" ", tab)
    assert pairs(conll.read_sentences(write(text))) == [
      [("#", "SYM"), ("#tag", "NOUN"), ("#", "SYM")],
      [("#", "SYM"), ("the", "DET")],
    ]
  assert not capsys.readouterr().err


def test_a_comment_within_a_sentence_is_refused_in_its_line(write):
  with pytest.raises(DataError) as error:
    conll.read_sentences(write("a O\n# a comment here\nb O\n"))
  assert ":2: 4 columns between spaces; expected 2, as most" in str(error.value)
  assert "is it a comment?" in str(error.value)


def test_the_columns_asked_for_are_taken_from_lines_that_have_them(
  write, capsys
):
  path = write("a X O more\nb X B-P\nc Y O\nd Y O x y\n")
  found = conll.read_sentences(path, tag_column=2)
  assert found[0].tags == ("O", "B-P", "O", "O")
  logged = capsys.readouterr().err
  assert "lines with other than 3 columns: 2, the first in line 1" in logged
  # Where the last is meant is unclear.
  with pytest.raises(DataError, match=r":1: 4 columns .* expected 3"):
    conll.read_sentences(path)
  with pytest.raises(DataError, match=r":3: 2 columns .* expected 3"):
    conll.read_sentences(write("a X O\nb X O\nc O\n"), tag_column=2)


def test_spaces_around_columns_and_words_with_spaces(write):
  assert pairs(
    conll.read_sentences(write(" a   O \n  b \t B-X\t\nc  O\n"))
  ) == [[("a", "O"), ("b", "B-X"), ("c", "O")]]
  text = "\ufeffNew York \tB-X\r\n a\t O\t\r\n"
  assert pairs(conll.read_sentences(write(text))) == [
    [("New York", "B-X"), ("a", "O")]
  ]


def test_names_of_columns_are_no_word(write, capsys):
  found = conll.read_sentences(write("Token\tTag\na\tO\nb\tB-X\n"))
  assert pairs(found) == [[("a", "O"), ("b", "B-X")]]
  assert ":1: left out, the names of the columns" in capsys.readouterr().err
  assert len(conll.read_sentences(write("word tag\n\na O\n"))) == 1
  # Names without a tag's name are words.
  assert len(conll.read_sentences(write("word O\na O\n"))[0].words) == 2


def test_tags_that_are_not_there(write):
  assert conll.read_sentences(write("a\t_\nb\t_\n"))[0].tags is None
  with pytest.raises(DataError, match=r":2: the word has no tag \(_\)"):
    conll.read_sentences(write("a\tO\nb\t_\n"))
  with pytest.raises(DataError, match=r":2: the tag is empty"):
    conll.read_sentences(write("a\tX\tO\nb\t\tO\n"), tag_column=1)


def test_numbers_and_names_of_files_are_no_words(write):
  for text in ("0\tEve\tO\n1\tran\tO\n", "1 Eve O\n2 ran O\n\n3 a O\n"):
    with pytest.raises(DataError, match=r"column 0 numbers the words; set"):
      conll.read_sentences(write(text))
    assert conll.read_sentences(write(text), token_column=1)
  with pytest.raises(DataError, match=r"column 0 is always 'bc/x'"):
    conll.read_sentences(write("bc/x Eve O\nbc/x ran O\n"))
  with pytest.raises(DataError, match="columns between commas"):
    conll.read_sentences(write("a,O\nb,O\n", "f.csv"))


# --- Options are obeyed or refused ---


@pytest.mark.parametrize("name", ["f.txt", "f.conllu"])
def test_columns_of_conllu_can_be_chosen(write, name):
  path = write(CONLLU, name)
  for options, words, tags in (
    ({}, "Eve ran off", "PROPN VERB ADP"),
    ({"conllu_tag": "xpos"}, "Eve ran off", "NNP VBD RP"),
    ({"tag_column": 9}, "Eve ran off", "S-PER O O"),
    ({"token_column": 1, "tag_column": -3}, "Eve ran off", "nsubj root case"),
    ({"token_column": 2, "tag_column": 9}, "eve run off", "S-PER O O"),
    ({"token_column": 2}, "eve run off", "PROPN VERB ADP"),
  ):
    (found,) = conll.read_sentences(path, **options)
    assert (found.words, found.tags) == (
      tuple(words.split()),
      tuple(tags.split()),
    )
  with pytest.raises(DataError, match="are the same one of 10 columns"):
    conll.read_sentences(path, tag_column=1)
  with pytest.raises(DataError, match=r":2: tag_column=10, but the line has"):
    conll.read_sentences(path, tag_column=10)
  assert [s.spans for s in layered_files.read_flat(path, tag_column=9)] == [
    (("PER", 0, 1),)
  ]


def test_options_without_an_effect_are_refused(write):
  path = write("a O\nb X\n")
  with pytest.raises(DataError, match=r"task\.conllu_tag=xpos has no effect"):
    conll.read_sentences(path, conllu_tag="xpos")
  # It is not asked for if the column is named, as beside a checkpoint.
  (found,) = conll.read_sentences(path, conllu_tag="xpos", tag_column=1)
  assert found.tags == ("O", "X")
  path = write('{"tokens": ["a"], "tags": ["O"]}\n', "f.jsonl")
  for options in ({"token_column": 1}, {"tag_column": 2}):
    with pytest.raises(DataError, match="have no effect: leave them out"):
      conll.read_sentences(path, **options)
  with pytest.raises(DataError, match="CoNLL-U, whose columns are no layers"):
    layered_files.read_layers(write(CONLLU))


def test_a_column_of_numbers_is_no_layer(write):
  text = "#\tsource\n1\tEve\tB-X\tO\n2\tEden\tI-X\tB-Y\n\n1\ta\tO\tO\n"
  found = layered_files.read_layers(write(text), token_column=1)
  assert [s.spans for s in found] == [(("X", 0, 2), ("Y", 1, 2)), ()]


# --- JSON lines and Parquet ---


def test_lists_of_words_and_tags(write, capsys):
  text = (
    '{"tokens": ["Eve", "ran"], "ner_tags": ["B-X", "O"], "pos_tags": ["N", '
    '"V"], "xpos": ["n", "v"]}\n\n{"tokens": []}\n'
    '{"tokens": ["a"], "ner_tags": ["O"], "pos_tags": ["D"], "xpos": ["d"]}\n'
  )
  for name in ("f.jsonl", "f.txt"):
    path = write(text, name)
    for options, tags in (
      ({"entities": True}, ["B-X O", "O"]),
      ({}, ["N V", "D"]),
      ({"conllu_tag": "xpos"}, ["n v", "d"]),
    ):
      found = conll.read_sentences(path, **options)
      assert [" ".join(s.tags) for s in found] == tags
      assert [s.lines for s in found] == [(1, 1), (4,)]
    assert "rows without words, left out: 1" in capsys.readouterr().err
  found = conll.read_sentences(write('{"words": ["a"]}\n'))
  assert (found[0].words, found[0].tags) == (("a",), None)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ('{"tokens": ["a", "b"], "tags": ["O"]}', ":2: 2 words, but 1 tag"),
    ('{"text": "a"}', ":2: no 'tokens' or 'words'; there are 'text'"),
    ('{"tokens": "a"}', ":2: 'tokens' is 'a'; expected a list"),
    ('{"tokens": ["a", 3]}', ":2: words are not all texts"),
    ('{"tokens": ["a", ""]}', ":2: words are not all texts"),
    ('{"tokens": ["a"], "tags": [-100]}', ":2: the tag -100 is none"),
    ('{"tokens": ["a"], "tags": [null]}', ":2: the tag None is none"),
    ('{"tokens": ["a"]}', ":2: the word has no tag (_), but others do"),
    ("a O", ":2: not JSON"),
    ("[1]", ":2: a JSON list; expected an object"),
  ],
)
def test_bad_rows_are_named(write, text, message):
  path = write('{"tokens": ["a"], "tags": ["O"]}\n' + text, "f.jsonl")
  with pytest.raises(DataError) as error:
    conll.read_sentences(path, entities=True)
  assert str(error.value).startswith(path) and message in str(error.value)


def test_parquet_by_its_first_bytes(write):
  pyarrow = pytest.importorskip("pyarrow")
  parquet = pytest.importorskip("pyarrow.parquet")
  table = pyarrow.table({"tokens": [["Eve", "ran"]], "ner_tags": [[3, 0]]})
  path = write("", "f.conll")
  parquet.write_table(table, path)
  assert conll.read_sentences(path, entities=True)[0].tags == ("3", "0")
  features = {
    "ner_tags": {"feature": {"_type": "ClassLabel", "names": [*"OBI", "B-X"]}}
  }
  meta = str({"info": {"features": features}}).replace("'", '"')
  parquet.write_table(
    table.replace_schema_metadata({"huggingface": meta}), path
  )
  found = conll.read_sentences(path, entities=True)
  assert pairs(found) == [[("Eve", "B-X"), ("ran", "O")]]


def test_a_file_is_conllu_by_its_name_or_its_first_word(write):
  for text, name, is_it in (
    (CONLLU, "f.txt", True),
    (CONLLU.replace("\t", " "), "f.txt", False),
    ("#\tO\n" + CONLLU, "f.txt", True),
    ("1\ta\tO\n", "f.txt", False),
  ):
    assert columns.read_columns(write(text, name)).is_conllu == is_it
