"""What corpus.keep_language, min_words, ... leave out, and its counts."""

import sys
from collections import Counter

import pytest

from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.options import CorpusOptions
from maskedlm.data.prepare import filters, word_hashes

ENGLISH = "The cat sat on the mat and looked at the dog in the garden."
GERMAN = "Der Hund ist nicht im Garten, sondern liegt unter dem Baum."


def judge(text, language="en", **options):
  report, options = Counter(), CorpusOptions(**options)
  kept = [*filters.keep([[text]], options, language, report)]
  (reason,) = report or [""]
  assert bool(kept) != bool(reason)
  return reason.removeprefix("documents left out: ")


def test_repetition_by_hand():
  def share(text):
    return filters.repetition(word_hashes.word_hashes(text))

  # abcde bcdea cdeab deabc eabcd abcde: one of 6 occurred before.
  assert share("a b c d e a b c d e") == pytest.approx(1 / 6)
  assert share("a b c d") == share("") == 0
  assert share("a b c d e f g") == 0
  assert share("a a a a a a a a") == 3 / 4  # Four runs, of which one is new.


@pytest.mark.parametrize(
  ("text", "options", "reason"),
  [
    ("a b c", {"min_words": 3, "max_words": 3}, ""),
    ("a b", {"min_words": 3}, "too short"),
    ("a b c d", {"max_words": 3}, "too long"),
    ("a b c d e a b c d e", {"max_repetition": 0.17}, ""),
    ("a b c d e a b c d e", {"max_repetition": 0.16}, "repetitive"),
    ("a", {}, ""),
  ],
)
def test_rules(text, options, reason):
  assert judge(text, **options) == reason


def test_languages():
  pytest.importorskip("py3langid")
  documents = [[ENGLISH], [GERMAN], ["..."]]
  options, report = CorpusOptions(keep_language=0.5), Counter()
  for language, kept in (("en", ENGLISH), ("de", GERMAN)):
    found = filters.keep(documents, options, language, report)
    assert list(found) == [[kept]]
  assert report == {"documents left out: another language": 2 + 2}
  with pytest.raises(ConfigError, match="doesn't know the language 'xx'; exp"):
    judge(ENGLISH, "xx", keep_language=0.5)


def test_languages_need_the_extra(monkeypatch):
  monkeypatch.setitem(sys.modules, "py3langid", None)
  with pytest.raises(ConfigError, match=r"pip install 'maskedlm\[language\]'"):
    judge(ENGLISH, keep_language=0.5)


def test_lines_seen_before():
  documents = [["a", "b", "", "a"], ["  b ", ""], ["c", "b"]]
  documents += [["a", "", "d", " ", "e", "", "b"]]
  report = Counter()
  made = list(filters.unique_lines(documents, set(), report))
  # As of read_documents, no first or last line is blank.
  assert made == [["a", "b"], ["c"], ["d", " ", "e"]]
  assert report == {
    "lines left out: seen before": 5,
    "documents left out: all lines seen before": 1,
  }


def make_config(tmp_path, texts, **options):
  (tmp_path / "a.txt").write_text("\n\n".join(texts))
  config = defaults.default()
  config.corpus.source = f"text:{tmp_path}/a.txt"
  config.tokenizer.vocab_size = 60
  config.corpus.update(heldout_share=0.2, sentences="lines", **options)
  return config


def test_documents_in_are_those_used_and_those_left_out(tmp_path):
  texts = [f"cat number {'x' * i} sat on\nthe mat" for i in range(8)]
  texts += [
    "too short",
    "the mat\nthe mat\nthe mat\nthe mat\nthe mat",
    texts[0],
  ]
  options = {"min_words": 3, "max_repetition": 0.5, "unique_lines": True}
  made = []
  for workers in (1, 3):
    config = make_config(tmp_path, texts, num_workers=workers, **options)
    lines = []
    path = tmp_path / f"corpus{workers}"
    made.append(prepare_corpus(config, path, log=lines.append))
  one, three = made
  assert one.fingerprint == three.fingerprint
  report = one.meta["report"]
  left_out = {
    "documents left out: too short": 1,
    "documents left out: repetitive": 1,
    "documents left out: all lines seen before": 1,
  }
  assert {k: n for k, n in report.items() if "documents left out" in k} == (
    left_out
  )
  # "the mat" of 7 of 8 documents, and both lines of the last.
  assert report["lines left out: seen before"] == 9
  assert report["documents"] == len(texts) == 11
  for name, count in left_out.items():
    assert f"  {name}: {count:,}" in lines


def test_nothing_left_is_an_error(tmp_path):
  config = make_config(tmp_path, ["a b", "c d e"], min_words=4)
  with pytest.raises(CorpusError, match=r"left of text:.*: documents left out:"
                     " too short: 2"):  # fmt: skip
    prepare_corpus(config, tmp_path / "corpus")


def test_limits_that_leave_no_document():
  config = defaults.default()
  for low, high in ((3, 3), (3, 0), (0, 2)):
    config.corpus.update(min_words=low, max_words=high)
    defaults.validate(config)
  config.corpus.update(min_words=4, max_words=3)
  with pytest.raises(ConfigError, match=r"min_words=4 is more than .*words=3"):
    defaults.validate(config)
