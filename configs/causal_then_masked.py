"""A model that first predicts the next token, then masked ones: for a laptop.

  25, 50 or 75   percent of the steps that are causal, the first ones

With equal steps these splits beat masks alone in Gisserot-Boukhlef et al. 2025
(https://arxiv.org/abs/2507.00994), for encoders of 210M to 1B parameters. Both
objectives have the same parameters, head and rows; the mask of attention
changes, and the optimizer's moments stay. Layers, text and optimizer are those
of configs/modern_small.py, whose masks are 30% of the tokens.

  maskedlm pretrain --config=configs/causal_then_masked.py:25 \\
    --workdir=runs/then --config.corpus.source='text:/data/*.txt'

The held-out losses of both objectives, lm_loss and mlm_loss, are measured in
both phases; the loss that ranks checkpoints is that of the masks.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = ("25", "50", "75")


def get_config(percent="25"):
  check_name("configs/causal_then_masked.py:PERCENT", percent, SIZES)
  config = defaults.default("causal")
  config.name = f"causal_{percent}_then_masked"
  config.tokenizer.vocab_size = 8_192
  config.model.num_layers = 4
  config.model.width = 256
  config.model.num_heads = 4
  config.model.mlp_width = 704  # The gated MLP has three matrices.
  config.model.max_positions = 512
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.data.length = 128
  config.data.batch_size = 16
  config.phases = (
    {"share": int(percent) / 100},
    {
      "objective.name": "roberta",
      "objective.mask_rate": 0.30,
      "objective.heldout_mask_rate": 0.15,
    },
  )
  config.optimizer = presets.muon()
  config.optimizer.warmup_steps = 100
  config.train.num_steps = 8_000
  config.train.log_every = 50
  config.train.eval_every = 1_000
  config.train.eval_rows = 512
  config.train.checkpoint_every = 500
  return config
