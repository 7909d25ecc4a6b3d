"""Options that have no effect beside the values of others."""

import pytest

from maskedlm import objectives
from maskedlm.config import defaults, effects


@pytest.mark.parametrize(
  ("changes", "unused", "used"),
  [
    (
      {"optimizer.schedule": "linear"},
      "optimizer.power optimizer.decay_share optimizer.warmup_times_decay",
      "optimizer.end_factor optimizer.decay_from_zero",
    ),
    (
      {"optimizer.schedule": "wsd"},
      "optimizer.power optimizer.decay_from_zero",
      "optimizer.decay_share optimizer.end_factor",
    ),
    (
      {"optimizer.schedule": "constant"},
      "optimizer.end_factor optimizer.decay_share optimizer.decay_from_zero",
      "",
    ),
    (
      {"optimizer.schedule": "polynomial", "optimizer.decay_from_zero": True},
      "optimizer.decay_share",
      "optimizer.power optimizer.warmup_times_decay",
    ),
    ({"optimizer.weight_decay": 0.0}, "optimizer.no_decay", ""),
    (
      {"optimizer.weight_decay": 0.0, "optimizer.rule": "lamb"},
      "",
      "optimizer.no_decay",
    ),
    (
      {},
      "data.alpha tokenizer.alpha corpus.text_field",
      "corpus.source corpus.language",
    ),
    ({"corpus.sentences": "lines"}, "corpus.language", ""),
    (
      {"optimizer.frozen_layers": -1},
      "optimizer.layer_decay optimizer.unfreeze_share",
      "",
    ),
    ({"optimizer.warmup_steps": 0}, "optimizer.start_factor", ""),
    ({"optimizer.frozen_layers": 1}, "", "optimizer.layer_decay"),
    (
      {"corpus.parts": "en:a.txt,de:jsonl:b.jsonl"},
      "corpus.source corpus.language",
      "corpus.text_field data.alpha tokenizer.alpha",
    ),
    ({"corpus.parts": "en:a.txt"}, "corpus.text_field", ""),
    ({"corpus.source": "parquet:x"}, "", "corpus.text_field"),
    # Its parts are known when it is opened.
    ({"corpus.path": "x"}, "", "data.alpha tokenizer.alpha corpus.text_field"),
    (
      {"corpus.parts": "en:a.txt", "data.shares": "en=1"},
      "data.alpha",
      "tokenizer.alpha",
    ),
    (
      {"tokenizer.kind": "bpe"},
      "tokenizer.character_coverage tokenizer.byte_fallback",
      "",
    ),
    (
      {},
      "model.rope_theta model.local_rope_theta model.global_every",
      "model.causal",
    ),
    (
      {"model.position": "rope"},
      "model.local_rope_theta model.global_every",
      "model.rope_theta",
    ),
    (
      {"model.local_window": 16},
      "model.rope_theta model.local_rope_theta",
      "model.global_every",
    ),
    (
      {"model.position": "rope", "model.local_window": 16},
      "",
      "model.rope_theta model.local_rope_theta model.global_every",
    ),
    (
      {},
      "objective.max_span_words",
      "objective.mask_share objective.random_share objective.random_tokens "
      "objective.heldout_mask_rate",
    ),
    ({"objective.choose": "spans"}, "", "objective.max_span_words"),
    ({"train.eval_rows": 0}, "objective.heldout_mask_rate", ""),
    ({"objective.random_share": 0.0}, "objective.random_tokens", ""),
    (
      {"objective.corruption": "shuffle"},
      "objective.random_tokens objective.mask_share objective.random_share",
      "",
    ),
    # Substitution draws all tokens, whatever the share.
    (
      {"objective.corruption": "substitute", "objective.random_share": 0.0},
      "objective.mask_share objective.random_share",
      "objective.random_tokens",
    ),
  ],
)
def test_pretraining(changes, unused, used):
  config = defaults.default()
  config.update_from_flattened_dict(changes)
  found = effects.unused_options(config)
  assert not set(unused.split()) - found.keys()
  assert not set(used.split()) & found.keys()


def test_the_reason_has_the_other_option_and_its_value():
  found = effects.unused_options(defaults.default())
  assert found["optimizer.power"] == "with optimizer.schedule='linear'"


@pytest.mark.parametrize("objective", objectives.names())
def test_only_options_of_the_config_are_named(objective):
  config = defaults.default(objective)
  config.train.eval_rows = 0
  config.optimizer.schedule = "constant"
  for name in effects.unused_options(config):
    *sections, key = name.split(".")
    section = config[sections[0]] if sections else config
    assert key in section, name


def test_a_causal_model_is_one_by_its_objective():
  found = effects.unused_options(defaults.default("causal"))
  assert found["model.causal"] == "with objective.name='causal'"


def test_lstms_have_no_attention():
  found = effects.unused_options(defaults.default("bilm"))
  for name in ("num_heads", "position", "attention", "causal"):
    assert found[f"model.{name}"] == "with objective.name='bilm'"
  assert "model.mlp_width" not in found


def test_spanbert_has_no_targets_of_weight_0():
  config = defaults.default("spanbert")
  assert "objective.max_span_targets" not in effects.unused_options(config)
  config.objective.sbo_weight = 0.0
  found = effects.unused_options(config)
  assert found["objective.max_span_targets"] == (
    "with objective.sbo_weight=0.0"
  )


def test_electra_draws_no_random_tokens_by_default():
  config = defaults.default("electra")
  found = effects.unused_options(config)
  assert found["objective.random_tokens"] == "with objective.random_share=0.0"
  config.objective.random_share = 0.1
  assert "objective.random_tokens" not in effects.unused_options(config)


def test_options_of_an_own_objective_may_mean_something_else():
  config = defaults.default("roberta")
  with config.unlocked():
    config.objective = {"name": "./x.py", "mask_share": 0.5, "corruption": 1}
  assert not any("objective." in n for n in effects.unused_options(config))
