"""Ettin: ModernBERT's recipe on open text, in six sizes.

  17m   7 layers x 256        68m   19 layers x 512    400m  28 layers x 1024
  32m   10 layers x 384       150m  22 layers x 768    1b    28 layers x 1792
  (150m is the default)

Paper: Weller et al. 2025, https://arxiv.org/abs/2507.11412. The numbers are
those of JHU-CLSP/ettin-encoder-vs-decoder, pretraining/configs/standard/SIZE/
encoder_SIZE.yaml, de_decay/ and prolong_decay/ (very_tiny is 17m, huge 1b):

  tokens  row    masked  rate, of the peak  rope_theta, global and local
  1,700B  1,024  30%     1                  10,000
  250B    7,999  30%     to 1/2             160,000 (17m: local 10,000)
  50B     7,999  15%     1/2 to 1/50        160,000

All batches have 4,608 rows, and both decays are 1 - sqrt. The peak is 3e-3 to
68m, 8e-4 for 150m and 5e-4 above. 1b reads a third of the tokens.

  maskedlm pretrain --config=configs/ettin.py:150m --workdir=runs/ettin \\
    --config.corpus.source='text:/data/*.txt'

A phase has text of its own in the original (web, then filtered, then books and
papers): prepare each with the same tokenizer and add "corpus.path" to the
phases. train.accumulate suits the authors' 4 GPUs.

Differences: a row is full here, and one padded document there; tokens are
counted without padding there, so a step of theirs has fewer and they take more
steps. Their files name a warm-up of the batch, but their loader
(orionw/bert24, src/text_data.py) reads it only for packed rows, which these
are not; so there is none. 1b's file of the first phase says 1,700B tokens; a
third is what its other two phases have of the other sizes'. There is no dropout
of 0.1 on attention's output, and a row has a fixed number of masks, none of
them on [CLS] and [SEP]. None of the sizes has been trained here: they need TPUs
or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name
from maskedlm.training.phases import total_steps

# Layers, width, heads, MLP; peak rate, Composer's weight decay, steps of the
# warm-up; microbatches of the three phases.
SIZES = {
  "17m": ((7, 256, 4, 384), (3e-3, 3e-4, 848), (8, 48, 96)),
  "32m": ((10, 384, 6, 576), (3e-3, 3e-4, 848), (9, 48, 96)),
  "68m": ((19, 512, 8, 768), (3e-3, 3e-4, 636), (12, 64, 144)),
  "150m": ((22, 768, 12, 1_152), (8e-4, 1e-5, 636), (16, 72, 96)),
  "400m": ((28, 1_024, 16, 2_624), (5e-4, 1e-5, 424), (24, 192, 576)),
  "1b": ((28, 1_792, 28, 3_840), (5e-4, 5e-5, 424), (48, 576, 576)),
}


def get_config(size="150m"):
  check_name("configs/ettin.py:SIZE", size, SIZES)
  (layers, width, heads, mlp), (rate, decay, warmup), rounds = SIZES[size]
  config = defaults.default("roberta")
  config.name = f"ettin_{size}"
  config.objective.mask_rate = 0.30
  config.objective.heldout_mask_rate = 0.15
  config.objective.random_tokens = "uniform"
  config.objective.isolate_documents = True
  config.tokenizer.kind = "bpe"  # Byte-level, cased: ModernBERT's.
  config.tokenizer.vocab_size = 50_368
  config.tokenizer.lowercase = False
  config.model.num_layers = layers
  config.model.width = width
  config.model.num_heads = heads
  config.model.mlp_width = mlp
  config.model.max_positions = 7_999
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
  config.optimizer.learning_rate = rate
  # Composer's is relative to the peak of a phase.
  config.optimizer.weight_decay = decay / rate
  config.optimizer.schedule = "constant"
  config.optimizer.warmup_steps = warmup  # 2, 3 or 4 billion tokens.
  config.train.accumulate = rounds[0]
  share = 3 if size == "1b" else 1
  local = 10_000.0 if size == "17m" else 160_000.0
  config.phases = (
    {"tokens": 1_700e9 / share},
    {
      "tokens": 250e9 / share,
      "data.length": 7_999,
      "model.rope_theta": 160_000.0,
      "model.local_rope_theta": local,
      "optimizer.schedule": "wsd_sqrt",
      "optimizer.decay_share": 1.0,
      "optimizer.end_factor": 0.5,
      "optimizer.warmup_steps": 0,
      "train.accumulate": rounds[1],
    },
    {
      "tokens": 50e9 / share,
      "objective.mask_rate": 0.15,
      "model.local_rope_theta": 160_000.0,
      "optimizer.learning_rate": rate / 2,
      "optimizer.weight_decay": decay / (rate / 2),
      "optimizer.end_factor": 0.04,
      "train.accumulate": rounds[2],
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 4_000
  config.train.checkpoint_every = 1_000
  return config
