"""Makes an encoder so small that fine-tuning it takes seconds."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from helpers import killed_runs
from maskedlm.config import defaults
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import Encoder
from maskedlm.modeling.heads import Pooler
from maskedlm.training.checkpoints import files, load, manager

TEXTS = 3 * [
  "the cat sat on the mat and the dog ran to the house",
  "a good film with a bad end , said the man from new york",
  "where is the red book ? it is on the old table in the room .",
  "she sold her house to a company in paris for one million",
]
LENGTH = 48


class State(NamedTuple):
  """The part of a training state that a checkpoint needs."""

  step: Any
  params: Any


def make_encoder(folder, *, vocab_size=90, kind="wordpiece", **options):
  """Writes a workdir with an untrained encoder; returns its path.

  Args:
    folder: the workdir.
    vocab_size: of the tokenizer, trained on TEXTS.
    kind: the tokenizer's algorithm.
    **options: of config.model, instead of those below.
  """
  made = train_tokenizer(
    TEXTS, kind=kind, vocab_size=vocab_size, lowercase=True
  )
  folder.mkdir(parents=True, exist_ok=True)
  made.save(folder / "tokenizer")
  model = defaults.default().model
  model.update(
    num_layers=2, width=24, num_heads=3, mlp_width=40, max_positions=LENGTH
  )
  model.update(options)
  cfg = encoder_config(model, made.vocab_size, LENGTH)
  ids = jnp.zeros((1, 1), jnp.int32)
  hidden = jnp.zeros((1, 1, cfg.width))

  @jax.jit
  def init(encoder_key, pooler_key):
    encoder = Encoder(cfg).init(encoder_key, ids, ids, ids, train=False)
    pooler = Pooler(cfg).init(pooler_key, hidden)
    return {"encoder": encoder["params"], "pooler": pooler["params"]}

  state = State(jnp.int32(0), init(*jax.random.split(jax.random.key(7))))
  opened = manager.open_checkpoints(folder, keep_last=1, keep_best=0, log=print)
  meta = {"task": {"objective": "toy", "encoder": dataclasses.asdict(cfg)}}
  opened.save(0, state, meta, metric=None)
  opened.close()
  return folder


def check_resumed(config, workdir, result, copy):
  """Checks that a run resumed without its last checkpoint ends the same."""
  *_, before, last = files.complete_steps(workdir / "checkpoints")
  killed_runs.killed_after(before, workdir, copy)
  again = run.finetune(configs.typed(config), copy)
  assert {n: v for n, v in again.items() if n != "train_seconds"} == {
    n: v for n, v in result.items() if n != "train_seconds"
  }
  a, b = (load.load_params(p, step=last)[0] for p in (workdir, copy))
  jax.tree.map(np.testing.assert_array_equal, a, b)
