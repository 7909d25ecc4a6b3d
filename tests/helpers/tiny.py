"""A config and a corpus so small that a whole run takes seconds."""

import os
import subprocess
import sys

# Odd sizes where the mesh allows: 4 heads and widths that 2 and 4 divide.
CONFIG = """
from maskedlm.config import defaults as base

def get_config():
  c = base.default("mlm_nsp")
  c.name = "tiny"
  c.corpus.source = "docstrings:json,logging,argparse,email,unittest"
  c.corpus.heldout_share = 0.2
  c.corpus.num_workers = 1
  c.tokenizer.vocab_size = 500
  c.model.num_layers = 2
  c.model.width = 24
  c.model.num_heads = 4
  c.model.mlp_width = 40
  c.model.max_positions = 48
  # Half as much to compile.
  c.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  c.data.length = 40
  c.data.batch_size = 16
  c.optimizer.learning_rate = 3e-3
  c.optimizer.warmup_steps = 5
  c.train.num_steps = 12
  c.train.log_every = 1
  c.train.eval_every = 6
  c.train.eval_rows = 24
  c.train.checkpoint_every = 4
  return c
"""


def command(*argv, module="maskedlm"):
  return [sys.executable, "-m", module, *map(str, argv)]


def environment(devices: int):
  return {
    **os.environ,
    "XLA_FLAGS": os.environ["XLA_FLAGS"]
    + f" --xla_force_host_platform_device_count={devices}",
    "PYTHONWARNINGS": "ignore",
  }


def run(*argv, devices=2, **kwargs):
  """Runs `maskedlm ...` as a user does; returns the finished process."""
  return subprocess.run(
    command(*argv),
    env=environment(devices),
    capture_output=True,
    text=True,
    check=False,
    timeout=300,
    **kwargs,
  )


def start(*argv, devices=2):
  """Starts `maskedlm ...`; stderr is a pipe."""
  return subprocess.Popen(
    command(*argv),
    env=environment(devices),
    stderr=subprocess.PIPE,
    stdout=subprocess.DEVNULL,
    text=True,
  )
