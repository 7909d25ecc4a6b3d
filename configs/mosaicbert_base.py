"""MosaicBERT-base: 12 layers x 768 with ALiBi and GeGLU, 137M parameters.

Paper: Portes et al. 2023, https://arxiv.org/abs/2312.17482. The numbers are
those of mosaicml/examples' mosaic-bert-base-uncased.yaml: 286.72 million rows
of 128 tokens, of which 30% are predicted.

  maskedlm pretrain --config=configs/mosaicbert_base.py --workdir=runs/mosaic \\
    --config.corpus.source='text:/data/*.txt'

Differences: a fixed number of masks in each row, where theirs is binomial;
rows are cut from running text and each document attends only to itself, where
theirs are the beginnings of documents. As theirs, the held-out loss is at 15%
masking. It has not been trained here: it needs TPUs or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "mosaicbert_base"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.vocab_size = 30_522
  config.model.attention_dropout = 0.0
  config.model.dtype = "bfloat16"
  config.model.position = "alibi"
  config.model.mlp = "gated"
  config.data.length = 128
  config.data.batch_size = 4_096
  config.optimizer = presets.mosaicbert()
  config.optimizer.learning_rate = 5e-4
  config.optimizer.warmup_steps = 4_200  # 6%.
  config.train.num_steps = 70_000
  config.train.eval_every = 2_000
  config.train.checkpoint_every = 1_000
  return config
