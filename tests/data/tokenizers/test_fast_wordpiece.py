"""nanotoken returns the ids of `tokenizers`, or is not used.

Before its release was accepted, 14 million strings were compared (all text of
the shared data, each character alone and between others, 240,000 random ones)
without a difference. Here it is a sample of the same kinds.
"""

import itertools
import json
import random
import sys

import numpy as np
import pytest
import tokenizers

from maskedlm.data.tokenizers import fast_wordpiece, training
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

pytest.importorskip("nanotoken")

# Scripts that normalizers, lowercasing or splitting treat differently.
RANGES = [
  *((0x20, 0x7F), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600)),
  *((0x600, 0x900), (0x900, 0x1200), (0x1E00, 0x2100), (0x2100, 0x3000)),
  *((0x3000, 0x3400), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0x10000)),
  *((0x10000, 0x10400), (0x1D400, 0x1D800), (0x1F300, 0x1FA00)),
  *((0x20000, 0x20010), (0x2F800, 0x2FA20), (0xE0000, 0xE0200)),
]
SPACES = " \t\n\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\u200b\u200d\ufeff\0\ufffd"
PIECES = [
  *("[MASK]", "[CLS]", "[UNK]", "##", "##s", "İ", "ς", "Σ", "ß", "ﬁ"),
  *("newword", "Newword", "Ünï", "two words", "a" * 100, "a" * 101),
]
WORDS = (
  "the masked model reads words , new and two : café naïve über ς 日 本 한"
)
NORMALIZERS = [
  {"type": "BertNormalizer"}
  | dict(
    zip(
      ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"),
      values,
      strict=True,
    )
  )
  for values in itertools.product(
    (True, False), (True, False), (None, True, False), (True, False)
  )
]
NORMALIZERS += [
  {"type": "Sequence", "normalizers": [{"type": form}, NORMALIZERS[0]]}
  for form in ("NFC", "NFD", "NFKC", "NFKD")
]


def _definition(**changes):
  """Returns a small tokenizer.json: words, letters, and ## with letters."""
  words = list(dict.fromkeys((WORDS + " " + WORDS.title()).split()))
  letters = sorted({*"".join(words), *map(chr, range(0x21, 0x17F))} - {*words})
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  tokens = [*special, *words, *letters, *(f"##{x}" for x in letters)]
  return json.loads(training.bert_json(tokens, lowercase=True)) | changes


def _with_added_words(words, first_id, **flags):
  definition = _definition()
  flags = {
    **dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False),
    "normalized": True,
    **flags,
  }
  words = [
    {"id": first_id + i, "content": word, **flags}
    for i, word in enumerate(words)
  ]
  return definition | {"added_tokens": definition["added_tokens"] + words}


def _texts(seed, count):
  rng = random.Random(seed)

  def piece(ranges):
    return rng.choices(
      (
        rng.choice(SPACES),
        rng.choice(PIECES),
        rng.choice(WORDS),
        chr(rng.randrange(*rng.choice(ranges))),
      ),
      (2, 1, 3, 4),
    )[0]

  texts = []
  for _ in range(count):
    ranges = rng.sample(RANGES, 3)
    texts.append("".join(piece(ranges) for _ in range(rng.randint(0, 40))))
  return texts


def _make_encoder(definition):
  peer = tokenizers.Tokenizer.from_str(json.dumps(definition))
  return fast_wordpiece.make_encoder(definition, peer.get_vocab())


def _assert_same_ids(definition, texts):
  peer = tokenizers.Tokenizer.from_str(
    json.dumps(definition | {"post_processor": None})
  )
  peer.encode_special_tokens = True
  batch = _make_encoder(definition)(texts)
  expected = peer.encode_batch_fast(texts, add_special_tokens=False)
  for text, ids, encoding in zip(texts, batch, expected, strict=True):
    assert ids.dtype == np.int32
    assert ids.tolist() == encoding.ids, repr(text)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_ids_with_every_normalizer(normalizer):
  _assert_same_ids(_definition(normalizer=normalizer), _texts(17, 150))


@pytest.mark.parametrize("flag", ["special", "single_word", "lstrip", "rstrip"])
@pytest.mark.parametrize("normalized", [True, False])
def test_ids_with_added_words(flag, normalized):
  flags = {"normalized": normalized, flag: flag != "special"}
  size = len(_definition()["model"]["vocab"])
  words = ["newword", "Ünï", "two words"]
  _assert_same_ids(_with_added_words(words, size, **flags), _texts(57, 300))


def test_ids_of_each_character_between_others():
  some = itertools.chain(range(0x3000), range(0x3000, 0x30000, 17))
  characters = [chr(c) for c in some if not 0xD800 <= c < 0xE000]
  _assert_same_ids(_definition(), [f"a{c}b é{c} {c}" for c in characters])


@pytest.mark.parametrize(
  "changes",
  [
    {"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "-"}},
    {
      "normalizer": {
        "type": "Replace",
        "pattern": {"String": "a"},
        "content": "",
      }
    },
    {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}},
  ],
)
def test_other_tokenizers_are_not_encoded(changes):
  assert _make_encoder(_definition(**changes)) is None


def test_added_words_that_tokenizers_renumbers_are_not_encoded():
  size = len(_definition()["model"]["vocab"])
  assert _make_encoder(_with_added_words(["newword"], size)) is not None
  assert _make_encoder(_with_added_words(["newword"], size + 7)) is None


def test_only_the_compared_release_is_used(monkeypatch, tmp_path):
  (tmp_path / "tokenizer.json").write_text(json.dumps(_definition()))
  made = []
  make_encoder = fast_wordpiece.make_encoder
  monkeypatch.setattr(
    fast_wordpiece,
    "make_encoder",
    lambda *args: made.append(make_encoder(*args)) or made[-1],
  )
  (ids,) = load_tokenizer(tmp_path).encode_batch(["the masked model"])
  monkeypatch.setattr(fast_wordpiece, "RELEASE", "0.1.1")
  (same,) = load_tokenizer(tmp_path).encode_batch(["the masked model"])
  monkeypatch.setitem(sys.modules, "nanotoken", None)  # Raises ImportError.
  load_tokenizer(tmp_path).encode_batch(["the"])
  assert [bool(encode) for encode in made] == [True, False, False]
  assert ids.tolist() == same.tolist()


def test_memory_does_not_grow_with_new_words():
  resource = pytest.importorskip("resource")
  encode = _make_encoder(_definition())
  rng = random.Random(3)

  def peak_after_new_words():
    for _ in range(4):
      encode([f"{rng.getrandbits(64):x}" for _ in range(100_000)])
    unit = 1024 if sys.platform == "linux" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

  before = peak_after_new_words()
  assert peak_after_new_words() - before < 16 << 20
