"""ModernBERT-base: 22 layers x 768, 149M parameters, at 1,024 tokens.

Paper: Warner et al. 2024, https://arxiv.org/abs/2412.13663. The numbers are
those of the authors' yamls/modernbert/modernbert-base-pretrain.yaml: 1.719
trillion tokens, then, as in the last phase, 50 billion while the rate falls by
1 - sqrt. A step is 4,608 x 1,024 = 4,718,592 tokens, so these are 364,304 +
10,596 steps, and the 3 billion tokens of warm-up are 636 steps.

  maskedlm pretrain --config=configs/modernbert_base.py --workdir=runs/modern \\
    --config.corpus.source='text:/data/*.txt' --config.train.accumulate=48

The second phase, 250 billion tokens in rows of 8,192, is a separate run:
data.length=8192, data.batch_size=576, model.rope_theta=160000 and a constant
rate of 3e-4 (docs/reference/presets.md). Other differences: no batch size
warm-up; no dropout of 0.1 on attention's output, as dropout is a single option
here; a fixed number of masks in each row, and none on [CLS] and [SEP]; rows are
cut from running text, each document attends only to itself, and only the first
one of a row has a [CLS], where theirs are packed from whole sequences. On TPUs,
splash attention skips keys outside the local window
(docs/guides/pretrain/attention.md). As theirs, the held-out loss is at 15%
masking. It has not been trained here: it needs TPUs or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("roberta")
  config.name = "modernbert_base"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 50_368
  config.tokenizer.lowercase = False
  config.model.num_layers = 22
  config.model.width = 768
  config.model.num_heads = 12
  config.model.mlp_width = 1_152
  config.model.max_positions = 8_192
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.norm_epsilon = 1e-5
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.local_window = 128
  config.model.global_every = 3
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.model.scaled_init = True
  config.data.length = 1_024
  config.data.batch_size = 4_608
  config.optimizer = presets.modernbert()
  config.optimizer.learning_rate = 8e-4
  config.optimizer.warmup_steps = 636
  config.train.num_steps = 374_900
  config.train.eval_every = 4_000
  config.train.checkpoint_every = 1_000
  return config
