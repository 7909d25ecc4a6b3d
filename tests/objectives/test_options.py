"""Combinations of mlm_nsp's options on real text."""

import jax
import numpy as np
import pytest

from maskedlm.config import overrides
from maskedlm.data.corpus import store
from maskedlm.objectives import mlm_nsp
from maskedlm.training.step import totals


@pytest.mark.parametrize(
  "options",
  [
    {"choose": "words", "pairs": "sop"},
    {"choose": "spans", "mask_rate": 0.3, "pack": True},
    {"corruption": "delete", "choose": "words", "pack": True, "pairs": "sop"},
  ],
  ids=str,
)
def test_options_go_together(tiny, options):
  config, corpus = (
    overrides.load_config(str(tiny[0])),
    store.open_corpus(tiny[1]),
  )
  # Many short rows, so that several share one.
  task = mlm_nsp.make_task(
    config, corpus, (0, 1), mlm_nsp.Options(short_share=0.9, **options)
  )
  params = jax.jit(task.init)(jax.random.key(0))

  @jax.jit
  def run(params, batch, key):
    batch = task.corrupt(batch, key)
    return batch, totals(task.loss(params, batch, key, True))

  def most_pairs(batch):
    return (batch.get("segment_weights", np.ones([1, 2])) > 0).sum(1).max()

  # Which rows are short enough to share one depends on Python's docstrings.
  batches = (task.batch_at("train", step) for step in range(20))
  batch = next(batch for batch in batches if most_pairs(batch) > 1)
  corrupted, (terms, _) = run(params, batch, jax.random.key(1))
  means = {name: float(s / w) for name, (s, w) in terms.items()}
  # 500 tokens and two labels, untrained: ln 500 and ln 2.
  assert means["mlm"] == pytest.approx(6.21, abs=0.1)
  assert means["nsp"] == pytest.approx(0.69, abs=0.1)
  if "pack" in options:  # Segments still begin with [CLS], positions with 0.
    at = np.asarray(corrupted["cls_positions"])
    used = np.asarray(corrupted["segment_weights"]) > 0
    assert used.sum(1).max() > 1
    for name, expected in (
      ("input_ids", corpus.tokenizer.special.cls),
      ("positions", 0),
    ):
      first = np.take_along_axis(np.asarray(corrupted[name]), at, axis=1)
      assert (first[used] == expected).all()
