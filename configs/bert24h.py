"""An encoder of 120M parameters in a day on one GPU, after "Cramming".

  maskedlm pretrain --config=configs/bert24h.py:54 --workdir=runs/day \\
    --config.corpus.source='text:/data/*.txt'

The argument is the number of tokens that the GPU reads in 24 hours, in
billions. Time the first steps and give your own: 54 is what an H100 would read
at 40% of its 989 TFLOP/s, at 0.63 GFLOP a token. That is an assumption. **It
has not been trained here**, on any GPU, and neither have its parts together.

From Geiping & Goldstein 2022, https://arxiv.org/abs/2212.14034, and the
repository's arch/crammed-bert.yaml and train/bert-o4.yaml:

- 16 layers x 768 with GeGLU of 1,536, norms before the sublayers, one after the
  embeddings and one at the end, no biases, and 32,768 lower-cased WordPieces;
- rows of 128 tokens and no dropout (fine-tune with a dropout of 0.1);
- AdamW with betas 0.9 and 0.98, eps 1e-12, decay 0.01 (norms without), clipped
  at 0.5;
- the rate: 2.5e-4 at first, 1e-3 after 75% of the tokens, then linearly to 0;
- the batch: to 8,192 rows in the first 60% of the tokens, here in four sizes.

From later recipes:

- 30% of the tokens are masked (MosaicBERT, ModernBERT; bert-o4 has 25%), and
  15% in the last phase (Ettin lowers it as much at the end);
- the last tenth is read in rows of 512, as BERT's, so that longer texts can be
  encoded; "Cramming" stays at 128;
- rotary positions, which longer rows need no table for (ModernBERT); "Cramming"
  found a small benefit that their cost evened out, and took sinusoids;
- no first norm, and each document attends only to itself (ModernBERT).

Not included: the head without a dense layer; a schedule by the clock; C4
filtered and sorted by the frequency of its tokens, which is in the text that
you give. A microbatch has 256 rows, for a GPU of 80 GB.
"""

import math

from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.training.phases import total_steps

# Rows of a step in each of the first five parts, of 15% of the tokens each. The
# batch would grow linearly to 8,192 in four of them; these are its means.
_ROWS = (1_024, 3_072, 5_120, 7_168, 8_192)
_MICROBATCH = 256


def get_config(billions="54"):
  if not (billions.isascii() and billions.isdigit() and int(billions)):
    raise ConfigError(
      f"configs/bert24h.py:{billions}: expected the tokens of a day in "
      "billions, a whole number such as 54."
    )
  tokens = int(billions) * 1e9
  config = defaults.default("roberta")
  config.name = f"bert24h_{billions}"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.isolate_documents = True
  config.tokenizer.vocab_size = 32_768
  config.model.num_layers = 16
  config.model.width = 768
  config.model.num_heads = 12
  config.model.mlp_width = 1_536
  config.model.max_positions = 512
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.data.length = 128
  config.data.batch_size = 8_192
  config.optimizer.learning_rate = 1e-3
  config.optimizer.b2 = 0.98
  config.optimizer.eps = 1e-12
  config.optimizer.clip_norm = 0.5
  config.optimizer.warmup_steps = 0
  config.phases = (
    *(_rising(i, rows, 0.15 * tokens) for i, rows in enumerate(_ROWS)),
    {
      "tokens": 0.15 * tokens,
      "optimizer.start_factor": 0.0,
      "optimizer.warmup_steps": 0,
    },
    {
      "tokens": 0.10 * tokens,
      "data.length": 512,
      "data.batch_size": 2_048,
      "objective.mask_rate": 0.15,
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 5_000
  config.train.checkpoint_every = 1_000
  return config


def _rising(i: int, rows: int, tokens: float) -> dict:
  """Returns part i, over which the rate rises by 15% of its peak of 1e-3."""
  first, last = 0.25 + 0.15 * i, 0.40 + 0.15 * i
  return {
    "tokens": tokens,
    "data.batch_size": rows,
    "train.accumulate": rows // _MICROBATCH,
    "optimizer.learning_rate": 1e-3 * last,
    "optimizer.start_factor": first / last,
    "optimizer.warmup_steps": math.ceil(tokens / (rows * 128)),
  }
