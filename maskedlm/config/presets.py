"""Optimizer presets: published recipes as plain values, all overridable.

A preset is a function that returns a `config.optimizer` section. The optimizer
reads these values, not the preset's name, so every published detail is visible
in the effective config. docs/reference/presets.md cites the sources.
"""

import inspect
import sys
from collections.abc import Callable

from ml_collections import ConfigDict

from maskedlm.core import options
from maskedlm.core.errors import check_name
from maskedlm.training.optimizer_options import OptimizerOptions


def names() -> dict[str, Callable[[], ConfigDict]]:
  """Returns {name: preset}: this module's functions but `names` and `load`."""
  return {
    name: function
    for name, function in inspect.getmembers(sys.modules[__name__])
    if getattr(function, "__module__", "") == __name__
    and function not in (names, load)
  }


def load(name: str) -> ConfigDict:
  """Returns the config.optimizer of a preset, for `--config.optimizer=NAME`.

  Raises:
    ConfigError: there is no such preset.

  >>> load("lamb").schedule
  'lamb'
  """
  check_name("optimizer", name, tuple(names()))
  return names()[name]()


def adamw() -> ConfigDict:
  """AdamW as Loshchilov & Hutter (arXiv:1711.05101) and optax define it."""
  return options.to_config(OptimizerOptions)


def bert_google() -> ConfigDict:
  """google-research/bert's optimization.py, with the paper's rate and warm-up.

  Devlin et al. (arXiv:1810.04805, A.2); for train.num_steps = 1,000,000.
  """
  optimizer = adamw()
  optimizer.rule = "bert_adam"
  optimizer.schedule = "bert"
  optimizer.eps = 1e-6
  optimizer.warmup_steps = 10_000
  return optimizer


def roberta_fairseq() -> ConfigDict:
  """fairseq's examples/roberta/config/pretraining/base.yaml.

  Liu et al. (arXiv:1907.11692); for train.num_steps = 125,000 of 2,048 rows.
  """
  optimizer = adamw()
  optimizer.learning_rate = 5e-4
  optimizer.warmup_steps = 10_000
  optimizer.b2 = 0.98
  optimizer.eps = 1e-6
  optimizer.no_decay = ()  # fairseq has one group: everything decays.
  optimizer.clip_norm = 0.0
  return optimizer


def spanbert() -> ConfigDict:
  """The command in facebookresearch/SpanBERT's pretraining/README.md.

  Joshi et al. (arXiv:1907.10529); for train.num_steps = 2,400,000.
  """
  optimizer = adamw()
  optimizer.learning_rate = 1e-4
  optimizer.warmup_steps = 10_000
  optimizer.no_decay = ()  # Made with fairseq.
  return optimizer


def electra_google() -> ConfigDict:
  """google-research/electra's optimization.py, with the small model's rate.

  Clark et al. (arXiv:2003.10555); for train.num_steps = 1,000,000.
  """
  optimizer = bert_google()
  optimizer.learning_rate = 5e-4  # 2e-4 for base and large.
  optimizer.schedule = "electra"
  return optimizer


def mosaicbert() -> ConfigDict:
  """mosaicml/examples' mosaic-bert-base-uncased.yaml.

  Portes et al. (arXiv:2312.17482); for train.num_steps = 70,000.
  """
  optimizer = adamw()
  optimizer.learning_rate = 5e-4
  optimizer.warmup_steps = 4_200  # 6% of 70,000 steps.
  optimizer.end_factor = 0.02
  optimizer.b2 = 0.98
  optimizer.eps = 1e-6
  optimizer.weight_decay = 0.02  # Composer's 1e-5 over its peak rate, 5e-4.
  optimizer.no_decay = ()
  optimizer.clip_norm = 0.0
  return optimizer


def modernbert() -> ConfigDict:
  """ModernBERT-base's first phase, and the decay that ends its last.

  Warner et al. (arXiv:2412.13663), yamls/modernbert/*-base-*.yaml; for
  train.num_steps = 374,900 of 4,608 rows of 1,024 tokens
  (docs/reference/presets.md).
  """
  optimizer = adamw()
  optimizer.rule = "stable_adam"
  optimizer.learning_rate = 8e-4
  optimizer.schedule = "wsd_sqrt"
  optimizer.warmup_steps = 636  # 3 billion tokens.
  optimizer.decay_share = 50 / 1_769  # Billions of tokens.
  optimizer.end_factor = 0.001
  optimizer.b2 = 0.98
  optimizer.eps = 1e-6
  optimizer.weight_decay = 0.0125  # Composer's 1e-5 over its peak rate, 8e-4.
  optimizer.clip_norm = 0.0
  return optimizer


def lamb() -> ConfigDict:
  """LAMB (You et al., arXiv:1904.00962) with NVIDIA's values for BERT-large.

  Phase 1: 65,536 rows of 128 tokens a step, train.num_steps = 7,038.
  """
  optimizer = adamw()
  optimizer.rule = "lamb"
  optimizer.learning_rate = 6e-3
  optimizer.schedule = "lamb"
  optimizer.warmup_steps = 2_001  # 28.43% of 7,038 steps.
  optimizer.eps = 1e-6
  return optimizer


def ulmfit() -> ConfigDict:
  """ULM-FiT's fine-tuning of a classifier, with slanted triangular rates.

  Howard & Ruder (arXiv:1801.06146, sections 3.2, 3.3 and 4.1), for an LSTM.
  Half of the steps unfreeze the layers; the paper's epoch for each depends on
  their number (docs/reference/presets.md).
  """
  optimizer = adamw()
  optimizer.learning_rate = 0.01
  optimizer.warmup_steps = 0.1  # The paper's cut_frac.
  optimizer.start_factor = optimizer.end_factor = 1 / 32  # The ratio.
  optimizer.b1 = 0.7
  optimizer.b2 = 0.99
  optimizer.layer_decay = 1 / 2.6
  optimizer.unfreeze_share = 0.5
  return optimizer


def muon() -> ConfigDict:
  """Muon (Jordan et al. 2024) for the layers' matrices, AdamW for the rest.

  The momentum is Jordan's; the rate and b2 were chosen here for small models.
  An update is about as large as AdamW's, so the same rates suit both.
  """
  optimizer = adamw()
  optimizer.rule = "muon"
  optimizer.learning_rate = 2e-3
  optimizer.b1 = 0.95
  optimizer.b2 = 0.98
  return optimizer
