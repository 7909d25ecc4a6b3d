"""What holds for every objective, on rows of 29, 26, ... 8 tokens."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from helpers import any_task, stub_objective
from helpers.stub_objective import B, V, jitted_loss
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import pair_rows, text_rows
from maskedlm.modeling.architecture import restored
from maskedlm.pretraining import objectives
from maskedlm.pretraining.objectives import causal

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


@pytest.fixture
def make(monkeypatch):
  """Returns the function (name, **options) -> (Task, what its rows are)."""
  monkeypatch.setattr(causal, "CHUNK", 4)

  def make(name, **options):
    asked = stub_objective.stub_batches(
      monkeypatch, *BATCHES[name], batch_at=lambda *_: make_batch()
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

  return make


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(make, name):
  any_task.check_every_parameter_learns(make(name)[0], make_batch())


@pytest.mark.parametrize("name", NAMES)
def test_split_over_8_devices_it_is_the_same(make, name):
  task, _ = make(name)
  params = task.init(jax.random.key(0))
  any_task.check_split_over_8_devices(task, params, make_batch())


@pytest.mark.parametrize(
  ("name", "subtrees", "losses"),
  [
    ("mlm_nsp", "encoder mlm_head nsp_head pooler", {"mlm": V, "nsp": 2}),
    ("roberta", "encoder mlm_head", {"mlm": V}),
    ("spanbert", "encoder mlm_head sbo_head", {"mlm": V, "sbo": V}),
    (
      "electra",
      "discriminator_head encoder generator mlm_head",
      {"mlm": V, "discriminator": 2},
    ),
    (
      "deberta",
      "encoder generator mlm_head rtd_head",
      {"mlm": V, "discriminator": 2},
    ),
    ("causal", "encoder mlm_head", {"lm": V}),
    ("bilm", "bilm_head encoder", {"lm": V}),
    ("gptbert", "encoder mlm_head", {"mlm": V, "lm": V}),
  ],
)
def test_an_untrained_model_knows_nothing(make, name, subtrees, losses):
  """All 131 tokens, and both labels, are about as likely: ln 131 and ln 2."""
  task, _ = make(name)
  params = jax.jit(task.init)(jax.random.key(0))
  assert sorted(params) == subtrees.split()
  batch = task.corrupt(make_batch(), jax.random.key(1))
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  assert set(terms) == set(losses)
  scale = {"discriminator": 50}  # ELECTRA's weight of this term.
  if name == "deberta":
    scale = {"discriminator": 10}
  if name == "gptbert":
    scale = {"mlm": 0.5, "lm": 0.5}
  for term, classes in losses.items():
    total, count = terms[term]
    mean = float(total / count) / scale.get(term, 1)
    assert mean == pytest.approx(math.log(classes), abs=0.05)
    if name != "bilm":  # It has a loss of each direction.
      found = [float(x) for x in metrics[f"{term}_loss"]]
      assert found[0] / found[1] == pytest.approx(mean)


@pytest.mark.parametrize("name", NAMES)
def test_dropout_only_in_training(make, name):
  task, _ = make(name)
  params = task.init(jax.random.key(0))
  batch = task.corrupt(make_batch(), jax.random.key(1))
  loss = jitted_loss(task)
  (first, other), (same, again) = (
    [loss(params, batch, jax.random.key(k), train)[0] for k in (1, 2)]
    for train in (True, False)
  )
  assert all(first[term][0] != other[term][0] for term in first)
  assert same == again


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_weight_0_count_nothing(make, name):
  """Two rows are padding, as in the last held-out batch; one has text."""
  task, _ = make(name)
  params = stub_objective.random_params(task)
  batch = make_batch()
  batch["example_weights"][5:] = 0
  batch["segment_ids"][6:] = batch["input_ids"][6:] = 0
  batch = jax.device_get(task.corrupt(batch, jax.random.key(1)))
  loss = jitted_loss(task)
  whole, _ = loss(params, batch, None, False)
  alone, _ = loss(params, {k: v[:5] for k, v in batch.items()}, None, False)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), whole, alone
  )


@pytest.mark.parametrize("name", NAMES)
def test_description_rebuilds_the_encoder(make, name):
  task, asked = make(name)
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
def test_wrong_options_are_named(make, name, options, expected):
  with pytest.raises(ConfigError, match=expected):
    make(name, **options)


MASKING = {
  "mask_rate": 0.15,
  "max_predictions": 0,
  "mask_share": 0.8,
  "random_share": 0.1,
  "random_tokens": "unigram",
}
CHOICES = {
  "heldout_mask_rate": 0.0,
  "choose": "tokens",
  "max_span_words": 10,
  "corruption": "mask",
}


@pytest.mark.parametrize(
  ("name", "expected"),
  [
    (
      "mlm_nsp",
      MASKING
      | CHOICES
      | {"pairs": "nsp", "short_share": 0.1, "pooler": True, "pack": None},
    ),
    (
      "roberta",
      MASKING
      | CHOICES
      | {"isolate_documents": False, "whole_sentences": False}
      | {"documents": "", "adapt_every": 0},
    ),
    (
      "spanbert",
      MASKING
      | {
        "sbo_weight": 1.0,
        "max_span_targets": 15,
        "sbo_at_edges": False,
        "pack": None,
      },
    ),
  ],
)
def test_defaults_are_those_of_the_paper(name, expected):
  objective = defaults.default(name).objective.to_dict()
  assert objective == {"name": name, **expected}
