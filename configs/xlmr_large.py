"""XLM-R-large: 24 layers x 1024, 250,002 words, 560M parameters, 100 languages.

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116, which calls it
XLM-R: 1,500,000 steps of 8,192 rows of 512 tokens. The paper gives no rate,
warm-up or optimizer: those here are RoBERTa-large's, which had batches of that
size (arXiv:1907.11692, table 9). All else is configs/xlmr_base.py.

  maskedlm pretrain --config=configs/xlmr_large.py --workdir=runs/xlmr_large \\
    --config.corpus.parts=/data/cc100 --config.mesh.fsdp=8 \\
    --config.train.accumulate=64

Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "xlmr_large"
  config.objective.random_tokens = "uniform"
  config.tokenizer.kind = "unigram"
  config.tokenizer.vocab_size = 250_002
  config.tokenizer.lowercase = False
  config.model.num_layers = 24
  config.model.width = 1024
  config.model.num_heads = 16
  config.model.mlp_width = 4096
  config.model.norm_epsilon = 1e-5
  config.model.type_vocab_size = 0  # Rows of one text: B would never train.
  config.model.vocab_block = 32_768
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 8_192
  config.optimizer = presets.roberta_fairseq()
  config.optimizer.learning_rate = 4e-4
  config.optimizer.warmup_steps = 30_000
  config.train.num_steps = 1_500_000
  config.train.eval_every = 5_000
  config.train.eval_rows = 8_192
  config.train.checkpoint_every = 1_000
  return config
