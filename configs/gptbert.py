"""GPT-BERT on BabyLM's texts: masked and causal rows, one model for both.

  10m    12 x 384, 8,192 tokens, 7,812 steps: BabyLM's strict-small track
  100m   12 x 768, 16,384 tokens, 15,625 steps: its strict track (the default)

Charpentier and Samuel 2024, https://arxiv.org/abs/2410.24159; the digits are
those of ltgoslo/gpt-bert, pretraining/train_10m.py and train_100m.py with
configs/small.json and base.json. 15/16 of the rows are masked. Rows have 128
tokens, 256 from 70% of the steps on and 512 from 90% on, and batches of so many
more or fewer of them that 4.2 million tokens are the most. Masks fall from 30%
to 15%, and batches grow from a quarter: both in a line there, in ten phases
here, as at each one's middle.

  maskedlm pretrain --config=configs/gptbert.py:10m --workdir=runs/gptbert \\
    --config.corpus.source='text:/data/train_10M/*.train'
  maskedlm score --checkpoint runs/gptbert --minimal_pairs blimp/*.jsonl
  maskedlm score --checkpoint runs/gptbert --causal --minimal_pairs ...

What this frame has no place for: gated values of attention, the learnt sum of
all earlier layers, relative positions in 32 buckets (here rotary ones), norms
without parameters, the z-loss (1e-4), spans of 1 to 3 tokens with equal
probability (here of words, 1/n), masks of what was masked least often, LAMB's
rate counted from a cosine that goes on below the last 1.6% of the steps.

It has not been trained here: it needs GPUs, and train.accumulate to suit them.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "10m": {
    "width": 384,
    "num_heads": 6,
    "mlp_width": 1_280,
    "vocab_size": 8_192,
    "learning_rate": 1.41e-2,
    "num_steps": 7_812,
  },
  "100m": {
    "width": 768,
    "num_heads": 12,
    "mlp_width": 2_560,
    "vocab_size": 16_384,
    "learning_rate": 1e-2,
    "num_steps": 15_625,
  },
}
TENTHS = 10


def get_config(size="100m"):
  check_name("configs/gptbert.py:SIZE", size, SIZES)
  sizes = SIZES[size]
  config = defaults.default("gptbert")
  config.name = f"gptbert_{size}"
  config.tokenizer.kind = "bpe"
  config.tokenizer.lowercase = False
  config.tokenizer.vocab_size = sizes["vocab_size"]
  config.model.num_layers = 12
  for name in ("width", "num_heads", "mlp_width"):
    config.model[name] = sizes[name]
  config.model.max_positions = 512
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.norm_epsilon = 1e-5
  config.model.mlp = "gated"
  config.model.init_stddev = (2 / (5 * sizes["width"])) ** 0.5
  config.model.scaled_init = True
  config.model.dtype = "bfloat16"
  config.objective.masked_share = 15 / 16
  config.objective.isolate_documents = True
  config.objective.heldout_mask_rate = 0.15
  config.objective.choose = "ngrams"
  config.objective.max_span_words = 3
  num_steps = sizes["num_steps"]
  cooldown = int(0.016 * num_steps)
  config.phases = (
    *(_tenth(i) for i in range(TENTHS)),
    {
      "steps": cooldown,
      "optimizer.schedule": "linear",
      "optimizer.learning_rate": 0.1 * sizes["learning_rate"],
      "optimizer.warmup_steps": 0,
      "optimizer.end_factor": 0.0,
    },
  )
  config.optimizer = presets.lamb()
  config.optimizer.learning_rate = sizes["learning_rate"]
  config.optimizer.schedule = "cosine"
  config.optimizer.end_factor = 0.1
  config.optimizer.warmup_steps = int(0.016 * num_steps)
  config.optimizer.b2 = 0.98
  config.optimizer.eps = 1e-8
  config.optimizer.weight_decay = 0.1
  config.optimizer.clip_norm = 2.0
  config.train.num_steps = num_steps
  config.train.ema_decay = 0.999
  config.train.accumulate = 64
  config.train.eval_every = 1_000
  config.train.checkpoint_every = 1_000
  return config


def _tenth(i):
  """Returns the phase of a tenth of the steps; the last one gets what is left.

  Its rows, of 128, 256 or 512 tokens, are 32,768, half or a quarter of that at
  the end of training and a quarter of that at its beginning.
  """
  longer = 1 if i < 7 else 2 if i < 9 else 4
  done = (i + 0.5) / TENTHS
  rows = 32_768 // longer * (0.25 + 0.75 * done)
  length = {"share": 1 / TENTHS} if i < TENTHS - 1 else {}
  return {
    **length,
    "data.length": 128 * longer,
    "data.batch_size": round(rows / 512) * 512,
    "objective.mask_rate": round(0.30 - 0.15 * done, 4),
  }
