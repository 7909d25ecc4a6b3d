"""BERT-tiny, uncased: 2 layers x 128, 4.4M parameters, MLM + NSP.

Paper: Turc et al. 2019, https://arxiv.org/abs/1908.08962, the smallest of the
compact BERTs. For trying things out on text of your own:

  maskedlm pretrain --config=configs/bert_tiny.py --workdir=runs/tiny \\
    --config.corpus.source='text:/data/*.txt'
"""

from maskedlm.config import defaults as base


def get_config():
  config = base.default("mlm_nsp")
  config.name = "bert_tiny"
  config.tokenizer.vocab_size = 30_522
  config.model.num_layers = 2
  config.model.width = 128
  config.model.num_heads = 2
  config.model.mlp_width = 512
  config.data.length = 128
  config.data.batch_size = 64
  config.optimizer.learning_rate = 1e-3
  config.optimizer.b2 = 0.98
  config.optimizer.warmup_steps = 500
  config.train.num_steps = 20_000
  config.train.log_every = 50
  config.train.eval_every = 1_000
  config.train.checkpoint_every = 1_000
  return config
