"""Tasks of ELECTRA over a corpus without text."""

import json

import numpy as np

from helpers import stub_objective
from helpers.stub_objective import CLS, PAD, SEP, B, L, V
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.objectives import electra


def make_config(**model):
  return stub_objective.make_config("electra", embedding_width=10, **model)


def make_task(monkeypatch, config=None, **options):
  stub_objective.stub_batches(
    monkeypatch, electra.pair_rows, "adjacent_batches"
  )
  return electra.make_task(
    config or make_config(),
    stub_objective.make_corpus(),
    (0, 1),
    electra.Options(**{"generator_size": 0.5, **options}),
  )


def make_batch():
  """Returns rows of 13, 12, 11, ... tokens."""
  rng = np.random.default_rng(0)
  column, length = np.arange(L), (L - np.arange(B))[:, None]
  ids = np.where(column == 0, CLS, rng.integers(5, V, (B, L)))
  ids = np.where(column == length - 1, SEP, ids)
  real = column < length
  return {
    "input_ids": np.where(real, ids, PAD).astype(np.int32),
    "token_type_ids": np.zeros((B, L), np.int32),
    "segment_ids": real.astype(np.int32),
    "example_weights": np.ones(B, np.float32),
  }


def sizes(task):
  """Returns the EncoderConfigs of the discriminator and the generator."""
  described = json.loads(json.dumps(task.describe))
  return tuple(EncoderConfig(**described[k]) for k in ("encoder", "generator"))
