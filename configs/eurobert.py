"""EuroBERT: Llama's layers without the causal mask, for 15 languages.

  210m  12 layers x 768, 12 heads (the default)
  610m  26 layers x 1152, 18 heads that share 6 of keys and values
  2.1b  32 layers x 2304, the same heads

Paper: Boizard et al. 2025, https://arxiv.org/abs/2503.05500, section 2.3 and
tables 3 and 4; sizes are those of Nicolas-BZRD/EuroBERT's
optimus/trainer/model/encoder/eurobert.py.

  tokens  row    masked  rate                      rope_theta
  4,800B  2,048  50%     to 1e-4 in 2,000 steps    10,000
  200B    8,192  10%     from 1e-4 to 0 by cosine  250,000

A step reads 9,437,184 tokens (2.1b: 9,830,400) in both phases.

  maskedlm pretrain --config=configs/eurobert.py:210m --workdir=runs/euro \\
    --config.corpus.parts='de=text:/data/de/*.txt,fr=text:/data/fr/*.txt'

For 2.1b add --config.mesh.fsdp=8. The second phase's text has other shares of
languages (table 6): add "data.shares", or "corpus.path", to it.

Differences: a row of the second phase is full; theirs are cropped to a random
length of 12 to 8,192, which the paper finds better. That all masked tokens
become [MASK] is the default of their trainer
(optimus/trainer/configuration/train.py), not said in the paper. The vocabulary
is trained on the text, with as many tokens as Llama 3's. Weights are drawn with
a deviation of 0.02, transformers' default for the model; table 4 has a variance
of 0.2. train.accumulate suits 8 GPUs. None of the sizes has been trained here:
they need TPUs or GPUs.
"""

from maskedlm.config import defaults
from maskedlm.core.errors import check_name
from maskedlm.training.phases import total_steps

SIZES = {
  "210m": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "610m": {
    "num_layers": 26,
    "width": 1152,
    "num_heads": 18,
    "num_kv_heads": 6,
    "mlp_width": 4096,
  },
  "2.1b": {
    "num_layers": 32,
    "width": 2304,
    "num_heads": 18,
    "num_kv_heads": 6,
    "mlp_width": 6144,
  },
}


def get_config(size="210m"):
  check_name("configs/eurobert.py:SIZE", size, SIZES)
  large = size == "2.1b"
  config = defaults.default("roberta")
  config.name = f"eurobert_{size}"
  config.objective.mask_rate = 0.50
  config.objective.heldout_mask_rate = 0.15
  config.objective.mask_share = 1.0
  config.objective.random_share = 0.0
  config.objective.isolate_documents = True
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 128_256
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  config.model.activation = "silu"
  config.model.max_positions = 8_192
  config.model.vocab_block = 32_768  # As many logits at once as in BERT.
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.norm_epsilon = 1e-5
  config.model.dtype = "bfloat16"
  config.model.type_vocab_size = 0
  config.model.embedding_norm = False
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.norm_kind = "rms"
  config.model.mlp = "gated"
  config.model.biases = False
  config.model.mlm_head = "linear"
  config.model.tied = False
  config.data.length = 2_048
  config.data.batch_size = 4_800 if large else 4_608
  config.optimizer.learning_rate = 1e-4
  config.optimizer.schedule = "constant"
  config.optimizer.warmup_steps = 2_000
  config.optimizer.b2 = 0.95
  config.optimizer.eps = 1e-5
  config.optimizer.weight_decay = 0.1
  config.optimizer.no_decay = ()  # All parameters are in one group.
  config.train.accumulate = 50 if large else 48
  config.phases = (
    {"tokens": 4_800e9},
    {
      "tokens": 200e9,
      "data.length": 8_192,
      "data.batch_size": 1_200 if large else 1_152,
      "objective.mask_rate": 0.10,
      "model.rope_theta": 250_000.0,
      "optimizer.schedule": "cosine",
      "optimizer.warmup_steps": 0,
    },
  )
  config.train.num_steps = total_steps(config)
  config.train.eval_every = 5_000
  config.train.checkpoint_every = 1_000
  return config
