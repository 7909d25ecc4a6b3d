"""mmBERT: ModernBERT for 1,833 languages, which join from phase to phase.

  small  22 layers x 384, 140M parameters
  base   22 layers x 768, 307M parameters (the default)

Paper: Marone et al. 2025, https://arxiv.org/abs/2509.06888. The numbers are
those of JHU-CLSP/mmBERT, configs/mmBERT-SIZE.yaml, -ext.yaml and -decay.yaml,
with the lengths of the paper:

  tokens  row    masked  rate of base, small  alpha  languages
  2,300B  1,024  30%     8e-4                 0.7    60
  600B    8,192  15%     8e-4, 4e-4           0.5    110
  100B    8,192  5%      to 1.6e-5            0.3    1,833

Rows are drawn by (share of a language)^alpha. The batch grows to 4,608 rows in
60 billion tokens (small: 100). rope_theta is 10,000, and 160,000 for long rows,
in all layers. Base decays by 1 - sqrt, small linearly.

  maskedlm pretrain --config=configs/mmbert.py:base --workdir=runs/mmbert \\
    --config.corpus.parts='sw=text:/data/sw/*.txt,cs=text:/data/cs/*.txt'

That trains on the same languages throughout. For the paper's, prepare a corpus
for each phase with the tokenizer of the last one's languages (tokenizer.path),
and add its "corpus.path" to the phases.

Differences: the tokenizer is a unigram of 256,000 tokens, theirs is Gemma 2's.
Their files give no number of GPUs, so neither the first batch: it grows here as
ModernBERT-base's, from 768 rows in five sizes. The file of base's first phase
has 25% masking and 400B tokens, those of a last part, as it seems; the paper's
30% and 2,300B are taken. Small began with base's weights by strided sampling,
and here from random ones; the released models are merged from several decays.
train.accumulate suits 8 GPUs. There is no dropout of 0.1 on attention's output,
and a row has a fixed number of masks, none of them on [CLS] and [SEP]. Neither
size has been trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name
from maskedlm.training.phases import ramp, total_steps

SIZES = {
  "small": {"width": 384, "num_heads": 6},
  "base": {"width": 768, "num_heads": 12},
}
_ROWS = (1_152, 1_920, 2_688, 3_456, 4_224)


def get_config(size="base"):
  check_name("configs/mmbert.py:SIZE", size, SIZES)
  base = size == "base"
  config = defaults.default("roberta")
  config.name = f"mmbert_{size}"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.kind = "unigram"
  config.tokenizer.vocab_size = 256_000
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  config.model.num_layers = 22
  config.model.mlp_width = 1_152
  config.model.max_positions = 8_192
  config.model.vocab_block = 32_768  # As many logits at once as in BERT.
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
  config.data.alpha = 0.7
  config.data.length = 1_024
  config.data.batch_size = 4_608
  config.optimizer = presets.modernbert()
  config.optimizer.b2 = 0.95
  config.optimizer.eps = 1e-8
  config.optimizer.learning_rate = 8e-4
  # Composer's 8e-5 over the peak; small's 4e-5 over 4e-4 is the same.
  config.optimizer.weight_decay = 0.1
  config.optimizer.schedule = "constant"
  config.optimizer.warmup_steps = 2_543 if base else 3_391  # 3 or 4B tokens.
  config.train.accumulate = 12
  middle = {"optimizer.learning_rate": 4e-4, "optimizer.warmup_steps": 0}
  config.phases = (
    # 60 or 100 billion tokens.
    *ramp("data.batch_size", _ROWS, steps=5 * (4_360 if base else 7_266)),
    {"tokens": 2_240e9 if base else 2_200e9, "data.batch_size": 4_608},
    {
      "tokens": 600e9,
      "data.length": 8_192,
      "data.alpha": 0.5,
      "objective.mask_rate": 0.15,
      "model.rope_theta": 160_000.0,
      "model.local_rope_theta": 160_000.0,
      "train.accumulate": 96 if base else 72,
      **({} if base else middle),
    },
    {
      "tokens": 100e9,
      "data.alpha": 0.3,
      "objective.mask_rate": 0.05,
      "optimizer.schedule": "wsd_sqrt" if base else "wsd",
      "optimizer.decay_share": 1.0,
      "optimizer.end_factor": 0.02 if base else 0.04,
      "optimizer.warmup_steps": 0,
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 4_000
  config.train.checkpoint_every = 1_000
  return config
