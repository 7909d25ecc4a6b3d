"""What holds for every objective, on rows of 29, 26, ... 8 tokens."""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from helpers import stub_objective
from helpers.stub_objective import B, V, jitted_loss
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Params, Task
from maskedlm.data.batches import pair_rows, text_rows
from maskedlm.modeling.architecture import restored
from maskedlm.pretraining import objectives
from maskedlm.pretraining.objectives import causal
from maskedlm.training.step import totals

L = 29
BATCHES = {
  "mlm_nsp": (pair_rows, "nsp_batches"),
  "roberta": (text_rows, "full_sentence_batches"),
  "spanbert": (text_rows, "document_batches"),
  "electra": (pair_rows, "adjacent_batches"),
  "causal": (text_rows, "full_sentence_batches"),
  "bilm": (text_rows, "full_sentence_batches"),
  "gptbert": (text_rows, "full_sentence_batches"),
  "deberta": (text_rows, "full_sentence_batches"),
}
MODELS = {
  "electra": {"embedding_width": 10},
  "bilm": {"type_vocab_size": 0},
  "deberta": {"position": "disentangled", "type_vocab_size": 0},
}
OPTIONS = {
  "spanbert": {"mask_rate": 0.4, "max_span_targets": 3},
  "electra": {"generator_size": 0.5},
  "gptbert": {"masked_share": 0.5},
}
NAMES = list(BATCHES)


def make_batch():
  """Returns rows [CLS] text [SEP], and what some objectives read."""
  batch = stub_objective.single_text_rows(L - 3 * np.arange(B), length=L)
  return batch | {
    "positions": np.tile(np.arange(L, dtype=np.int32), (B, 1)),
    "nsp_labels": np.int32([0, 1, 1, 0, 1, 0, 0, 1]),
  }


def make(patch, name, **options):
  """Returns (Task, what its rows are)."""
  patch.setattr(causal, "CHUNK", 4)
  asked = stub_objective.stub_batches(
    patch, *BATCHES[name], batch_at=lambda *_: make_batch()
  )
  config = stub_objective.make_config(
    name, max_positions=31, **MODELS.get(name, {})
  )
  config.data.length = L
  config.objective.update(OPTIONS.get(name, {}) | options)
  if "pack" in config.objective:
    config.objective.pack = False  # These rows have no number.
  corpus = stub_objective.make_corpus()
  return objectives.make_task(config, corpus, (1, 2)), asked


class Made(NamedTuple):
  """A Task, its compiled functions, and what they made of a batch."""

  name: str
  task: Task
  params: Params  # As training begins.
  batch: Batch  # Corrupted by the key 1.
  corrupt: Callable
  loss: Callable  # (params, batch, key, train) -> summed terms and metrics.


@pytest.fixture(scope="module", params=NAMES)
def made(request):
  with pytest.MonkeyPatch.context() as patch:
    task, _ = make(patch, request.param)
    corrupt = jax.jit(task.corrupt)
    yield Made(
      request.param,
      task,
      jax.jit(task.init)(jax.random.key(0)),
      corrupt(make_batch(), jax.random.key(1)),
      corrupt,
      jitted_loss(task),
    )


def test_a_gradient_on_8_devices(made):
  """Each parameter learns; masks and losses don't depend on the mesh."""

  key = jax.random.key(5)

  def total(params, rows):
    batch = made.task.corrupt(rows, jax.random.key(1))
    terms = totals(made.task.loss(params, batch, key, True))
    return sum(s / w for s, w in terms[0].values()), (terms, batch)

  mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
  whole = NamedSharding(mesh, PartitionSpec())
  split = NamedSharding(mesh, PartitionSpec("data"))
  params = jax.device_put(made.params, whole)
  rows = jax.device_put(make_batch(), split)
  slope, (terms, batch) = jax.jit(jax.grad(total, has_aux=True))(params, rows)
  for name, x in made.batch.items():
    np.testing.assert_array_equal(batch[name], x)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
    terms,
    made.loss(made.params, made.batch, key, True),
  )
  for path, x in jax.tree_util.tree_leaves_with_path(slope):
    name = jax.tree_util.keystr(path)
    # The key's bias shifts all scores of a query equally; softmax ignores it.
    if "qkv" in name and x.shape[1] == 3:
      x = x[:, ::2]
    assert np.isfinite(x).all() and np.abs(x).max() > 0, name


SUBTREES = {
  "mlm_nsp": "encoder mlm_head nsp_head pooler",
  "roberta": "encoder mlm_head",
  "spanbert": "encoder mlm_head sbo_head",
  "electra": "discriminator_head encoder generator mlm_head",
  "deberta": "encoder generator mlm_head rtd_head",
  "causal": "encoder mlm_head",
  "bilm": "bilm_head encoder",
  "gptbert": "encoder mlm_head",
}
# Term -> the number of classes, and its weight.
TERMS = {
  "mlm_nsp": {"mlm": (V, 1), "nsp": (2, 1)},
  "roberta": {"mlm": (V, 1)},
  "spanbert": {"mlm": (V, 1), "sbo": (V, 1)},
  "electra": {"mlm": (V, 1), "discriminator": (2, 50)},
  "deberta": {"mlm": (V, 1), "discriminator": (2, 10)},
  "causal": {"lm": (V, 1)},
  "bilm": {"lm": (V, 1)},
  "gptbert": {"mlm": (V, 0.5), "lm": (V, 0.5)},
}


def test_an_untrained_model_knows_nothing(made):
  """All 131 tokens, and both labels, are about as likely: ln 131 and ln 2."""
  assert sorted(made.params) == SUBTREES[made.name].split()
  terms, metrics = made.loss(made.params, made.batch, None, False)
  assert set(terms) == set(TERMS[made.name])
  for term, (classes, scale) in TERMS[made.name].items():
    total, count = terms[term]
    mean = float(total / count) / scale
    assert mean == pytest.approx(math.log(classes), abs=0.05)
    if made.name != "bilm":  # It has a loss of each direction.
      found = [float(x) for x in metrics[f"{term}_loss"]]
      assert found[0] / found[1] == pytest.approx(mean)


def test_dropout_only_in_training(made):
  first, other, same = (
    made.loss(made.params, made.batch, jax.random.key(k), True)[0]
    for k in (1, 2, 1)
  )
  assert all(first[term][0] != other[term][0] for term in first)
  assert first == same
  # Held-out losses need no key.
  assert made.loss(made.params, made.batch, None, False)[0] != first


def test_rows_of_weight_0_count_nothing(made):
  """Three rows are padding, as in the last held-out batch; one has text."""
  params = stub_objective.random_params(made.task)
  batch = make_batch()
  batch["example_weights"][5:] = 0
  batch["segment_ids"][6:] = batch["input_ids"][6:] = 0
  batch = jax.device_get(made.corrupt(batch, jax.random.key(1)))
  whole, _ = made.loss(params, batch, None, False)
  five = jax.tree.map(lambda x: x[:5], batch)
  alone, _ = made.loss(params, five, None, False)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), whole, alone
  )


@pytest.mark.parametrize("name", NAMES)
def test_description_rebuilds_the_encoder(monkeypatch, name):
  task, asked = make(monkeypatch, name)
  described = json.loads(json.dumps(task.describe))
  assert described["objective"] == name
  cfg = restored(described["encoder"])
  assert dataclasses.asdict(cfg) == described["encoder"]
  assert (cfg.vocab_size, cfg.width, cfg.max_positions) == (V, 24, 31)
  assert asked["shard"] == (1, 2)
  assert task.num_heldout_batches == 3
  assert task.row_ids("train", 3) == ("train", 3)


@pytest.mark.parametrize(
  ("name", "options", "expected"),
  [
    ("mlm_nsp", {"mask_rate": 0.0}, "objective.mask_rate=0.0"),
    ("mlm_nsp", {"max_predictions": 1}, "=1 .*29 tokens.*at least 4"),
    ("mlm_nsp", {"pairs": "next"}, "objective.pairs='next'.*nsp, sop"),
    ("mlm_nsp", {"choose": "word"}, 'did you mean "words"'),
    ("mlm_nsp", {"corruption": "masks"}, 'did you mean "mask"'),
    ("roberta", {"random_share": 0.3}, r"random_share=0\.3"),
    ("roberta", {"random_tokens": "unigrams"}, 'did you mean "unigram"'),
    ("spanbert", {"mask_rate": 0.0}, "mask_rate=0.0 .*above 0"),
    ("spanbert", {"max_predictions": 9}, "=9 .*27 tokens.*at least 11"),
    ("spanbert", {"random_share": 0.3}, "random_share=0.3"),
    ("spanbert", {"random_tokens": "unigrams"}, 'did you mean "unigram"'),
    ("spanbert", {"mask_share": -0.1}, "objective.mask_share=-0.1 .*0 to 1"),
    ("spanbert", {"mask_share": math.nan}, "mask_share=nan .*0 to 1"),
    ("spanbert", {"sbo_weight": -1.0}, "sbo_weight=-1.0"),
    ("spanbert", {"max_span_targets": 0}, "max_span_targets=0 .*expected .*1"),
    ("electra", {"mask_rate": 0.0}, "objective.mask_rate=0.0"),
    ("electra", {"generator_size": 0.0}, "generator_size=0.0 .*above 0"),
    ("electra", {"generator_layers": 1.5}, "layers=1.5 .*at most 1"),
    (
      "electra",  # 0.7 of 24 is 17, which two heads of 8 don't divide.
      {"generator_size": 0.7},
      "generator_size=0.7 of model.width=24 is 17, which 2 heads do not "
      "divide.*shared embedding.*generator_size=0.666667",
    ),
  ],
)
def test_wrong_options_are_named(monkeypatch, name, options, expected):
  with pytest.raises(ConfigError, match=expected):
    make(monkeypatch, name, **options)
