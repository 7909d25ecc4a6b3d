"""Samples for vocabularies: shares by alpha, budgets, warnings."""

import collections
import re

import pytest

from helpers.languages import make_config
from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.data.prepare import vocabulary_sample
from maskedlm.data.prepare.documents import read_documents


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
  # All 210, with shares of 4, 2 and 1 of 7.
  counts = collections.Counter(line[0] for line in lines)
  assert counts == {"a": 120, "b": 60, "c": 30}
  each = collections.Counter(lines)
  assert {each[line] for line in samples[0].lines} == {0, 1}
  assert {each[line] for line in samples[1].lines} == {1, 2}
  assert {each[line] for line in samples[2].lines} == {3}
  everything = vocabulary_sample.draw_sentences(samples, make(), alpha=1.0)
  assert sorted(everything) == sorted(x for s in samples for x in s.lines)


def test_a_draw_stays_within_the_budget():
  # Sentences of 10 and 40 bytes, equally many: 25 bytes on average.
  samples = [sample("a", 100, "{:010d}"), sample("b", 50, "{:040d}")]
  lines = vocabulary_sample.draw_sentences(
    samples, make(sample_bytes=1_000), alpha=0.0
  )
  assert collections.Counter(map(len, lines)) == {10: 20, 40: 20}
  assert vocabulary_sample.max_sample_bytes(make(kind="unigram")) == 1 << 25
  assert vocabulary_sample.max_sample_bytes(make(kind="bpe")) == 1 << 28


def test_samples_stay_small():
  stream = [(f"p{i}", f"{k:010d}") for i in range(20) for k in range(300)]
  samples = vocabulary_sample.collect_samples(
    stream, max_bytes=3_000, alphas=[0.3]
  )
  assert [s.num_sentences for s in samples] == [300] * 20
  assert sum(s.num_bytes for s in samples) <= 3 * 3_000
  # They still suffice for the draw: 15 sentences of each.
  assert min(len(s.lines) for s in samples) >= 15
  lines = vocabulary_sample.draw_sentences(
    samples, make(sample_bytes=3_000), alpha=0.3
  )
  assert len(lines) == 300


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_the_same_seed_gives_the_same_vocabulary(kind, tmp_path):
  config = make_config(tmp_path)
  config.tokenizer.update(kind=kind, vocab_size=300)
  found = []
  for _ in range(2):
    documents = read_documents(config, collections.Counter())
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
  lines = []
  config.tokenizer.update(lowercase=False)
  prepare_corpus(config, tmp_path / "corpus", log=lines.append)
  warnings = [line for line in lines if line.startswith("warning")]
  assert len(warnings) == 1
  assert re.match(
    r"warning: zh: 9\d\.\d% of the characters are unknown", warnings[0]
  )
  config.tokenizer.update(kind="unigram", vocab_size=690, byte_fallback=True)
  lines.clear()
  corpus = prepare_corpus(config, tmp_path / "other", log=lines.append)
  assert not [line for line in lines if line.startswith("warning")]
  assert sum(p["train"]["unknown"] for p in corpus.domains) == 0
