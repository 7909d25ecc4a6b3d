"""DeBERTa-v3: replaced tokens, disentangled attention, embeddings apart.

  xsmall  12 layers x 384, 22M parameters beside a table of 49M
  small   6 layers x 768, 44M and 98M
  base    12 layers x 768, 86M and 98M (the default)
  large   24 layers x 1024, 304M and 131M

He et al. 2021, https://arxiv.org/abs/2111.09543. The digits are those of
microsoft/DeBERTa's experiments/language_model/rtd.sh with rtd_*.json, for a
tokenizer of 128,000 sentencepieces and 100 unused ids. rtd.sh trains small only
on from the published model; here it has base's numbers.

  maskedlm pretrain --config=configs/deberta_v3.py:base --workdir=runs/v3 \\
    --config.corpus.source='text:/data/*.txt'

The published models had 8,192 rows and 500,000 steps (table 8 of the paper). To
train one of them on, as rtd.sh's "continue": --config.init_from=RUN with
learning_rate=5e-5, 256 rows and 100,000 steps. fp16 there, bfloat16 here. One
token in each six is masked there, any 15% here. None of the sizes has been
trained here: they need GPUs or TPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "xsmall": {"num_layers": 12, "width": 384, "num_heads": 6},
  "small": {"num_layers": 6, "width": 768, "num_heads": 12},
  "base": {"num_layers": 12, "width": 768, "num_heads": 12},
  "large": {"num_layers": 24, "width": 1024, "num_heads": 16},
}


def get_config(size="base"):
  check_name("configs/deberta_v3.py:SIZE", size, SIZES)
  config = defaults.default("deberta")
  config.name = f"deberta_v3_{size}"
  config.tokenizer.kind = "unigram"
  config.tokenizer.lowercase = False
  config.tokenizer.vocab_size = 128_100
  config.model.update(SIZES[size])
  config.model.mlp_width = 4 * config.model.width
  config.model.position = "disentangled"
  config.model.type_vocab_size = 0
  config.model.norm_epsilon = 1e-7
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 256
  config.optimizer = presets.bert_google()
  config.optimizer.learning_rate = 1e-4
  config.optimizer.warmup_steps = 10_000
  if size == "xsmall":
    config.data.batch_size = 64
    config.optimizer.learning_rate = 3e-4
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
