"""SpanBERT-large, cased: 24 layers x 1024, 334M parameters, span MLM + SBO.

Paper: Joshi et al. 2020, https://arxiv.org/abs/1907.10529; published F1: 94.6
on SQuAD 1.1, 88.7 on SQuAD 2.0. All but the shape is configs/spanbert_base.py.

  maskedlm pretrain --config=configs/spanbert_large.py \\
    --workdir=runs/spanbert_large --config.corpus.source='text:/data/*.txt' \\
    --config.mesh.fsdp=8

Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("spanbert")
  config.name = "spanbert_large"
  config.tokenizer.vocab_size = 28_996  # BERT's cased vocabulary.
  config.tokenizer.lowercase = False
  config.model.num_layers = 24
  config.model.width = 1024
  config.model.num_heads = 16
  config.model.mlp_width = 4096
  # For TPUs and GPUs, as configs/roberta_base.py has it.
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 256
  config.optimizer = presets.spanbert()
  config.train.num_steps = 2_400_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
