"""Continued pretraining: an existing model reads more of one kind of text.

  laptop   32 rows of 128 tokens, 8 at a time; 1,000 steps
  gpu      256 rows of 512 tokens, 32 at a time, in bfloat16; 12,500 steps
           (the default)

Masked tokens alone, as RoBERTa. The rate falls from 1e-4 to 0 after a warm-up
of 6% of the steps, whatever train.num_steps is. These, the 256 rows and the
12,500 steps are those of Gururangan et al. 2020, "Don't stop pretraining",
https://arxiv.org/abs/2004.10964, table 13; laptop is for less text and a
smaller machine. The architecture and the tokenizer are those of init_from.

  maskedlm pretrain --config=configs/continued.py:laptop \\
    --config.init_from=runs/small --workdir=runs/small_law \\
    --config.corpus.source='text:/data/law/*.txt'

docs/guides/pretrain/continued-pretraining.md says how much memory
these take, and how to measure what they are worth.
"""

from maskedlm.config import defaults
from maskedlm.core.errors import check_name

SIZES = {
  "laptop": {"length": 128, "batch_size": 32},
  "gpu": {"length": 512, "batch_size": 256},
}


def get_config(size="gpu"):
  check_name("configs/continued.py:SIZE", size, SIZES)
  config = defaults.default("roberta")
  config.name = f"continued_{size}"
  config.data.update(SIZES[size])
  config.optimizer.learning_rate = 1e-4
  config.optimizer.b2 = 0.98
  config.optimizer.eps = 1e-6
  if size == "laptop":
    config.train.accumulate = 4
    config.train.num_steps = 1_000
    config.train.log_every = 50
    config.train.eval_every = 250
    config.train.checkpoint_every = 250
  else:
    config.model.dtype = "bfloat16"
    config.model.remat = "dots"
    config.train.accumulate = 8
    config.train.num_steps = 12_500
    config.train.eval_every = 1_250
    config.train.checkpoint_every = 500
  config.optimizer.warmup_steps = 0.06  # A share: it follows num_steps.
  return config
