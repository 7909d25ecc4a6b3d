"""RoBERTa-large: 24 layers x 1024, 355M parameters, FULL-SENTENCES, no NSP.

Paper: Liu et al. 2019, https://arxiv.org/abs/1907.11692, table 9: 500,000 steps
of 8,192 rows of 512 tokens at a rate of 4e-4, after a warm-up of 30,000 (there
is no file of fairseq's for it). All else is configs/roberta_base.py.

  maskedlm pretrain --config=configs/roberta_large.py \\
    --workdir=runs/roberta_large --config.corpus.source='text:/data/*.txt' \\
    --config.mesh.fsdp=8 --config.train.accumulate=64

Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "roberta_large"
  config.objective.random_tokens = "uniform"
  config.tokenizer.kind = "bpe"
  config.tokenizer.vocab_size = 50_265
  config.tokenizer.lowercase = False
  config.model.num_layers = 24
  config.model.width = 1024
  config.model.num_heads = 16
  config.model.mlp_width = 4096
  config.model.norm_epsilon = 1e-5
  config.model.type_vocab_size = 0  # Rows of one text: B would never train.
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 8_192
  config.optimizer = presets.roberta_fairseq()
  config.optimizer.learning_rate = 4e-4
  config.optimizer.warmup_steps = 30_000
  config.train.num_steps = 500_000
  config.train.eval_every = 5_000
  config.train.checkpoint_every = 1_000
  return config
