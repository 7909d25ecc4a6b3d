"""Every combination of choose and corruption, and options that are refused."""

import math
import sys
import types

import jax
import numpy as np
import pytest

from helpers.split_rows import check_same_on_8_devices
from maskedlm.core.errors import ConfigError
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions

PAD, UNK, CLS, SEP, MASK = range(5)
V, L, B = 97, 43, 56
TOKENIZER = types.SimpleNamespace(
  vocab_size=V,
  special=types.SimpleNamespace(pad=PAD, mask=MASK),
  overlap=1,
  special_ids=np.arange(5),
  starts_word=np.arange(V) < 60,
)
OPTIONS = {
  "random_tokens": "unigram",
  "corruption": "mask",
  "choose": "tokens",
  "mask_rate": 0.3,
  "max_predictions": 0,
  "mask_share": 0.8,
  "random_share": 0.1,
  "max_span_words": 3,
}


def make(length=L, **options):
  counts = np.where(np.arange(V) < 90, 1, 0)
  options = CorruptionOptions(**{**OPTIONS, **options})
  return masking.make_masking(TOKENIZER, length, options, token_counts=counts)


def make_batch():
  """Returns rows [CLS] text [SEP] text [SEP] of 43, 42, ... 14 tokens."""
  rng = np.random.default_rng(0)
  column, length = np.arange(L), (L - np.arange(B) % 30)[:, None]
  ids = rng.integers(5, V, (B, L))
  ids = np.where(column == 0, CLS, ids)
  ids = np.where((column == 9) | (column == length - 1), SEP, ids)
  real = column < length
  return {
    "input_ids": np.where(real, ids, PAD).astype(np.int32),
    "token_type_ids": (real & (column > 9)).astype(np.int32),
    "segment_ids": real.astype(np.int32),
    "example_weights": np.ones(B, np.float32),
  }


@pytest.mark.parametrize("choose", ["tokens", "spans"])
def test_overlapping_tokens_are_not_given_away(choose, monkeypatch):
  k = 4
  overlapping = types.SimpleNamespace(**{**vars(TOKENIZER), "overlap": k})
  monkeypatch.setattr(sys.modules[__name__], "TOKENIZER", overlapping)
  made = make(choose=choose, mask_rate=0.2)
  rows = make_batch()
  rows["input_ids"][0, 3:] = SEP  # A text of two tokens.

  def letters(columns):
    """Returns the letters of 4-mers, two texts having none in common."""
    first = (column + 100 * (column > 9) for column in columns)
    return {letter for at in first for letter in range(at, at + k)}

  begins, corrupt = set(), jax.jit(made.corrupt)
  for seed in range(5):
    batch = jax.device_get(corrupt(rows, jax.random.key(seed)))
    for row, ids in enumerate(rows["input_ids"]):
      used = batch["masked_weights"][row] > 0
      chosen = batch["masked_positions"][row][used]
      assert 0 < len(chosen) <= max(k, round(0.2 * (ids != PAD).sum()))
      shown = np.setdiff1d(np.flatnonzero(ids > MASK), chosen)
      assert all(letters([column]) - letters(shown) for column in chosen)
      runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
      masked = batch["input_ids"][row] == MASK
      assert all(masked[run].all() or not masked[run].any() for run in runs)
      begins |= {run[0] % k for run in runs}
  assert begins == {*range(k)}


def test_heldout_mask_rate_sets_the_number_of_predictions():
  options = {**OPTIONS, "mask_rate": 0.15, "max_predictions": 6}
  for rate, P in ((0.0, 6), (0.5, 22), (1.0, 43)):
    train, heldout = masking.train_and_heldout(
      TOKENIZER,
      L,
      CorruptionOptions(**options, heldout_mask_rate=rate),
      token_counts=np.ones(V),
    )
    assert train.num_predictions == 6
    assert heldout.num_predictions == P


def test_short_rows_limit_the_options():
  with pytest.raises(ConfigError, match="leave 2 of a row of 9"):
    make(9, corruption="shuffle", mask_rate=0.2)
  with pytest.raises(ConfigError, match="must be at most 7: rows of 9"):
    make(9, choose="spans", max_span_words=8)
  make(9, choose="spans", max_span_words=7)


CASES = [
  ("mask", "tokens", 13),
  ("mask", "words", 13),
  ("mask", "ngrams", 13),
  ("mask", "spans", 13),
  ("substitute", "tokens", 13),
  ("shuffle", "tokens", 12),
  ("delete", "words", 26),
  ("insert", "tokens", 26),
]


ON_8_DEVICES = [("mask", "spans"), ("delete", "words")]


@pytest.mark.parametrize(("corruption", "choose", "num_predictions"), CASES)
def test_combinations(corruption, choose, num_predictions):
  made, batch = make(corruption=corruption, choose=choose), make_batch()
  assert made.num_predictions == num_predictions
  corrupt = jax.jit(made.corrupt)
  if (corruption, choose) in ON_8_DEVICES:
    check_same_on_8_devices(
      jax.jit(lambda batch: made.corrupt(batch, jax.random.key(1))), batch
    )
  other = corrupt(batch, jax.random.key(2))
  masked = corrupt(batch, jax.random.key(1))
  masked = {name: np.asarray(x) for name, x in masked.items()}
  assert (masked["input_ids"] != other["input_ids"]).any()
  positions = masked["masked_positions"]
  labels, weights = masked["masked_labels"], masked["masked_weights"]
  assert (
    positions.shape == labels.shape == weights.shape == (B, num_predictions)
  )
  ids, text = masked["input_ids"], batch["input_ids"]
  # No corruption changes special tokens.
  for token in (CLS, SEP):
    np.testing.assert_array_equal((ids == token).sum(1), (text == token).sum(1))
  np.testing.assert_array_equal(ids == PAD, masked["segment_ids"] == 0)
  assert ((ids == MASK).any()) == (corruption == "mask")
  if corruption in ("delete", "insert"):
    return  # tests/modeling/masking/test_edits.py
  for b in range(B):
    at = positions[b, weights[b] > 0]
    assert len(set(at)) == len(at) > 0
    np.testing.assert_array_equal(text[b, at], labels[b, : len(at)])
    others = np.setdiff1d(np.arange(L), at)
    np.testing.assert_array_equal(ids[b, others], text[b, others])
    if choose != "tokens":  # Words stay whole: ids from 60 continue a word.
      following = (text[b, at] >= 60) & (text[b, at - 1] >= 5)
      assert np.isin(at[following] - 1, at).all()
    if choose in ("ngrams", "spans"):
      neighbours = at[1:][np.diff(at) == 1]
      masked = ids[b] == MASK
      np.testing.assert_array_equal(masked[neighbours], masked[neighbours - 1])
  if corruption == "substitute":
    used = weights > 0
    at = np.take_along_axis(ids, positions, 1)[used]
    assert at.min() >= 5
    assert at.max() < 90
    assert np.mean(at == labels[used]) < 0.05


def test_mask_rate_applies_to_each_row():
  # 30% of 43, 42, ... 14 tokens, rounded; exact for tokens, a maximum for
  # words.
  batch = make_batch()
  num_to_mask = np.round(0.3 * batch["segment_ids"].sum(1))
  for choose in ("tokens", "spans"):
    masked = jax.jit(make(choose=choose).corrupt)(batch, jax.random.key(2))
    missing = num_to_mask - np.asarray(masked["masked_weights"]).sum(1)
    assert missing.min() == 0
    assert missing.mean() < (0.2 if choose != "tokens" else 1e-6)


@pytest.mark.parametrize(
  ("options", "expected"),
  [
    ({"mask_rate": 0.0}, "objective.mask_rate=0.0"),
    ({"mask_rate": 1.2}, "objective.mask_rate=1.2"),
    ({"mask_rate": math.nan}, "objective.mask_rate=nan"),
    ({"heldout_mask_rate": -0.1}, "objective.heldout_mask_rate=-0.1"),
    ({"heldout_mask_rate": 1.5}, "objective.heldout_mask_rate=1.5"),
    ({"max_predictions": 12}, "max_predictions=12 .*43 tokens.*at least 13"),
    ({"random_share": 0.3}, "mask_share=0.8 and random_share=0.3"),
    ({"random_tokens": "unigrams"}, 'did you mean "unigram"'),
    ({"corruption": "deletion"}, "corruption='deletion'.*mean \"delete\""),
    ({"choose": "word"}, "choose='word' is unknown.*\"words\".*known: tokens"),
    (
      {"corruption": "shuffle", "choose": "words"},
      "choose='words' does not go with corruption='shuffle'",
    ),
    (
      {"corruption": "shuffle", "mask_rate": 0.04},
      "leave 2 of a row of 43: raise mask_rate to 0.05",
    ),
    (
      {"choose": "spans", "max_span_words": 42},
      "max_span_words=42 must be at most 41: rows of 43",
    ),
  ],
)
def test_wrong_options_are_named(options, expected):
  with pytest.raises(ConfigError, match=expected):
    make(**options)
