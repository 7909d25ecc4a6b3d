"""A small BERT on the English that is already on your machine, in minutes.

Corpus: the docstrings of the standard library and of the installed packages.
Model: 2 layers x 128, MLM + NSP (Devlin et al. 2019, arXiv:1810.04805).

  maskedlm pretrain --config=configs/quickstart.py
"""

from maskedlm import config as base


def get_config():
  config = base.default("mlm_nsp")
  config.name = "quickstart"
  config.corpus.source = "docstrings:"
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 8_192
  config.model.num_layers = 2
  config.model.width = 128
  config.model.num_heads = 2
  config.model.mlp_width = 512
  config.model.max_positions = 128
  # One short pass over little text: nothing to overfit yet.
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 1e-3
  config.optimizer.b2 = 0.98
  config.optimizer.warmup_steps = 60
  config.train.num_steps = 2_000
  config.train.log_every = 50
  config.train.eval_every = 1_000
  config.train.eval_rows = 512
  config.train.checkpoint_every = 500
  return config
