"""BERT-large, uncased: 24 layers x 1024, 340M parameters, MLM + NSP.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, table 1. All but
the shape is configs/bert_base.py.

  maskedlm pretrain --config=configs/bert_large.py --workdir=runs/bert_large \\
    --config.corpus.source='text:/data/*.txt' --config.mesh.fsdp=8

Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("mlm_nsp")
  config.name = "bert_large"
  config.objective.random_tokens = "uniform"  # As Google's code has it.
  config.tokenizer.vocab_size = 30_522
  config.model.num_layers = 24
  config.model.width = 1024
  config.model.num_heads = 16
  config.model.mlp_width = 4096
  config.model.activation = "gelu_tanh"
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 128
  config.data.batch_size = 256
  config.data.long_share = 0.1
  config.data.long_length = 512
  config.data.long_batch_size = 256
  config.optimizer = presets.bert_google()
  config.optimizer.learning_rate = 1e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
