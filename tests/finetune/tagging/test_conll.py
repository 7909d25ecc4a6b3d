"""CoNLL columns and CoNLL-U: reading, writing, errors."""

import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune.tagging import columns, conll
from maskedlm.finetune.tagging.conll import TaggedSentence

CONLLU = """\
# sent_id = 1
# text = Don't!
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
3\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\tSpaceAfter=No

1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_
2\tTrả lời\ttrả lời\tVERB\tV\t_\t0\troot\t_\t_
"""


@pytest.fixture
def file(tmp_path):
  """Writes a file and returns its path: (text or bytes, name)."""

  def make(content, name="f.conll"):
    path = tmp_path / name
    if isinstance(content, str):
      content = content.encode()
    path.write_bytes(content)
    return str(path)

  return make


def test_columns_between_tabs(file):
  path = file("EU\tB-ORG\n#\tO\n.\tO\n\nTrả lời\tO\n")
  assert conll.read_sentences(path) == [
    TaggedSentence(("EU", "#", "."), ("B-ORG", "O", "O"), (1, 2, 3)),
    TaggedSentence(("Trả lời",), ("O",), (5,)),
  ]


def test_columns_between_spaces_with_documents(file):
  text = (
    "-DOCSTART- -X- -X- O\n\nEU NNP  B-NP B-ORG\nrejects VBZ B-VP O \n"
    "-DOCSTART- -X- O O\n\n \n\t\n\nPeter NNP B-NP B-PER\n\n\n"
  )
  path = file(text)
  assert conll.read_sentences(path) == [
    TaggedSentence(("EU", "rejects"), ("B-ORG", "O"), (3, 4)),
    TaggedSentence(("Peter",), ("B-PER",), (10,)),
  ]
  tags = [s.tags for s in conll.read_sentences(path, tag_column=1)]
  assert tags == [("NNP", "VBZ"), ("NNP",)]
  words = [
    s.words for s in conll.read_sentences(path, token_column=1, tag_column=0)
  ]
  assert words == [("NNP", "VBZ"), ("NNP",)]


def test_windows_files(file):
  plain = "EU\tB-ORG\n.\tO\n\nPeter\tB-PER\n"
  expected = conll.read_sentences(file(plain))
  assert conll.read_sentences(file(plain.replace("\n", "\r\n"))) == expected
  assert (
    conll.read_sentences(file(b"\xef\xbb\xbf" + plain.encode())) == expected
  )
  assert conll.read_sentences(file(plain.rstrip("\n"))) == expected


def test_odd_characters_end_neither_lines_nor_columns(file):
  # Characters at which str.splitlines and str.split would split.
  odd = ["a\u2028b", "\x85", "\u00a0", "\u3000", "a\x0cb", "\u200d", "\ufe0f"]
  path = file("".join(f"{word}\tO\n" for word in odd))
  assert conll.read_sentences(path) == [
    TaggedSentence(tuple(odd), ("O",) * 7, tuple(range(1, 8)))
  ]
  path = file("".join(f"{word} O\n" for word in odd))
  assert conll.read_sentences(path)[0].words == tuple(odd)


def test_a_single_column_has_no_tags(file):
  assert conll.read_sentences(file("EU\nrejects\n\nPeter\n")) == [
    TaggedSentence(("EU", "rejects"), None, (1, 2)),
    TaggedSentence(("Peter",), None, (4,)),
  ]


@pytest.mark.parametrize("name", ["f.conllu", "f.txt"])
def test_conllu(file, name):
  path = file(CONLLU, name)
  assert columns.read_columns(path).is_conllu
  assert conll.read_sentences(path) == [
    TaggedSentence(("Do", "n't", "!"), ("AUX", "PART", "PUNCT"), (4, 5, 7)),
    TaggedSentence(("#", "Trả lời"), ("SYM", "VERB"), (9, 10)),
  ]
  assert conll.read_sentences(path, conllu_tag="xpos")[0].tags == (
    "VBP",
    "RB",
    ".",
  )
  assert conll.read_sentences(
    file(CONLLU.replace("\n", "\r\n"), name)
  ) == conll.read_sentences(file(CONLLU, name))


def test_conllu_without_tags(file):
  line = "{}\t{}\t_\t_\t{}\t_\t_\t_\t_\t_\n"
  path = file(line.format(1, "a", "_") + line.format(2, "b", "X"), "f.conllu")
  assert conll.read_sentences(path)[0].tags is None  # UPOS.
  with pytest.raises(DataError, match=r"f.conllu:1: the word has no tag \(_\)"):
    conll.read_sentences(path, conllu_tag="xpos")


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "the file is empty; expected labelled examples"),
    ("\n\n-DOCSTART- O\n \n", "the file has no words"),
    ("a\tO\nb\tX\tO\n", ":2: 3 columns between tabs; expected 2, as most"),
    ("a\tO\n\nb\n", ":3: 1 column between tabs; expected 2"),
    ("a O\nb\n", ":2: 1 column between spaces; expected 2"),
    ("a\tO\nb O\n", ":2: 1 column between tabs; expected 2"),
    ("a\tO\nb\t\n", ":2: 1 column"),
    ("a\tO\n\tO\n", ":2: the word is empty"),
    (b"a\tO\nb\xe9\tO\n", ":2: not UTF-8 (byte 0xe9 at 2 of the line)"),
    (CONLLU.replace("\t_\t1\tpunct", "\t1\tpunct"), ":7: 9 columns between ta"),
    (CONLLU.replace("3\t!", "4\t!"), ":7: ID '4'; expected 3, or a blank line"),
    (CONLLU.replace("1\t#\t", "1\t\t"), ":9: the word is empty"),
    ("1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n", ":1: a sentence without words"),
  ],
)
def test_errors_name_the_line(file, text, message):
  path = file(text)
  with pytest.raises(DataError) as error:
    conll.read_sentences(path)
  assert str(error.value).startswith(path)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_columns_that_are_not_there(file):
  path = file("\na\tO\n")
  with pytest.raises(DataError, match=r":2: tag_column=3, but .* has 2 col"):
    conll.read_sentences(path, tag_column=3)
  with pytest.raises(DataError, match=r":2: token_column=-3, but"):
    conll.read_sentences(path, token_column=-3)
  with pytest.raises(DataError, match="are the same one of 2 columns"):
    conll.read_sentences(path, tag_column=-2)


def test_a_missing_file(tmp_path):
  with pytest.raises(DataError, match="No such file"):
    conll.read_sentences(tmp_path / "none.conll")


def test_what_is_written_is_read_again(file):
  words = [("EU", "a b", "\u2028"), ("#",)]
  tags = [("B-ORG", "O", "O"), ("O",)]
  text = conll.format_columns(list(zip(words, tags, strict=True)))
  assert text == "EU\tB-ORG\na b\tO\n\u2028\tO\n\n#\tO\n\n"
  made = conll.read_sentences(file(text))
  assert [(s.words, s.tags) for s in made] == list(
    zip(words, tags, strict=True)
  )
  for name in ("upos", "xpos"):
    text = conll.format_conllu(zip(words, tags, strict=True), conllu_tag=name)
    made = conll.read_sentences(file(text, "f.conllu"), conllu_tag=name)
    assert [s.words for s in made] == words and [s.tags for s in made] == tags
  # Characters that can't stand in a field.
  assert (
    conll.format_columns([(["a\tb", ""], ["O", "O"])]) == "a b\tO\n_\tO\n\n"
  )


def test_real_files(data_dir):
  """The words and sentences were counted with grep."""
  for path, sentences, words in (
    ("ner/wnut17/wnut17train.conll", 3394, 62730),
    ("ner/wnut17/emerging.dev.conll", 1009, 15733),
    ("ud_pos/Marathi-UFAL/mr_ufal-ud-train.conllu", 373, 2997),
    ("ud_pos/Vietnamese-VTB/vi_vtb-ud-train.conllu", 1400, 20215),
  ):
    found = conll.read_sentences(data_dir / path)
    assert len(found) == sentences
    assert sum(len(s.words) for s in found) == words
    assert all(len(s.words) == len(s.tags) for s in found)
