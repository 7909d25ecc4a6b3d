"""MosaicBERT: ALiBi and GeGLU in BERT's layers.

  base  12 layers x 768, 137M parameters (the default)

Paper: Portes et al. 2023, https://arxiv.org/abs/2312.17482. The numbers are
those of mosaicml/examples' mosaic-bert-base-uncased.yaml: 286.72 million rows
of 128 tokens, of which 30% are predicted, in a single phase.

  maskedlm pretrain --config=configs/mosaicbert.py:base --workdir=runs/mosaic \\
    --config.corpus.source='text:/data/*.txt'

Differences: a fixed number of masks in each row, where theirs is binomial;
rows are cut from running text and each document attends only to itself, where
theirs are the beginnings of documents. As theirs, the held-out loss is at 15%
masking. It has not been trained here: it needs TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072}
}


def get_config(size="base"):
  check_name("configs/mosaicbert.py:SIZE", size, SIZES)
  config = defaults.default("roberta")
  config.name = f"mosaicbert_{size}"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.vocab_size = 30_522
  config.model.update(SIZES[size])
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
