"""Options that have no effect beside the values of others."""

import ast
import dataclasses
import types

import pytest

from maskedlm.config import defaults
from maskedlm.core import options
from maskedlm.core.options import option


def with_options(objective, section, changes):
  """Returns a config with changes such as "kind=bpe data.alpha=0.5"."""
  config = defaults.default(objective)
  for change in changes.split():
    name, _, text = change.partition("=")
    section_of, _, key = full_name(section, name).partition(".")
    try:
      config[section_of][key] = ast.literal_eval(text)
    except (SyntaxError, ValueError):
      config[section_of][key] = text
  return config


def unused(config):
  return options.unused(config, defaults.sections(config))


def full_name(section, name):
  return name if "." in name else f"{section}.{name}"


@pytest.mark.parametrize(
  ("section", "changes", "names"),
  [
    ("optimizer", "schedule=linear", "decay_share"),
    ("optimizer", "schedule=constant", "end_factor decay_share"),
    ("optimizer", "weight_decay=0.0", "no_decay"),
    ("optimizer", "frozen_layers=-1", "layer_decay unfreeze_share"),
    ("optimizer", "warmup_steps=0", "start_factor"),
    ("corpus", "", "data.alpha tokenizer.alpha text_field"),
    ("corpus", "sentences=lines", "language"),
    ("corpus", "parts=en:a.txt,de:jsonl:b.jsonl", "source language"),
    ("corpus", "parts=en:a.txt", "text_field"),
    ("corpus", "parts=en:a.txt data.shares=en=1", "data.alpha"),
    ("tokenizer", "kind=bpe", "character_coverage byte_fallback"),
    ("tokenizer", "kind=wordpiece", "byte_fallback"),
    ("model", "", "rope_theta local_rope_theta global_every"),
    ("model", "position=rope", "local_rope_theta global_every"),
    ("model", "local_window=16", "rope_theta local_rope_theta"),
    ("objective", "", "max_span_words"),
    ("objective", "train.eval_rows=0", "heldout_mask_rate"),
    ("objective", "random_share=0.0", "random_tokens"),
    ("objective", "corruption=shuffle", "random_tokens random_share"),
    ("objective", "corruption=shuffle", "mask_share"),
    # Substitution draws all tokens, whatever the share.
    ("objective", "corruption=substitute", "mask_share random_share"),
  ],
)
def test_unused_options(section, changes, names):
  found = unused(with_options("mlm_nsp", section, changes))
  assert {full_name(section, name) for name in names.split()} <= found.keys()


@pytest.mark.parametrize(
  ("section", "changes", "names"),
  [
    ("optimizer", "schedule=linear", "end_factor start_factor"),
    ("optimizer", "schedule=wsd", "decay_share end_factor"),
    ("optimizer", "weight_decay=0.0 rule=lamb", "no_decay"),
    ("optimizer", "frozen_layers=1", "layer_decay"),
    ("corpus", "", "source language"),
    (
      "corpus",
      "parts=en:a.txt,de:jsonl:b.jsonl",
      "text_field data.alpha tokenizer.alpha",
    ),
    ("corpus", "source=parquet:x", "text_field"),
    # Its parts are known when it is opened.
    ("corpus", "path=x", "data.alpha tokenizer.alpha text_field"),
    ("corpus", "parts=en:a.txt data.shares=en=1", "tokenizer.alpha"),
    ("model", "", "causal"),
    ("model", "position=rope", "rope_theta"),
    ("model", "local_window=16", "global_every"),
    (
      "model",
      "position=rope local_window=16",
      "rope_theta local_rope_theta global_every",
    ),
    ("objective", "", "mask_share random_share random_tokens"),
    ("objective", "", "heldout_mask_rate"),
    ("objective", "choose=spans", "max_span_words"),
    ("objective", "corruption=substitute random_share=0.0", "random_tokens"),
  ],
)
def test_used_options(section, changes, names):
  found = unused(with_options("mlm_nsp", section, changes))
  assert not {full_name(section, name) for name in names.split()} & found.keys()


@pytest.mark.parametrize(
  ("objective", "changes", "name", "reason"),
  [
    ("mlm_nsp", "", "optimizer.decay_share", "optimizer.schedule='linear'"),
    # A causal model is one by its objective; LSTMs have no attention.
    ("causal", "", "model.causal", "objective.name='causal'"),
    *(
      ("bilm", "", f"model.{name}", "objective.name='bilm'")
      for name in ("num_heads", "position", "attention", "causal")
    ),
    ("bilm", "", "model.mlp_width", None),
    ("spanbert", "", "max_span_targets", None),
    (
      "spanbert",
      "sbo_weight=0.0",
      "max_span_targets",
      "objective.sbo_weight=0.0",
    ),
    ("electra", "", "random_tokens", "objective.random_share=0.0"),
    ("electra", "random_share=0.1", "random_tokens", None),
  ],
)
def test_the_reason_has_the_other_option_and_its_value(
  objective, changes, name, reason
):
  config = with_options(objective, "objective", changes)
  found = unused(config).get(full_name("objective", name))
  assert found == (reason and f"with {reason}")


def test_what_an_option_needs_is_part_of_it():
  """Also in a file of one's own, where no list of names knows it."""

  @dataclasses.dataclass(frozen=True)
  class Options:
    corruption: str = option("soft", "How.")
    strength: float = option(
      0.5, "How much.", needs={"objective.corruption": ("soft",)}
    )
    random_tokens: str = option("all", "Which.", needs={"sweep.seeds": True})

  sections = {"objective": Options}
  config = types.SimpleNamespace(objective=Options())
  assert options.unused(config, sections) == {}  # This config has no sweep.
  config.objective = Options(corruption="hard")
  assert options.unused(config, sections) == {
    "objective.strength": "with objective.corruption='hard'"
  }
