"""Which tokens begin a word where a script has no spaces between words."""

import types

import numpy as np
import pytest

from maskedlm.data.tokenizers import spelling
from maskedlm.data.tokenizers.tokenizer import train_tokenizer

LETTERS = "学校ですかなナสวด"
# A mark, a long vowel's sign, punctuation; scripts with spaces.
OTHERS = "ัีー。aनम्한국"
RNG = np.random.default_rng(3)
LINES = ["".join(RNG.choice([*LETTERS, *OTHERS], 9)) for _ in range(300)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_letters_of_scripts_without_spaces_begin_a_word(kind):
  made = train_tokenizer(
    LINES, kind=kind, vocab_size=340 if kind == "bpe" else 60, lowercase=False
  )
  begins = {}
  for i in range(made.vocab_size):
    if i not in made.special_ids.tolist():
      begins[made.decode([made.special.unk, i])[len("<unk>") :]] = (
        bool(made.starts_word[i]),
        bool(made.follows_space[i]),
      )
  found = {letter: begins[letter] for letter in LETTERS + OTHERS}
  assert found == {letter: (letter in LETTERS, False) for letter in found}


@pytest.mark.parametrize(
  ("spelled", "expected"),
  [
    (b"\n", True),
    (b"\t\t", True),
    (b"a", False),
    (b"\xc3", False),
    (b"\xe5", True),  # Han only.
    (b"\xe3", False),  # Kana or a full stop.
    (b"\xe3\x81", True),  # Hiragana.
    (b"\xe0", False),
    (b"\xe0\xb8", True),  # Thai.
    (b"\xf0\x9f", False),  # Emoji.
    (b"\xf0\xa0", True),  # Han.
    (b"\xad", False),  # The end of a character.
    ("学a".encode(), True),
    (b"\xe3\x80\x82", False),  # The full stop.
  ],
)
def test_parts_of_letters(spelled, expected):
  letters = {spelling.byte_level_bytes(chr(i)): chr(i) for i in range(33, 324)}
  token = "".join(letters[bytes([byte])] for byte in spelled)
  library = types.SimpleNamespace(
    kind="bpe",
    tokens=[token, letters[b" "]],
    definition={"pre_tokenizer": {"type": "ByteLevel"}},
  )
  assert spelling.begins_word(library).tolist() == [expected, False]
