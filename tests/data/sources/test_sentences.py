"""Sentences: split or lines, long ones, sentencex's limits."""

import random
import re
import time
from collections import Counter

import pytest
import sentencex

from maskedlm.core.errors import CorpusError
from maskedlm.data.sources.sentences import MAX_SENTENCE, find_sentences


def split(lines, mode="split", language="en"):
  report = Counter()
  text = "\n".join(lines)
  spans = find_sentences(lines, mode=mode, language=language, report=report)
  return [text[begin:end] for begin, end in spans], dict(report)


def test_sentences_are_split_or_lines():
  lines = ['Dr. Smith paid $3.50. "Why?" he asked.', "  Second   line \u3000"]
  assert split(lines)[0] == [
    "Dr. Smith paid $3.50.",
    '"Why?" he asked.',
    "Second   line",
  ]
  assert split(lines, mode="lines")[0] == [lines[0], "Second   line"]
  assert split(["我喜欢。你呢？"], language="zh")[0] == ["我喜欢。", "你呢？"]
  assert split([]) == ([], {})


@pytest.mark.parametrize(
  "language, message",
  [
    ("english", "corpus.language='english'.*ISO 639-1"),
    ("EN", "ISO 639-1"),
  ],
)
def test_wrong_languages(language, message):
  with pytest.raises(CorpusError, match=message):
    split(["One. Two."], language=language)


@pytest.mark.parametrize("mode", ["split", "lines"])
def test_a_long_sentence_is_cut_at_spaces(mode):
  # 1,000 words of 9 + 1 characters: 400 fit in 4,000.
  found, report = split(["wordlets, " * 1_000], mode=mode)
  assert [len(s.split()) for s in found] == [400, 400, 200]
  assert report == {"cuts in sentences over 4,000 characters": 2}
  found, report = split(["y" * 9_001], mode=mode)
  assert [len(s) for s in found] == [4_000, 4_000, 1_001]


def test_windows_give_the_sentences_of_the_whole_line():
  rng = random.Random(3)
  words = ["Mr.", "Fox", "met", "Dr.", "Bo", "at", "3.50", "U.S.", "e.g."]
  sentences = [
    " ".join(["The", *rng.choices(words, k=rng.randint(3, 40)), end])
    for end in rng.choices(["day.", "why?", "(then)!"], k=900)
  ]
  line = " ".join(sentences)
  assert len(line) > 15 * MAX_SENTENCE
  expected = [s.strip() for s in sentencex.segment("en", line)]
  assert split([line]) == (expected, {})


def test_a_long_line_of_chinese_takes_linear_time():
  # sentencex alone took 1.6 s for half of it, 156 s for 5 times as much.
  line = "我喜欢。" * 50_000
  start = time.process_time()
  found, _ = split([line], language="zh")
  assert time.process_time() - start < 20  # 0.3 s, measured.
  assert found == ["我喜欢。"] * 50_000


def test_sentencex_panics_are_avoided_or_survived(monkeypatch):
  # "B\xa0." makes sentencex 1.0.32 panic, which is not an Exception.
  assert split(["Plan B\xa0. Good."])[0] == ["Plan B\xa0. Good."]

  class PanicException(BaseException):
    pass

  def panic(language, text):
    raise PanicException

  monkeypatch.setattr(sentencex, "segment", panic)
  assert split(["One. Two."]) == (
    ["One. Two."],
    {"stretches of text that sentencex failed to split": 1},
  )


@pytest.mark.parametrize("found", [[], [""]])
def test_a_window_without_sentences_is_one(monkeypatch, found):
  monkeypatch.setattr(sentencex, "segment", lambda language, text: found)
  assert split(["One. Two."]) == (["One. Two."], {})
  sentences, report = split(["y" * 9_001])
  assert [len(s) for s in sentences] == [4_000, 4_000, 1_001]
  assert report == {"cuts in sentences over 4,000 characters": 2}


def test_splitting_loses_no_text():
  rng = random.Random(5)
  alphabet = [*"aB.?!。()'\"“”「我é😀\u3000\xa0\u2028 1", "Mr. ", "U.S. ", "  "]
  for language in ("en", "zh", "fr", "hi", "xx"):
    for _ in range(12):
      line = "".join(rng.choices(alphabet, k=rng.choice([3, 30, 9_000])))
      found = "".join(split([line], language=language)[0])
      assert re.sub(r"\s", "", found) == re.sub(r"\s", "", line)
