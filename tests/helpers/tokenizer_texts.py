"""Texts and tokenizers for the tests of data/tokenizers."""

import importlib

import numpy as np
import sentencepiece
from hypothesis import strategies as st

ODD = [
  "Plain words, with punctuation: don't stop-it (U.S., $3.50)!",
  "NFC caf\u00e9 na\u00efve \u1ec7 \u00c5",
  "NFD cafe\u0301 nai\u0308ve e\u0323\u0302 A\u030a",
  "a\u0301\u0302\u0303\u0304 many marks \u0301alone",
  "\U0001f600\U0001f469\u200d\U0001f467 emoji \U0001f44d\U0001f3fd\u2764\ufe0f",
  "日本語です 中文，标点。 한국어 한국어",
  "مرحبا بالعالم שלום עולם mixed",
  "हिन्दी में ไทย Straße İstanbul",
  "\ufb01ne \u00bd \u2460 \u337f \ufb03 wide ＡＢＣ",
  "▁odd ##ing Ġx ĊĀ",
  "NUL a\x00b and \x07 controls",
]
# Characters that a normalizer may join, divide, remove or take for spaces.
ODD_PARTS = [
  *("a", "b", ".", "'", "cat", " ", "  ", "\t", "\n", "\xa0", "\u3000"),
  *("\u2009", "\u200b", "\u200d", "\u200e", "\u202b", "\ufeff", "\xad"),
  *("\u0301", "e\u0301", "é", "か\u3099", "が", "ｶﾞ"),
  *("한", "\u1112\u1161", "\u11ab"),
  *("\ufb01", "\xbd", "İ", "ß", "Σ", "ﷺ", "…", "①", "Ａ", "\u212a"),
  *("😀", "👍🏽", "👩\u200d👧", "🇩🇪", "❤\ufe0f"),
  *("我", "学", "カ", "ไทย", "กำ", "कि", "\u094d", "שלום", "لا"),
  *("\0", "\x07", "\x85", "\u2028", "\ue000", "\U000e0001"),
]
ODD_TEXTS = st.lists(
  st.one_of(
    st.sampled_from(ODD_PARTS),
    st.characters(
      blacklist_categories=["Cs", "Cn"], blacklist_characters="\ufffd"
    ),
  ),
  max_size=10,
).map("".join)
STRANGE = [
  "",
  " ",
  "\n",
  "\t \r\n",
  "\x00",
  "\ud800",
  "a\ud800\udfffb",
  "\u0301",
]
# The types whose words are separated by whitespace only.
SPACED = [(kind, low) for kind in ("bpe", "unigram") for low in (True, False)]
KINDS = [("wordpiece", True), ("wordpiece", False), *SPACED]


# Lines with accents, ligatures and tones, and random words of the letters.
_RNG = np.random.default_rng(3)
ACCENTED = ["Zoë's ﬁne café №5 tế", "Zoë the fine tế ½", "café no tế five"] * 20
ACCENTED += [
  " ".join("".join(_RNG.choice(list("cafinetvo"), 4)) for _ in range(9))
  for _ in range(60)
]


def sentences():
  """Returns English text of the standard library, and ODD twice."""
  lines = []
  for name in ("argparse", "decimal", "logging", "random", "statistics"):
    module = importlib.import_module(name)
    # Private names may depend on what else has been imported.
    public = [x for name, x in vars(module).items() if name[0] != "_"]
    for thing in (module, *public):
      lines += (getattr(thing, "__doc__", None) or "").splitlines()
  return lines + 2 * ODD


def train_sentencepiece(path, texts=None, **options):
  """Writes a .model with sentencepiece's defaults: no pad, no mask."""
  with path.open("wb") as file:
    sentencepiece.SentencePieceTrainer.Train(
      sentence_iterator=iter(texts or sentences()),
      model_writer=file,
      minloglevel=2,
      **{"vocab_size": 300, "character_coverage": 0.98, **options},
    )
