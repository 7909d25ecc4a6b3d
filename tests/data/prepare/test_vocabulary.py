"""What a vocabulary is trained on, and that no script loses anything to it."""

import collections
import itertools
import re
import unicodedata

import numpy as np
import pytest

from helpers.languages import LETTERS, make_config
from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.core.errors import CorpusError
from maskedlm.data.prepare import documents as documents_lib
from maskedlm.data.prepare import vocabulary_sample
from maskedlm.data.sources import reader
from maskedlm.data.tokenizers import tokenizer, training

REAL = (
  "ar", "de", "es", "fi", "fr", "hi", "hu", "id", "ja", "ko", "mr", "pl",
  "ru", "tr", "uk", "vi", "yo", "zh",
)  # fmt: skip


def sample(name, count, text="{}"):
  lines = [text.format(i) for i in range(count)]
  size = sum(len(line.encode()) for line in lines)
  return vocabulary_sample.Sample(name, count, size, lines)


def make(**options):
  config = defaults.default()
  config.tokenizer.update(options)
  return config


def test_sentences_are_drawn_by_alpha():
  samples = [
    sample(n, k, n + "{}") for n, k in (("a", 160), ("b", 40), ("c", 10))
  ]
  lines = vocabulary_sample.draw_sentences(samples, make(), alpha=0.5)
  # As many as there are, 210, of which 4, 2 and 1 of 7.
  counts = collections.Counter(line[0] for line in lines)
  assert counts == {"a": 120, "b": 60, "c": 30}
  each = collections.Counter(lines)
  assert {each[line] for line in samples[0].lines} == {0, 1}
  assert {each[line] for line in samples[1].lines} == {1, 2}
  assert {each[line] for line in samples[2].lines} == {3}
  everything = vocabulary_sample.draw_sentences(samples, make(), alpha=1.0)
  assert sorted(everything) == sorted(x for s in samples for x in s.lines)


def test_the_seed_says_which_sentences():
  samples = [sample("a", 160), sample("b", 40)]
  config = make()
  first = vocabulary_sample.draw_sentences(samples, config, alpha=0.5)
  assert first == vocabulary_sample.draw_sentences(samples, config, alpha=0.5)
  config.seed = 1
  assert sorted(first) != sorted(
    vocabulary_sample.draw_sentences(samples, config, alpha=0.5)
  )


def test_a_draw_keeps_within_the_budget():
  # 10 bytes a sentence of a, 40 of b, and equal counts: 25 on average.
  samples = [sample("a", 100, "{:010d}"), sample("b", 50, "{:040d}")]
  lines = vocabulary_sample.draw_sentences(
    samples, make(sample_bytes=1_000), alpha=0.0
  )
  assert collections.Counter(map(len, lines)) == {10: 20, 40: 20}
  assert vocabulary_sample.max_sample_bytes(make(kind="unigram")) == 1 << 25
  assert vocabulary_sample.max_sample_bytes(make(kind="bpe")) == 1 << 28


def test_what_is_collected_stays_small():
  stream = [(f"p{i}", f"{k:010d}") for i in range(20) for k in range(300)]
  samples = vocabulary_sample.collect_samples(
    stream, max_bytes=3_000, alphas=[0.3]
  )
  assert [s.num_sentences for s in samples] == [300] * 20
  assert sum(s.num_bytes for s in samples) <= 3 * 3_000
  # And still enough for what will be drawn: 15 sentences of each.
  assert min(len(s.lines) for s in samples) >= 15
  lines = vocabulary_sample.draw_sentences(
    samples, make(sample_bytes=3_000), alpha=0.3
  )
  assert len(lines) == 300


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_the_same_seed_gives_the_same_vocabulary(kind, tmp_path):
  config = make_config(tmp_path)
  config.tokenizer.update(kind=kind, vocab_size=300)
  if kind == "unigram":
    config.tokenizer.vocab_size = 120
  found = []
  for _ in range(2):
    documents = documents_lib.read_documents(config, collections.Counter())
    found.append(
      vocabulary_sample.train_on_documents(config, documents, log=print).sha256
    )
  assert found[0] == found[1]


def test_a_language_with_unknown_characters_is_named(tmp_path):
  (tmp_path / "zh.txt").write_text(
    "\n\n".join("".join(chr(0x4E00 + 7 * i + k) for k in range(7))
                for i in range(60))
  )  # fmt: skip
  config = make_config(tmp_path)
  config.corpus.parts += f",zh:{tmp_path}/zh.txt"
  said = []
  config.tokenizer.update(lowercase=False)
  prepare_corpus(config, tmp_path / "corpus", log=said.append)
  warnings = [line for line in said if line.startswith("warning")]
  assert len(warnings) == 1
  assert re.match(
    r"warning: zh: 9\d\.\d% of the characters are unknown", warnings[0]
  )
  config.tokenizer.update(kind="unigram", vocab_size=690, byte_fallback=True)
  said.clear()
  corpus = prepare_corpus(config, tmp_path / "other", log=said.append)
  assert not [line for line in said if line.startswith("warning")]
  assert sum(p["train"]["unknown"] for p in corpus.domains) == 0


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_decomposed_text_has_the_characters_that_it_is_composed_to(kind, form):
  text = [unicodedata.normalize("NFD", line) for line in TEXT]
  made = tokenizer.train_tokenizer(
    text, kind=kind, vocab_size=120, lowercase=False, normalization=form
  )
  assert not any(made.special.unk in made.encode(line).ids for line in text)
  lost = sample("none", 50, unicodedata.normalize("NFD", "îîîî {}"))
  (warning,) = vocabulary_sample.coverage_warnings(
    [sample("vi", 50, text[0]), lost], made, make(lowercase=False)
  )
  assert warning.startswith("warning: none: ") and "(î " in warning


def test_lowercase_is_warned_of(tmp_path):
  said = []
  prepare_corpus(make_config(tmp_path), tmp_path / "corpus", log=said.append)
  assert said[0].startswith("warning: tokenizer.lowercase=True strips accents")


def test_more_coverage_is_more_characters(monkeypatch):
  monkeypatch.setattr(training, "MIN_ALPHABET", 1)
  lines = ["aaaa bbbb"] * 50 + ["c"]
  for kind in ("wordpiece", "unigram"):
    known = [
      tokenizer.train_tokenizer(
        lines,
        kind=kind,
        vocab_size=10 if kind == "unigram" else 16,
        lowercase=False,
        character_coverage=coverage,
      ).encode("c")
      for coverage in (0.99, 1.0)
    ]
    assert [1 in e.ids for e in known] == [True, False]


RNG = np.random.default_rng(3)
TEXT = ["Zoë's ﬁne café №5 tế", "Zoë the fine tế ½", "café no tế five"] * 20
TEXT += [
  " ".join("".join(RNG.choice(list("cafinetvo"), 4)) for _ in range(9))
  for _ in range(60)
]
# Decomposed, a compatibility ligature, a fullwidth digit.
ODD = "cafe\u0301 ﬁne te\u0302\u0301 ５"


def trained(kind, form, **options):
  return tokenizer.train_tokenizer(
    TEXT,
    kind=kind,
    vocab_size={"unigram": 120, "bpe": 300, "wordpiece": 80}[kind],
    lowercase=False,
    normalization=form,
    **options,
  )


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
def test_offsets_survive_a_normalization_that_changes_lengths(kind, form):
  encoding = trained(kind, form).encode(ODD)
  words = collections.defaultdict(list)
  for word, span in zip(encoding.word_ids, encoding.offsets, strict=True):
    words[word] += span.tolist()
  slices = [ODD[min(spans) : max(spans)] for spans in words.values()]
  assert " ".join(slices) == ODD
  # Nothing is left out, and they go from left to right.
  covered = {i for a, b in encoding.offsets for i in range(a, b)}
  assert covered == {i for i, char in enumerate(ODD) if char != " "}
  assert np.all(np.diff(encoding.offsets[:, 0]) >= 0)


@pytest.mark.parametrize(
  ("form", "expected"),
  [
    ("nfc", "caf\u00e9 ﬁne t\u1ebf"),
    ("nfkc", "caf\u00e9 fine t\u1ebf"),
    ("none", "cafe\u0301 ﬁne te\u0302\u0301"),
  ],
  ids=["nfc", "nfkc", "none"],
)
def test_a_normalization_is_what_it_is_called(form, expected):
  text = ODD.removesuffix(" ５")
  options = {"byte_fallback": True} if form == "none" else {}
  lines = [*TEXT, text]
  made = tokenizer.train_tokenizer(
    lines,
    kind="unigram",
    vocab_size=376 if options else 120,
    lowercase=False,
    normalization=form,
    character_coverage=1.0,
    **options,
  )
  assert made.decode(made.encode(text).ids) == expected
  byte_level = trained("bpe", form)
  assert byte_level.decode(byte_level.encode(text).ids) == expected


def test_what_a_kind_can_not_do():
  with pytest.raises(CorpusError, match="byte_fallback=True: WordPiece has no"):
    trained("wordpiece", "", byte_fallback=True)
  with pytest.raises(
    CorpusError, match="normalization='nfc': a lowercasing unigram"
  ):
    tokenizer.train_tokenizer(
      TEXT, kind="unigram", vocab_size=40, lowercase=True, normalization="nfc"
    )


def test_bytes_spell_what_is_unknown():
  made = tokenizer.train_tokenizer(
    TEXT, kind="unigram", vocab_size=376, lowercase=False, byte_fallback=True
  )
  text = "fine \u6f22 five"
  encoding = made.encode(text)
  spelt = [made.tokens(i) for i in encoding.ids]
  assert [t for t in spelt if t.startswith("<0x")] == [
    "<0xE6>",
    "<0xBC>",
    "<0xA2>",
  ]
  assert made.special.unk not in encoding.ids
  assert made.decode(encoding.ids) == text
  at = [i for i, t in enumerate(spelt) if t.startswith("<0x")]
  assert {tuple(encoding.offsets[i]) for i in at} == {(5, 6)}
  assert not made.starts_word[encoding.ids[at]].any()
  np.testing.assert_array_equal(made.encode_batch([text])[0], encoding.ids)
  # A text that spells a byte's token is no byte.
  assert made.decode(made.encode("a <0xE6> b").ids) == "a <0xE6> b"


# Real text


@pytest.fixture(scope="module")
def real(data_dir):
  """language -> some 200 lines of its text."""
  texts = {}
  for name in REAL:
    path = data_dir / "multilingual" / f"{name}.txt"
    found = reader.read_documents(
      f"text:{path}", text_field="text", report=collections.Counter()
    )
    texts[name] = list(
      itertools.islice(itertools.chain.from_iterable(found), 200)
    )
  return texts


@pytest.fixture(scope="module")
def unigrams(real):
  """normalization -> a unigram with every character of the text."""
  lines = [line for text in real.values() for line in text]
  return {
    form: tokenizer.train_tokenizer(
      lines,
      kind="unigram",
      vocab_size=8_000,
      lowercase=False,
      normalization=form,
      character_coverage=1.0,
    )
    for form in ("nfc", "nfkc", "none")
  }


def spaced(text):
  return " ".join(text.split())


@pytest.mark.parametrize("name", REAL)
def test_real_text_comes_back(name, real, unigrams):
  for form, made in unigrams.items():
    for line in real[name]:
      expected = spaced(line)
      if form != "none":
        # sentencepiece keeps the fullwidth tilde of Japanese.
        expected = "\uff5e".join(
          unicodedata.normalize(form.upper(), part)
          for part in expected.split("\uff5e")
        )
      encoding = made.encode(line)
      assert made.decode(encoding.ids) == spaced(expected)
      # What tokens stand for, put together, is all that isn't space.
      covered = {i for a, b in encoding.offsets for i in range(a, b)}
      missing = [line[i] for i in range(len(line)) if i not in covered]
      assert not "".join(missing).strip()


@pytest.mark.parametrize(
  ("name", "category"),
  [
    ("vi", "L"),
    ("hi", "M"),
    ("mr", "M"),
    ("ar", "M"),
    ("zh", "L"),
    ("ja", "L"),
  ],
)
def test_signs_and_tones_are_kept(name, category, real, unigrams):
  """By count: each letter or mark of the script, before and after."""

  def counted(text):
    return collections.Counter(
      char
      for char in unicodedata.normalize("NFC", text)
      if unicodedata.category(char)[0] == category
    )

  text = "\n".join(real[name])
  made = unigrams["nfc"]
  back = "\n".join(made.decode(made.encode(x).ids) for x in real[name])
  assert counted(text) == counted(back)
  assert sum(counted(text).values()) > (20 if name == "ar" else 500)


@pytest.mark.parametrize("name", ["vi", "hi", "yo", "ko"])
def test_decomposed_text_is_the_same_text(name, real, unigrams):
  """NFD in the file, NFC in the vocabulary: the same tokens, true offsets."""
  made = unigrams["nfc"]
  for line in real[name]:
    apart = unicodedata.normalize("NFD", line)
    one, other = made.encode(line), made.encode(apart)
    np.testing.assert_array_equal(one.ids, other.ids)
    for (a, b), (c, d) in zip(one.offsets, other.offsets, strict=True):
      assert unicodedata.normalize("NFC", line[a:b]) == unicodedata.normalize(
        "NFC", apart[c:d]
      )


def test_letters_of_the_made_up_languages_differ():
  assert len(set("".join(LETTERS.values()))) == 21
