"""nanotoken gives the ids of tokenizers, or leaves the work to it.

Before its release was taken, 14 million strings were compared so (all text of
the shared data, each character alone and between others, 240,000 at random):
no difference. Here it is a sample of the same kinds.
"""

import json
import random
import sys

import numpy as np
import pytest
import tokenizers

from maskedlm.data.tokenizers import fast_wordpiece, training
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

pytest.importorskip("nanotoken")

# Planes and scripts that normalizers, lowercasing or splitting treat apart.
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


def _definition(**changed):
  """A small tokenizer.json: words, all letters, and every ## of them."""
  words = list(dict.fromkeys((WORDS + " " + WORDS.title()).split()))
  letters = sorted({*"".join(words), *map(chr, range(0x21, 0x17F))} - {*words})
  pieces = [f"##{letter}" for letter in letters]
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  tokens = [*special, *words, *letters, *pieces]
  made = json.loads(
    training.bert_json(
      tokens, lowercase=True, strip_accents=None, handle_chinese_chars=True
    )
  )
  return made | changed


def _texts(seed, count):
  rng = random.Random(seed)
  texts = []
  for _ in range(count):
    ranges = rng.sample(RANGES, 3)
    text = ""
    for _ in range(rng.randint(0, 40)):
      chance = rng.random()
      if chance < 0.2:
        text += rng.choice(SPACES)
      elif chance < 0.3:
        text += rng.choice(PIECES)
      elif chance < 0.6:
        text += rng.choice(WORDS)
      else:
        text += chr(rng.randrange(*rng.choice(ranges)))
    texts.append(text)
  return texts


def _encoder(definition):
  peer = tokenizers.Tokenizer.from_str(json.dumps(definition))
  return fast_wordpiece.make_encoder(definition, peer.get_vocab())


def _assert_the_same_ids(definition, texts):
  peer = tokenizers.Tokenizer.from_str(
    json.dumps(definition | {"post_processor": None})
  )
  peer.encode_special_tokens = True
  batch = _encoder(definition)(texts)
  wanted = peer.encode_batch_fast(texts, add_special_tokens=False)
  for text, ids, encoding in zip(texts, batch, wanted, strict=True):
    assert ids.dtype == np.int32
    assert ids.tolist() == encoding.ids, repr(text)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("chinese", [True, False])
@pytest.mark.parametrize("accents", [None, True, False])
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_the_same_for_every_bert_normalizer(
  clean, chinese, accents, lowercase
):
  definition = _definition(
    normalizer={
      "type": "BertNormalizer",
      "clean_text": clean,
      "handle_chinese_chars": chinese,
      "strip_accents": accents,
      "lowercase": lowercase,
    }
  )
  _assert_the_same_ids(definition, _texts(17, 500))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_ids_are_the_same_after_a_unicode_normal_form(form):
  bert = _definition()["normalizer"]
  both = {"type": "Sequence", "normalizers": [{"type": form}, bert]}
  _assert_the_same_ids(_definition(normalizer=both), _texts(31, 1000))


@pytest.mark.parametrize("flag", ["", "single_word", "lstrip", "rstrip"])
@pytest.mark.parametrize("normalized", [True, False])
def test_ids_are_the_same_with_words_that_were_added(flag, normalized):
  flags = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
  flags |= {"normalized": normalized, "special": False}
  if flag:
    flags[flag] = True
  definition = _definition()
  size = len(definition["model"]["vocab"])
  added = [
    {"id": size + i, "content": word, **flags}
    for i, word in enumerate(["newword", "Ünï", "two words"])
  ]
  _assert_the_same_ids(
    definition | {"added_tokens": definition["added_tokens"] + added},
    _texts(57, 1000),
  )


def test_ids_are_the_same_for_each_character_between_others():
  characters = [chr(c) for c in range(0x30000) if not 0xD800 <= c < 0xE000]
  texts = [f"a{c}b é{c} {c}" for c in characters]
  _assert_the_same_ids(_definition(), texts)


def test_a_tokenizer_uses_it_and_text_cannot_forge_special_tokens(
  monkeypatch, tmp_path
):
  used = []
  encoder = fast_wordpiece.make_encoder

  def watched(*args):
    encode = encoder(*args)
    return lambda texts: used.append(len(texts)) or encode(texts)

  monkeypatch.setattr(fast_wordpiece, "make_encoder", watched)
  (tmp_path / "tokenizer.json").write_text(json.dumps(_definition()))
  tokenizer = load_tokenizer(tmp_path)
  texts = ["the [MASK] reads", "", "\ud800 \0", "words [SEP][PAD]"]
  batch = tokenizer.encode_batch(texts)
  assert used[-1] == 4
  for text, ids in zip(texts, batch, strict=True):
    assert ids.tolist() == tokenizer.encode(text).ids.tolist()
    assert not {*ids.tolist()} & {*tokenizer.special_ids.tolist()} - {1}


def test_without_it_the_ids_are_the_same(monkeypatch, tmp_path):
  (tmp_path / "tokenizer.json").write_text(json.dumps(_definition()))
  texts = _texts(5, 300)
  fast = load_tokenizer(tmp_path).encode_batch(texts)
  monkeypatch.setitem(sys.modules, "nanotoken", None)  # Raises ImportError.
  assert _encoder(_definition()) is None
  slow = load_tokenizer(tmp_path).encode_batch(texts)
  assert [ids.tolist() for ids in fast] == [ids.tolist() for ids in slow]


@pytest.mark.parametrize(
  "changed",
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
def test_what_it_has_not_is_left_to_tokenizers(changed):
  assert _encoder(_definition(**changed)) is None


def test_another_release_is_not_trusted(monkeypatch):
  monkeypatch.setattr(fast_wordpiece, "RELEASE", "0.1.1")
  assert _encoder(_definition()) is None


def test_added_words_with_ids_that_tokenizers_gives_anew_are_left_to_it():
  definition = _definition()
  flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
  size = len(definition["model"]["vocab"])
  for index, is_left in ((size, False), (size + 7, True)):
    added = [{"id": index, "content": "newword", "normalized": True, **flags}]
    changed = definition | {"added_tokens": definition["added_tokens"] + added}
    assert (_encoder(changed) is None) == is_left


def test_it_holds_little_of_what_it_remembers():
  """Words that never come again don't pile up: memory is flat."""
  resource = pytest.importorskip("resource")
  encode = _encoder(_definition())
  rng = random.Random(3)

  def novel_words():
    for _ in range(8):
      encode([f"{rng.getrandbits(64):x}" for _ in range(100_000)])
    unit = 1024 if sys.platform == "linux" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

  before = novel_words()
  assert novel_words() - before < 16 << 20
