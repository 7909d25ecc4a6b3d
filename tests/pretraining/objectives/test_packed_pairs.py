"""Packed pairs on the device: each is computed as if it were alone."""

import jax
import numpy as np
import pytest

from helpers import prepare_corpus, tiny
from maskedlm.config import overrides
from maskedlm.data.batches import batch_costs
from maskedlm.modeling import flops
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import mlm_nsp
from maskedlm.training.step import totals

B, L = 8, 92


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """Returns a folder with a config file and its text.

  How many pairs share a row depends on the text, so it is not that of `tiny`:
  docstrings differ from Python to Python.
  """
  path = tmp_path_factory.mktemp("packed")
  (path / "text.txt").write_text(prepare_corpus.make_text(7, 300))
  (path / "config.py").write_text(tiny.CONFIG)
  return path


@pytest.fixture(scope="module")
def config(folder):
  config = overrides.load_config(str(folder / "config.py"))
  config.corpus.source = f"text:{folder / 'text.txt'}"
  config.model.max_positions = 95
  config.data.update(length=L, batch_size=B)
  config.train.eval_rows = 5  # The other rows of their batch are fillers.
  return config


@pytest.fixture(scope="module")
def corpus(config, folder):
  return prepare_corpus.prepare_corpus(config, folder / "corpus")


@pytest.fixture(scope="module")
def task(config, corpus):
  # All rows are short, so that many share one.
  return mlm_nsp.make_task(
    config, corpus, (0, 1), mlm_nsp.Options(pack=True, short_share=1.0)
  )


@pytest.fixture(scope="module")
def params(task):
  params = jax.jit(task.init)(jax.random.key(0))
  # Enlarged, so that attention is far from uniform.
  return jax.tree.map(lambda x: 6 * x, params)


def unpack(batch):
  """Returns each segment as its own row: arrays [n, L], and labels [n]."""
  rows = []
  for i, segment_ids in enumerate(batch["segment_ids"]):
    for k in range(segment_ids.max()):
      at = segment_ids == k + 1
      size = at.sum()
      row = {
        name: np.zeros(L, np.int32)
        for name in ("input_ids", "token_type_ids", "segment_ids")
      }
      row["input_ids"][:size] = batch["input_ids"][i][at]
      row["token_type_ids"][:size] = batch["token_type_ids"][i][at]
      row["segment_ids"][:size] = 1
      row["nsp_labels"] = batch["nsp_labels"][i, k]
      row["example_weights"] = batch["example_weights"][i]
      rows.append(row)
  return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def test_nsp_of_packed_rows_is_that_of_their_pairs(task, params):
  cfg = EncoderConfig(**task.describe["encoder"])
  loss = jax.jit(lambda *args: totals(mlm_nsp.loss(cfg, *args, None, False)))
  train, heldout = task.batch_at("train", 1), task.batch_at("heldout", 0)
  assert train["example_weights"].tolist() == [1] * B
  assert heldout["example_weights"].tolist() == [1] * 5 + [0] * 3
  for batch in (train, heldout):
    # Predict the first three tokens after each [CLS] of the row's first pair.
    masked = {
      "masked_positions": np.tile(np.arange(1, 4), (B, 1)),
      "masked_labels": batch["input_ids"][:, 1:4],
      "masked_weights": np.tile(batch["example_weights"][:, None], (1, 3)),
    }
    packed = loss(params, {**batch, **masked})
    parts = unpack(batch)
    first = np.cumsum([0, *batch["segment_ids"].max(1)])[:-1]
    chosen = np.zeros((len(parts["input_ids"]), 1))
    chosen[first] = batch["example_weights"][:, None]
    masked = {
      "masked_positions": np.tile(np.arange(1, 4), (len(chosen), 1)),
      "masked_labels": parts["input_ids"][:, 1:4],
      "masked_weights": np.tile(chosen, (1, 3)),
    }
    alone = loss(params, {**parts, **masked})
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), packed, alone
    )
    num_pairs = packed[0]["nsp"][1]
    assert num_pairs == np.sum(parts["example_weights"])
    assert num_pairs > batch["example_weights"].sum()


def test_the_mask_budget_is_that_of_the_whole_row(task):
  batch = task.batch_at("train", 2)
  corrupted = jax.jit(task.corrupt)(batch, jax.random.key(3))
  assert corrupted["masked_positions"].shape == (B, 14)
  real = np.sum(batch["segment_ids"] > 0, axis=1)
  expected = [max(round(0.15 * n), 1) for n in real.tolist()]
  assert corrupted["masked_weights"].sum(1).tolist() == expected
  changed = np.asarray(corrupted["input_ids"] != batch["input_ids"])
  assert changed.any()
  for i in range(B):
    first = batch["segment_weights"][i] > 0
    assert not changed[i][batch["cls_positions"][i][first]].any()


def test_flops_count_attention_within_pairs(config, corpus, task):
  plain = mlm_nsp.make_task(config, corpus, (0, 1), mlm_nsp.Options())
  cfg = EncoderConfig(**task.describe["encoder"])
  pairs = batch_costs.attended_pairs(task.batch_at("train", 0)["segment_ids"])
  assert pairs < 0.9 * L**2
  assert plain.flops(3) == B * flops.train_flops(cfg, L, num_predictions=14)
  assert task.flops(3) == B * flops.train_flops(
    cfg, L, num_predictions=14, attended=pairs
  )
