"""Duplicates: shingles and bands by hand, the curve, the counts."""

import numpy as np
import pytest

from helpers.prepare_corpus import prepare_corpus
from maskedlm.config import defaults
from maskedlm.data.corpus import concat
from maskedlm.data.prepare import dedup, documents, word_hashes
from maskedlm.data.sources.domains import Domain

DOMAIN = Domain("", "en", "")


def document(*lines):
  return documents.make_document(list(lines), DOMAIN)


def jaccard(a, b):
  a, b = (set(dedup.shingles(document(x)).tolist()) for x in (a, b))
  return len(a & b) / len(a | b)


def test_jaccard_by_hand():
  # abcde bcdef cdefg against abcde bcdef cdefx: 2 of 4.
  assert jaccard("a b c d e f g", "a b c d e f x") == 2 / 4
  # A word is in the five shingles around it: of 9 words none remains, of 10
  # words one of the six (abcde), of 6 + 5 in all.
  assert jaccard("a b c d e f g h i", "a b c d X f g h i") == 0
  assert jaccard("a b c d e f g h i j", "a b c d e X g h i j") == 1 / 11
  # As a set, both are abcab bcabc cabca.
  assert jaccard("a b c " * 4, "a b c " * 5) == 1
  # Case and punctuation don't count, words do; short texts are one shingle.
  assert jaccard("The cat, sat!", "the CAT sat") == 1
  assert jaccard("the cat sat", "the cat sits") == 0
  assert jaccard("the cat", "cat the") == 0


def words(text):
  return len(word_hashes.word_hashes(text))


def test_words():
  assert words("") == words(" .,!- ") == 0
  assert words("the cat's 3rd, hat") == 5  # the cat s 3rd hat
  assert words("我喜欢你") == 4  # No spaces between words.
  assert words("हिन्दी में") == 2  # Vowel signs belong to their word.
  assert words("ab我cd") == 3
  assert words("\U00020001\U00020002") == 2
  a, b, c = word_hashes.word_hashes("ab ba ab")
  assert a == c != b


@pytest.mark.parametrize(
  ("threshold", "count", "rows"),
  # (1/11)^(1/11) = .804; (1/25)^(1/5) = .525; one band of all is 1.
  [(0.8, 11, 11), (0.5, 25, 5), (1.0, 1, 65), (0.0, 0, 0)],
)
def test_bands(threshold, count, rows):
  assert dedup.choose_bands(threshold) == (count, rows)


def test_pairs_are_found_as_often_as_the_curve_predicts():
  pairs = 400
  made = []
  for k in range(pairs):
    text = [f"w{i}.{k}" for i in range(204)]
    other = text[:182] + [f"y{i}.{k}" for i in range(22)]
    made += [document(" ".join(text)), document(" ".join(other))]
  # Each word is two, "w7" and "5": 408 words, 404 shingles. With the last
  # 22 replaced, 360 of 448 are shared.
  assert jaccard(made[0].lines[0], made[1].lines[0]) == 360 / 448
  status, _ = dedup.mark_duplicates([dedup.compute_signatures(made, 0.8)])
  assert not np.any(status[::2])  # The first of each pair is kept.
  share = np.mean(status[1::2] == dedup.SIMILAR)
  expected = 1 - (1 - (360 / 448) ** 11) ** 11  # 0.65: 11 bands of 11.
  # Four standard deviations.
  assert abs(share - expected) < 4 * np.sqrt(0.25 / pairs)


TEXT = ["it", "was", "the", "best", "of", "times", "for", "all", "of", "them"]


def text(*changes):
  """Returns 40 numbered words (36 shingles), some of them changed."""
  numbered = [f"{word}{i}" for i, word in enumerate(TEXT * 4)]
  for at in changes:
    numbered[at] = f"changed{at}"
  return " ".join(numbered)


# The second equals the first, the third has another last word (35 of 37
# shingles are shared), the fourth is different; the last three have no words.
DOCUMENTS = [
  text(),
  text(),
  text(39),
  " ".join(f"other{i}" for i in range(30)),
  "!!!",
  "???",
  "!!!",
]


def statuses(threshold):
  made = [document(x) for x in DOCUMENTS]
  signed = [
    dedup.compute_signatures(made[i : i + 3], threshold) for i in (0, 3, 6)
  ]
  return dedup.mark_duplicates(signed)


def test_statuses():
  kept, copy, similar = dedup.KEPT, dedup.EQUAL, dedup.SIMILAR
  status, characters = statuses(0.0)
  assert status.tolist() == [kept, copy, kept, kept, kept, kept, copy]
  assert characters.tolist() == [len(x) for x in DOCUMENTS]
  status, characters = statuses(0.7)
  assert status.tolist() == [kept, copy, similar, kept, kept, kept, copy]
  assert dedup.count_dropped(status, characters) == {
    "equal documents dropped": 2,
    "near-duplicate documents dropped": 1,
    "characters of dropped documents": len(text()) + len(text(39)) + 3,
  }


@pytest.fixture
def make_config(tmp_path):
  def make(**corpus):
    texts = [*DOCUMENTS[:4], *(f"filler number {i}" for i in range(9))]
    (tmp_path / "text.txt").write_text("\n\n".join(texts))
    config = defaults.default()
    config.corpus.source = f"text:{tmp_path}/text.txt"
    config.corpus.update(sentences="lines", num_workers=1, heldout_share=0.0)
    config.corpus.update(corpus)
    config.tokenizer.vocab_size = 200
    return config

  return make


@pytest.mark.parametrize(
  ("options", "equal", "near"),
  [
    ({"deduplicate": True}, 1, 0),
    ({"near_duplicates": 0.7}, 1, 1),
    ({"deduplicate": True, "near_duplicates": 0.7}, 1, 1),
  ],
)
def test_prepare_drops_and_counts(make_config, tmp_path, options, equal, near):
  lines = []
  config = make_config(**options)
  corpus = prepare_corpus(config, tmp_path / "corpus", log=lines.append)
  report = corpus.meta["report"]
  assert report["documents"] == 13
  assert report["equal documents dropped"] == equal
  assert report["near-duplicate documents dropped"] == near
  assert corpus.meta["splits"]["train"]["documents"] == 13 - equal - near
  assert (
    corpus.meta["options"].items()
    >= {f"corpus.{name}": value for name, value in options.items()}.items()
  )
  assert f"  equal documents dropped: {equal}" in lines
  dropped = equal * len(text()) + near * len(text(39))
  assert report["characters of dropped documents"] == dropped
  shown = f"text: {report['characters'] - dropped:,} characters"
  assert any(shown in line for line in lines)
  # The first of the group is kept.
  ids = corpus.tokenizer.encode_batch([text()])[0]
  first = concat.take(corpus.train.tokens, np.arange(len(ids)))
  assert np.array_equal(first, ids)


def test_the_same_if_the_source_is_read_again(
  make_config, tmp_path, monkeypatch
):
  config = make_config(near_duplicates=0.7)
  one = prepare_corpus(config, tmp_path / "a")
  monkeypatch.setattr(documents, "CACHE_BYTES", 100)
  monkeypatch.setattr(documents, "CHUNK_BYTES", 300)
  two = prepare_corpus(config, tmp_path / "b")
  assert one.meta == two.meta
