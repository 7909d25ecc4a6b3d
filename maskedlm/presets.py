"""Optimizer presets: published recipes as plain values, all overridable.

A preset is a `config.optimizer` section. maskedlm.optim reads the values and
never the name, so every published detail is visible in the effective config.
docs/presets.md cites where each value was read.
"""

from ml_collections import ConfigDict


def adamw() -> ConfigDict:
  """AdamW as Loshchilov & Hutter (arXiv:1711.05101) and optax define it."""
  optimizer = ConfigDict()
  optimizer.rule = "adam"  # Update rule: adam | lamb.
  optimizer.learning_rate = 1e-4  # Peak, reached at the end of the warm-up.
  # Shape after the warm-up: linear | cosine | polynomial | constant | wsd.
  optimizer.schedule = "linear"
  optimizer.warmup_steps = 1_000  # Linear from 0, within train.num_steps.
  # True: the decay is counted from step 0, not from the end of the warm-up,
  # so the rate drops by peak * warmup/num_steps where the warm-up ends.
  optimizer.decay_from_zero = False
  optimizer.end_factor = 0.0  # Final rate as a share of the peak.
  optimizer.power = 1.0  # Exponent of the polynomial schedule.
  optimizer.decay_share = 0.1  # wsd: share of the steps that decay, at the end.
  optimizer.b1 = 0.9
  optimizer.b2 = 0.999
  optimizer.eps = 1e-8  # Added outside of the square root.
  optimizer.bias_correction = True
  optimizer.weight_decay = 0.01  # Decoupled: each step takes lr * this * p.
  # Regexes: a parameter whose path holds a match of any has no decay (and no
  # trust ratio in LAMB). One that matches no parameter is an error.
  optimizer.no_decay = ("norm/", "bias")
  optimizer.clip_norm = 1.0  # Global gradient norm; 0 = no clipping.
  return optimizer


def bert_google() -> ConfigDict:
  """google-research/bert's optimization.py, with the paper's rate and warm-up.

  Devlin et al. (arXiv:1810.04805, A.2); made for train.num_steps = 1,000,000.
  """
  optimizer = adamw()
  optimizer.eps = 1e-6
  optimizer.bias_correction = False
  optimizer.decay_from_zero = True
  optimizer.warmup_steps = 10_000
  return optimizer


def lamb() -> ConfigDict:
  """LAMB (You et al., arXiv:1904.00962) with NVIDIA's values for BERT-large.

  Phase 1: 65,536 rows of 128 tokens a step, train.num_steps = 7,038.
  """
  optimizer = adamw()
  optimizer.rule = "lamb"
  optimizer.learning_rate = 6e-3
  optimizer.schedule = "polynomial"
  optimizer.power = 0.5
  optimizer.warmup_steps = 2_001  # 28.43% of 7,038 steps.
  optimizer.decay_from_zero = True
  optimizer.eps = 1e-6
  return optimizer
