"""RoBERTa-base: 12 layers x 768, 125M parameters, FULL-SENTENCES, no NSP.

Paper: Liu et al. 2019, https://arxiv.org/abs/1907.11692. The numbers are those
of fairseq's published file, examples/roberta/config/pretraining/base.yaml:
125,000 steps of 2,048 rows of 512 tokens at a rate of 5e-4. (The paper's own
run: 500,000 steps of 8,192 rows at 6e-4, after a warm-up of 24,000.)

  maskedlm pretrain --config=configs/roberta_base.py --workdir=runs/roberta \\
    --config.corpus.source='text:/data/*.txt' --config.train.accumulate=16

accumulate=16 is what the file has for 8 GPUs with 16 rows each; the update
doesn't depend on it. It differs from fairseq in that [CLS] and [SEP] are never
masked, and that a row is full to the last position (docs/design/contract.md).
Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "roberta_base"
  config.objective.random_tokens = "uniform"
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 50_265
  config.tokenizer.lowercase = False
  config.model.norm_epsilon = 1e-5
  config.model.type_vocab_size = 0  # Rows of one text: B would never train.
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 2_048
  config.optimizer = presets.roberta_fairseq()
  config.optimizer.learning_rate = 5e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 125_000
  config.train.eval_every = 5_000
  config.train.checkpoint_every = 1_000
  return config
