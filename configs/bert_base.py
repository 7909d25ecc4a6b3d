"""BERT-base, uncased: 12 layers x 768, 110M parameters, MLM + NSP.

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805. Optimizer as in
google-research/bert (docs/reference/presets.md); 90% of the steps on rows of
128 tokens, the rest on rows of 512.

  maskedlm pretrain --config=configs/bert_base.py --workdir=runs/bert \\
    --config.corpus.source='text:/data/*.txt'

The paper's corpus is Wikipedia and BooksCorpus, 3.3 billion words; 1M steps of
256 rows are about 40 epochs of it. Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("mlm_nsp")
  config.name = "bert_base"
  config.objective.random_tokens = "uniform"  # As Google's code has it.
  config.tokenizer.vocab_size = 30_522
  config.model.activation = "gelu_tanh"  # The same.
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
