"""A vocab.txt by itself: its lines, its case and its accents."""

import json

import pytest
import tokenizers

from helpers.tokenizer_texts import ODD
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _write(folder, words):
  path = folder / "vocab.txt"
  path.write_text("\n".join([*SPECIALS, *words]) + "\n", encoding="utf-8")
  return path


def _tokens(tokenizer, text):
  [ids] = tokenizer.encode_batch([text])
  assert tokenizer.encode(text).ids.tolist() == ids.tolist()
  return list(map(tokenizer.tokens, ids))


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_vocab_file_gives_berts_ids(trained, tmp_path, lowercase):
  trained_one, _ = trained["wordpiece", lowercase]
  lines = [trained_one.tokens(i) for i in range(trained_one.vocab_size)]
  vocab = _write(tmp_path, lines[5:])
  tokenizer = load_tokenizer(vocab)  # The case is inferred.
  peer = tokenizers.BertWordPieceTokenizer(str(vocab), lowercase=lowercase)
  for text in ODD:
    expected = peer.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text).ids.tolist() == expected
  assert tokenizer.vocab_size == 1009
  assert tokenizer.special == (0, 1, 2, 3, 4)


def test_a_vocab_file_line_by_line(tmp_path):
  # Windows line ends, a byte order mark, a blank and a repeated line.
  specials = "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
  content = "\ufeff" + specials + "the\n\nthe\n\u2028x\ncat\n##s\n"
  vocab = tmp_path / "vocab.txt"
  vocab.write_bytes(content.replace("\n", "\r\n").encode())
  tokenizer = load_tokenizer(vocab)
  assert tokenizer.vocab_size == 13
  assert tokenizer.encode("The cats").ids.tolist() == [9, 11, 12]
  assert tokenizer.special == (0, 3, 4, 5, 6)
  assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
  assert tokenizer.starts_word.tolist() == 12 * [True] + [False]
  assert tokenizer.encode("[unused0]").ids.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
  ("words", "cased"),
  [
    (["Мой", "новый", "Чай", "Россия", "ёлка"], True),
    (["Ärzte", "ärzte"], True),
    (["Ελλάδα", "καλή"], True),
    (["Đông", "đông"], True),
    (["ձմեռ", "Ձմեռ"], True),
    (["यहाँ", "यह", "की", "के", "में"], False),
    (["น้ำ", "ที่", "ดี"], False),
    (["שָׁלוֹם", "שלום"], False),
    (["がくせい", "かくせい"], False),
    (["한국어", "한국"], False),
    (["новый", "мои"], False),
    (["中国", "中"], False),
    (["çay", "cay"], False),
  ],
)
def test_the_words_of_a_vocabulary_come_out_of_a_text(tmp_path, words, cased):
  path = _write(tmp_path, words)
  tokenizer = load_tokenizer(path)
  if not any("\u4e00" <= word <= "\u9fff" for word in words):
    assert _tokens(tokenizer, " ".join(words)) == words
  # Where no token has a capital, text is lowercased.
  assert (tokenizer.normalize("Q") == "Q") == cased
  assert ("cased" if cased else "uncased") in tokenizer.notes[0].split()[2]
  peer = tokenizers.BertWordPieceTokenizer(
    str(path), lowercase=not cased, strip_accents=False
  )
  expected = peer.encode(" ".join(words), add_special_tokens=False).tokens
  assert _tokens(tokenizer, " ".join(words)) == expected


def test_what_is_stated_decides_over_the_guess(tmp_path):
  path = _write(tmp_path, ["the", "cat"])
  assert _tokens(load_tokenizer(path, lowercase=False), "The") == ["[UNK]"]
  path = _write(tmp_path, ["The", "the", "café", "cafe"])
  low = load_tokenizer(path, lowercase=True)
  assert _tokens(low, "The Café") == ["the", "café"]
  assert "tokenizer.lowercase" in low.notes[0]
  config = tmp_path / "tokenizer_config.json"
  config.write_text(json.dumps({"do_lower_case": True}))
  for lowercase in (None, True):
    tokenizer = load_tokenizer(path, lowercase=lowercase)
    # As in transformers, where accents follow the case.
    assert _tokens(tokenizer, "The Café") == ["the", "cafe"]
    assert "do_lower_case" in tokenizer.notes[0]
