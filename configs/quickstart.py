"""A small encoder trained in minutes on English that your machine already has.

Corpus: the docstrings of the standard library and of the installed packages.
Model: 2 of ModernBERT's layers (arXiv:2412.13663), 128 wide, as in
configs/modern_small.py; MLM + NSP (Devlin et al. 2019, arXiv:1810.04805);
trained by Muon. Several short pairs share a row.

  maskedlm pretrain --config=configs/quickstart.py

Measured on 2 CPU cores: docs/results/performance.md#quickstart.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("mlm_nsp")
  config.name = "quickstart"
  config.corpus.source = "docstrings:"
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 8_192
  config.model.num_layers = 2
  config.model.width = 128
  config.model.num_heads = 2
  config.model.mlp_width = 352  # The gated MLP has three matrices.
  config.model.max_positions = 64
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.model.init_stddev = 0.05  # 0.02 suits wider models; slower here.
  # One short pass over little text: nothing to overfit yet.
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  # It saves 9% of the rows; it is on by default only from 10%.
  config.objective.pack = True
  config.data.length = 64
  config.data.batch_size = 32
  config.optimizer = presets.muon()
  config.optimizer.learning_rate = 2e-3
  config.optimizer.warmup_steps = 60
  config.train.num_steps = 2_400
  config.train.log_every = 100
  config.train.eval_every = 1_200
  config.train.eval_rows = 1_024
  config.train.checkpoint_every = 500
  return config
