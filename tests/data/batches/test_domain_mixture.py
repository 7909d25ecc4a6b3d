"""Mixtures of domains: shares by hand, exact over each epoch, no state."""

import numpy as np
import pytest

from helpers import splits
from helpers.languages import LETTERS, language_of, make_config
from helpers.prepare_corpus import prepare_corpus
from maskedlm.core.errors import CorpusError
from maskedlm.data import sampling
from maskedlm.data.batches import domain_mixture, row_source
from maskedlm.data.corpus import domain_splits


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  folder = tmp_path_factory.mktemp("languages")
  # Several shards, which end within domains.
  config = make_config(folder, shard_tokens=300)
  return prepare_corpus(config, folder / "corpus")


def read(corpus, name, data=None, **changes):
  return splits.make_batches(name, corpus, data, **{"eval_rows": 20} | changes)


def test_shares_by_hand():
  # p = 16/21, 4/21, 1/21; alpha = 1/2: 4, 2, 1 of 7.
  assert sampling.sampling_shares([16, 4, 1], 0.5) == pytest.approx(
    [4 / 7, 2 / 7, 1 / 7]
  )
  assert sampling.sampling_shares([16, 4, 1], 1.0) == pytest.approx(
    [16 / 21, 4 / 21, 1 / 21]
  )
  assert sampling.sampling_shares([16, 4, 1], 0.0) == pytest.approx([1 / 3] * 3)
  # The book's numbers, eq. 11.7 with 0.99 and 0.01: alpha = 0.3 -> 0.8, 0.2.
  assert sampling.sampling_shares([99, 1], 0.3) == pytest.approx(
    [0.7987, 0.2013], abs=1e-4
  )
  huge = sampling.sampling_shares([10**300, 10**290], 0.3)
  assert huge[0] / huge[1] == pytest.approx(10**3)


@pytest.mark.parametrize(
  ("total", "shares", "counts"),
  [
    (7, [4 / 7, 2 / 7, 1 / 7], [4, 2, 1]),
    # Quotas 5.714, 2.857, 1.429: 5, 2, 1, and the two largest remainders.
    (10, [4 / 7, 2 / 7, 1 / 7], [6, 3, 1]),
    (10, [1 / 3] * 3, [4, 3, 3]),
    (0, [0.5, 0.5], [0, 0]),
  ],
)
def test_largest_remainders(total, shares, counts):
  assert sampling.apportion(total, shares).tolist() == counts


@pytest.mark.parametrize(
  ("total", "sizes", "counts"),
  [
    (12, [9, 2, 5], [5, 2, 5]),
    (11, [9, 2, 5], [5, 2, 4]),
    (2, [9, 2, 5], [1, 0, 1]),
    (99, [9, 2, 5], [9, 2, 5]),
  ],
)
def test_as_equal_as_the_sizes_allow(total, sizes, counts):
  assert sampling.equal_counts(total, sizes).tolist() == counts


def source(size, seed):
  return domain_mixture.RowSource(
    size, seed, lambda row, epoch: {"row": row, "epoch": epoch}
  )


def test_a_mixture_is_exact_over_each_epoch():
  sizes = [160, 40, 10]
  mixed = domain_mixture.mix(
    [source(n, seed) for seed, n in enumerate(sizes)],
    ["a", "b", "c"],
    q=sampling.sampling_shares(sizes, 0.5),
    seed=3,
  )
  # 210 rows in all, with shares of 4, 2 and 1 of 7.
  assert mixed.num_rows == 210
  assert [s.drawn for s in mixed.shares] == [120, 60, 30]
  assert mixed.shares[1] == domain_mixture.DomainShare(
    "b", num_rows=40, drawn=60
  )
  row, epoch = row_source.row_at(mixed, np.arange(4 * 210))
  language = np.searchsorted([160, 200, 210], row, side="right")
  for lap in language.reshape(4, 210):
    assert np.bincount(lap).tolist() == [120, 60, 30]
  counts = np.bincount(row, minlength=210)
  # Four epochs read 480, 240 and 120 rows: each row 3, 6 and 12 times.
  assert counts.tolist() == [3] * 160 + [6] * 40 + [12] * 10
  # A large one continues where the last epoch ended: no row twice in 160 reads.
  first = row[language == 0]
  # The reads of an epoch come in any order, so count by two whole epochs: 240
  # reads are one and a half times all rows.
  twice = np.bincount(first[:240], minlength=160)
  assert twice.min() == 1 and twice.max() == 2
  # A small one has its own epochs, each with every row once.
  small = language == 2
  for lap in range(12):
    mine = row[small][epoch[small] == lap]
    assert sorted(mine) == list(range(200, 210))
  orders = {tuple(row[small][epoch[small] == lap]) for lap in range(12)}
  assert len(orders) == 12


def test_places_are_computed_alone():
  mixed = domain_mixture.mix(
    [source(10**12, 1), source(10**6, 2)], ["a", "b"], q=[0.9, 0.1], seed=3
  )
  far = np.array([0, 10**15 + 7, 10**17])
  row, epoch = row_source.row_at(mixed, far)
  again = [row_source.row_at(mixed, far[i : i + 1]) for i in range(3)]
  assert row.tolist() == [r[0] for r, _ in again]
  assert epoch.tolist() == [e[0] for _, e in again]


def test_a_share_of_0_is_never_read():
  mixed = domain_mixture.mix(
    [source(n, n) for n in (9, 4, 7)], "abc", q=[0.75, 0.0, 0.25], seed=3
  )
  assert [s.drawn for s in mixed.shares] == [15, 0, 5]
  row, _ = row_source.row_at(mixed, np.arange(3 * 20))
  assert not ((row >= 9) & (row < 13)).any()
  assert (row < 9).sum() == 45


@pytest.mark.parametrize("name", splits.BATCHES)
def test_no_row_has_two_languages(corpus, name):
  reader = read(corpus, name)
  languages = language_of(corpus)
  seen = np.zeros(3, int)
  for split, steps in (("train", 60), ("heldout", reader.num_heldout_batches)):
    for step in range(steps):
      batch = reader.batch_at(split, step)
      found, own = languages[batch["input_ids"]], batch["language_ids"]
      # Of whole sentences, a row may be a separator alone.
      assert np.all((found < 0) | (found == own[:, None]))
      seen += np.bincount(own, minlength=3)
  assert (seen > 20).all()


@pytest.mark.parametrize("name", splits.BATCHES)
def test_an_epoch_has_each_language_as_often_as_its_share(corpus, name):
  total = read(corpus, name).rows_per_epoch
  reader = read(corpus, name, splits.make_data(batch_size=total))
  shares = reader.shares
  assert [s.name for s in shares] == list(LETTERS)
  assert (
    sum(s.drawn for s in shares) == sum(s.num_rows for s in shares) == total
  )
  q = sampling.sampling_shares([s.num_rows for s in shares], 0.3)
  assert np.abs(np.array([s.drawn for s in shares]) - q * total).max() < 1
  ends = np.cumsum([s.num_rows for s in shares])
  for epoch in (0, 3):
    rows = reader.row_ids("train", epoch)
    found = np.bincount(np.searchsorted(ends, rows, side="right"))
    assert found.tolist() == [s.drawn for s in shares]


def test_the_held_out_sample_is_the_same_for_any_alpha(corpus):
  readers = [
    read(corpus, "full_sentences", splits.make_data(alpha=alpha), eval_rows=14)
    for alpha in (1.0, 0.3)
  ]
  assert readers[0].num_heldout_batches == 3
  found = [[r.batch_at("heldout", s) for s in range(3)] for r in readers]
  for one, other in zip(*found, strict=True):
    for name, values in one.items():
      np.testing.assert_array_equal(values, other[name])
  real = np.concatenate([b["example_weights"] for b in found[0]]) > 0
  ids = np.concatenate([b["language_ids"] for b in found[0]])[real]
  counts = np.bincount(ids)
  assert counts.sum() == 14 and counts[0] - counts[1:].max() <= 1
  rows = np.concatenate([readers[0].row_ids("heldout", s) for s in range(3)])
  assert len(set(rows[real])) == 14


def test_a_domain_without_heldout_text_is_named(corpus):
  nothing = dict.fromkeys(domain_splits.COUNTS, 0)
  first, *others = corpus.domains
  emptied = corpus._replace(domains=({**first, "heldout": nothing}, *others))
  with pytest.raises(CorpusError, match=r"'en': .*the heldout split has no"):
    read(emptied, "full_sentences")
