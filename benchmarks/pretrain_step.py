"""One training step of ours against PyTorch + transformers, side by side.

  python benchmarks/pretrain_step.py --shapes small,base --json FILE

Both train BERT on MLM + NSP with dropout and AdamW on rows of 128 tokens with
20 predicted: ours is what `maskedlm pretrain` compiles, masking included (the
peer is given masked rows). The peer runs eager and under torch.compile, as a
user runs it (a head over every position) and with the head on the predicted
positions only. float32 on a CPU; on a GPU bfloat16, both frameworks on it.

Contenders take turns, so that what else the machine does hits all of them;
the median counts. Needs the extra `peer`.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

# Two frameworks share one GPU: neither may take all of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np
import torch
import transformers

from maskedlm import config as config_lib
from maskedlm import optim, sharding
from maskedlm import step as steps
from maskedlm.config import load_objective
from maskedlm.modeling.encoder import encoder_config
from maskedlm.modeling.flops import train_flops

LENGTH, SLOTS, VOCAB = 128, 20, 30_522
OURS = "maskedlm"


class Shape(NamedTuple):
  """A model and its batch."""

  num_layers: int
  width: int
  num_heads: int
  mlp_width: int
  rows: int

  def __str__(self):
    return f"{self.num_layers}x{self.width} B{self.rows} S{LENGTH}"


SHAPES = {
  "small": Shape(4, 256, 4, 1024, 32),
  "base": Shape(12, 768, 12, 3072, 8),
}


class Contender(NamedTuple):
  """Something that trains."""

  run: Callable[[int], None]  # Takes that many steps and waits for them.
  flops: float  # Matmul FLOPs that one row costs it.


def measure(contenders: Mapping[str, Contender], *, rounds: int, block: int):
  """name -> median seconds of a step, over rounds in which each runs once."""
  seconds = {name: [] for name in contenders}
  for _ in range(rounds):
    for name, contender in contenders.items():
      began = time.perf_counter()
      contender.run(block)
      seconds[name].append((time.perf_counter() - began) / block)
  return {name: statistics.median(times) for name, times in seconds.items()}
