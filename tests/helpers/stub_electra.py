"""Tasks of ELECTRA over a corpus without text."""

import json

import numpy as np

from helpers import stub_objective
from helpers.stub_objective import B, L
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import electra


def make_config(**model):
  return stub_objective.make_config("electra", embedding_width=10, **model)


def make_task(monkeypatch, config=None, **options):
  stub_objective.stub_batches(
    monkeypatch, electra.pair_rows, "adjacent_batches"
  )
  task = electra.make_task(
    config or make_config(),
    stub_objective.make_corpus(),
    (0, 1),
    electra.Options(**{"generator_size": 0.5, **options}),
  )
  return stub_objective.compiled(task)


def make_batch():
  """Returns rows of 13, 12, 11, ... tokens."""
  return stub_objective.single_text_rows(L - np.arange(B))


def sizes(task):
  """Returns the EncoderConfigs of the discriminator and the generator."""
  described = json.loads(json.dumps(task.describe))
  return tuple(EncoderConfig(**described[k]) for k in ("encoder", "generator"))
