"""Padding and cost of batches: by hand, and on English novels."""

import numpy as np
import pytest

from helpers.splits import make_config, make_data
from maskedlm.config import defaults
from maskedlm.data.batches import batch_costs, text_rows
from maskedlm.data.prepare import prepare


def test_padding_and_attended_pairs_by_hand():
  segment_ids = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])

  def batch_at(split, step):
    assert split == "train"
    return {"segment_ids": segment_ids[: step + 1]}

  # 1 of 6, then 1 of 12 positions.
  assert batch_costs.padding_share(batch_at, "train", [0]) == pytest.approx(
    1 / 6
  )
  assert batch_costs.padding_share(batch_at, "train", [0, 1]) == pytest.approx(
    2 / 18
  )
  assert batch_costs.attended_pairs(segment_ids[:1]) == 9 + 4
  assert batch_costs.attended_pairs(segment_ids) == (9 + 4 + 36) / 2


def test_the_cost_of_a_step_by_hand():
  def batch_at(split, step):
    assert (split, step) == ("train", 0)  # No other is read.
    return {"segment_ids": np.ones((1, 7), np.int32)}

  def row_cost(pairs):
    return 1000 + (pairs or 0)

  packed = batch_costs.step_cost(row_cost, batch_at, 6, packed=True)
  assert packed(0) == packed(4) == 6 * (1000 + 7**2)
  alone = batch_costs.step_cost(row_cost, batch_at, 6, packed=False)
  assert alone(0) == alone(4) == 6 * 1000


@pytest.fixture(scope="module")
def novels(data_dir, tmp_path_factory):
  """A corpus of 0.6 MB of English novels, with a small vocabulary."""
  folder = tmp_path_factory.mktemp("novels")
  text = (data_dir / "text" / "en_novels.txt").read_bytes()[:600_000]
  (folder / "text.txt").write_bytes(text)
  config = defaults.default()
  config.corpus.source = f"text:{folder / 'text.txt'}"
  config.corpus.num_workers = 1
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 2_000
  return prepare.prepare(config, folder / "corpus", log=lambda line: None)


@pytest.mark.parametrize("length", [512, 128])
def test_97_percent_of_a_full_row_is_text(novels, length):
  data = make_data(length=length, batch_size=32)
  special = novels.tokenizer.special
  for isolate in (False, True):
    reader = text_rows.full_sentence_batches(
      make_config(data), novels, (0, 1), isolate_documents=isolate
    )
    assert batch_costs.padding_share(reader.batch_at, "train", range(10)) < 0.01
    ids = [reader.batch_at("train", step)["input_ids"] for step in range(10)]
    text = ~np.isin(ids, [special.pad, special.cls, special.sep])
    assert text.mean() > 0.97
