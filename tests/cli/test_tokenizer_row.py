"""`maskedlm tokenizer --try` shows a row as a model reads it."""

import pytest

from maskedlm.cli import main
from maskedlm.data.tokenizers import spelling
from maskedlm.runtime import console

# The tokens of Figure 2 of BERT (arXiv:1810.04805).
TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] my dog is cute he likes play ##ing"
ROW = [
  "[CLS]",
  "my",
  "dog",
  "is",
  "cute",
  "[SEP]",
  "he",
  "likes",
  "play",
  "##ing",
  "[SEP]",
]


@pytest.fixture
def show(tmp_path, capsys):
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join([*TOKENS.split(), ""]))

  def run(*texts):
    code = main.main(["tokenizer", "--try", str(path), *texts])
    out, err = capsys.readouterr()
    header, *lines = out.splitlines() or [""]
    assert code or header.split()[:3] == ["position", "segment", "id"]
    return code, err, [line.split() for line in lines]

  return run


def test_a_pair_is_bert_s_figure(show):
  _, _, lines = show("my dog is cute\tHe likes playing")
  assert [line[0] for line in lines] == [*map(str, range(11))]
  assert [line[1] for line in lines] == [*"AAAAAABBBBB"]
  ids = [TOKENS.split().index(token) for token in ROW]
  assert [line[2] for line in lines] == [*map(str, ids)]
  assert [line[3] for line in lines] == ROW
  assert lines[6][4:] == ["0:2", "'He'"] and lines[9][4:] == ["13:16", "'ing'"]
  assert all(len(lines[i]) == 4 for i in (0, 5, 10))  # [CLS] and [SEP].


def test_a_text_of_several_words_and_an_empty_one(show):
  _, _, lines = show("my", "dog")
  assert [line[3] for line in lines] == ["[CLS]", "my", "dog", "[SEP]"]
  assert lines[2][1:] == ["A", "6", "dog", "3:6", "'dog'"]
  _, _, lines = show()
  assert [line[3] for line in lines] == ["[CLS]", "[SEP]"]


def test_byte_level_tokens_have_their_characters():
  """ü is the bytes C3 BC; a part of it stays as the vocabulary writes it."""
  for token, shown in (
    ("ĠfÃ¼r", "Ġfür"),
    ("Ã", "Ã"),
    ("¼r", "¼r"),
    ("ĊĠ", "ĊĠ"),
    ("<mask>", "<mask>"),
    ("▁a", "▁a"),
  ):
    assert spelling.readable(token) == shown


def test_wide_characters_are_aligned():
  wide = console.table(
    ("a", "b"), [("日本", "x"), ("é\u0301", "y")], align="<<"
  )
  assert wide == ["a     b", "日本  x", "é\u0301     y"]


def test_three_texts_are_refused(show):
  code, err, lines = show("a\tb\tc")
  assert code == 2 and "2 tabs" in err and not lines
