"""ModernBERT: 1.7 trillion tokens in short rows, then long ones, then a decay.

  base   22 layers x 768, 149M parameters (the default)
  large  28 layers x 1024, 395M parameters

Paper: Warner et al. 2024, https://arxiv.org/abs/2412.13663, sections 2.2 and A.
The numbers are those of the authors' yamls/modernbert/modernbert-*.yaml (branch
pretraining_documentation). Of base:

  tokens  rows                 rate
  50B     768 to 4,608 x 1,024  to 8e-4 in 3B tokens
  1,669B  4,608 x 1,024         8e-4
  250B    576 x 8,192           3e-4, with rope_theta=160,000 in global layers
  50B     576 x 8,192           from 3e-4 to 3e-7 by 1 - sqrt

Large has a rate of 5e-4 for 900B tokens, the first 10B of which grow the batch
from 448 to 4,928 rows, and of 5e-5 from there on: its loss no longer fell.

  maskedlm pretrain --config=configs/modernbert.py:base --workdir=runs/modern \\
    --config.corpus.source='text:/data/*.txt'

Large began with base's weights:

  maskedlm pretrain --config=configs/modernbert.py:large --workdir=runs/large \\
    --config.init_from=runs/modern --config.grow=tile --config.mesh.fsdp=8 \\
    --config.corpus.source='text:/data/*.txt'

train.accumulate suits 8 GPUs. Differences: the batch grows in five sizes, which
are as many steps each and read as many tokens as the authors' steps of a row.
There is no dropout of 0.1 on attention's output, as dropout is a single option
here; a row has a fixed number of masks, none of them on [CLS] and [SEP]; rows
are cut from running text, each document attends only to itself, and only the
first one of a row has a [CLS], where theirs are packed from whole sequences.
Large was rolled back before its rate fell, by a number of tokens that is not
published. Base is the mean of several checkpoints of the decay (`maskedlm
average`). As theirs, the held-out loss is at 15% masking. Neither size has been
trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name
from maskedlm.training.phases import ramp, total_steps

SIZES = {
  "base": {"num_layers": 22, "width": 768, "num_heads": 12, "mlp_width": 1152},
  "large": {
    "num_layers": 28,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 2624,
  },
}
_LONG = {"data.length": 8_192, "model.rope_theta": 160_000.0}
_DECAY = {
  "tokens": 50e9,
  "optimizer.schedule": "wsd_sqrt",
  "optimizer.decay_share": 1.0,
  "optimizer.end_factor": 0.001,
  "optimizer.warmup_steps": 0,
}


def get_config(size="base"):
  check_name("configs/modernbert.py:SIZE", size, SIZES)
  config = defaults.default("roberta")
  config.name = f"modernbert_{size}"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 50_368
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  config.model.max_positions = 8_192
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.norm_epsilon = 1e-5
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.local_window = 128
  config.model.global_every = 3
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.model.scaled_init = True
  config.data.length = 1_024
  config.optimizer = presets.modernbert()
  config.optimizer.schedule = "constant"
  if size == "base":
    config.data.batch_size = 4_608
    config.optimizer.learning_rate = 8e-4
    config.optimizer.weight_decay = 1e-5 / 8e-4  # Composer's, over the peak.
    config.optimizer.warmup_steps = 2_543  # 3 billion tokens.
    config.train.accumulate = 6
    config.phases = (
      # 50 billion tokens.
      *ramp("data.batch_size", (1152, 1920, 2688, 3456, 4224), steps=5 * 3_633),
      {"tokens": 1_669e9, "data.batch_size": 4_608},
      {
        "tokens": 250e9,
        **_LONG,
        "data.batch_size": 576,
        "optimizer.learning_rate": 3e-4,
        "optimizer.weight_decay": 1e-5 / 3e-4,
        "optimizer.warmup_steps": 0,
      },
      _DECAY,
    )
  else:
    config.data.batch_size = 4_928
    config.optimizer.learning_rate = 5e-4
    config.optimizer.weight_decay = 0.02  # 1e-5 / 5e-4, later 1e-6 / 5e-5.
    config.optimizer.warmup_steps = 1_454  # 2 billion tokens.
    config.train.accumulate = 7
    config.phases = (
      # 10 billion tokens.
      *ramp("data.batch_size", (896, 1792, 2688, 3584, 4480), steps=5 * 727),
      {"tokens": 890e9, "data.batch_size": 4_928},
      {
        "tokens": 819e9,
        "optimizer.learning_rate": 5e-5,
        "optimizer.warmup_steps": 0,
      },
      {"tokens": 250e9, **_LONG, "data.batch_size": 616},
      {**_DECAY, "data.batch_size": 624, "train.accumulate": 6},
    )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 4_000
  config.train.checkpoint_every = 1_000
  return config
