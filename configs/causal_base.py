"""A left-to-right model of BERT-base's size: 12 layers x 768, 110M parameters.

The baseline that BERT was compared with: the GPT row of table 1 and "LTR & No
NSP" of table 5 in Devlin et al. 2019, https://arxiv.org/abs/1810.04805. All
but the objective is as in configs/roberta.py:base: the same rows of the same
text in the same order, so that only the attention mask differs.
--config.objective.direction=right_to_left reads the rows from their end.

  maskedlm pretrain --config=configs/causal_base.py --workdir=runs/causal \\
    --config.corpus.source='text:/data/*.txt' --config.train.accumulate=16

It has not been trained here: it needs TPUs or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("causal")
  config.name = "causal_base"
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 50_265
  config.tokenizer.lowercase = False
  config.model.norm_epsilon = 1e-5
  # A row is one text, so an embedding of a second one would never train.
  config.model.type_vocab_size = 0
  # For TPUs and GPUs, as in configs/roberta.py.
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
