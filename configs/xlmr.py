"""XLM-R: masked tokens in many languages, with one vocabulary for all.

  tiny   4 layers x 256, vocabulary of 16,384, for 19 languages
  base   12 layers x 768, vocabulary of 250,002, 278M parameters (the default)
  large  24 layers x 1024, vocabulary of 250,002, 560M parameters

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116: RoBERTa's
objective on text of 100 languages (CC-100), vocabulary and text sampled with
the exponent 0.3; 1,500,000 steps of 8,192 rows of 512 tokens. The paper gives
no rate, warm-up or optimizer: those of base and large are RoBERTa's for batches
of that size (arXiv:1907.11692, table 9). The layers of tiny are ModernBERT's,
as in configs/modern_small.py: in so few steps BERT's learn little more than how
frequent words are.

  maskedlm pretrain --config=configs/xlmr.py:tiny --workdir=runs/xlmr \\
    --config.corpus.parts=/data/multilingual,en:/data/english.txt

A folder's files are called de.txt, fr.txt, ...
(docs/guides/pretrain/multilingual.md). For base add --config.mesh.fsdp=8
--config.train.accumulate=32, for large the same with accumulate=64. The
published vocabulary is used by --config.tokenizer.path=FOLDER, the folder of
its sentencepiece.bpe.model. Base and large have not been trained here: they
need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  # The gated MLP has three matrices, hence 704 and not 1,024.
  "tiny": {"num_layers": 4, "width": 256, "num_heads": 4, "mlp_width": 704},
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "large": {
    "num_layers": 24,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 4096,
  },
}


def get_config(size="base"):
  check_name("configs/xlmr.py:SIZE", size, SIZES)
  config = defaults.default("roberta")
  config.name = f"xlmr_{size}"
  # A unigram draw would give mostly English words.
  config.objective.random_tokens = "uniform"
  config.tokenizer.kind = "unigram"
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  # A row is one text, so an embedding of a second one would never train.
  config.model.type_vocab_size = 0
  if size == "tiny":
    _set_tiny(config)
    return config
  config.tokenizer.vocab_size = 250_002
  config.model.norm_epsilon = 1e-5
  config.model.vocab_block = 32_768  # As many logits at once as in BERT.
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 8_192
  config.optimizer = presets.roberta_fairseq()
  config.optimizer.learning_rate = 6e-4 if size == "base" else 4e-4
  config.optimizer.warmup_steps = 24_000 if size == "base" else 30_000
  config.train.num_steps = 1_500_000
  config.train.eval_every = 5_000
  config.train.eval_rows = 8_192
  config.train.checkpoint_every = 1_000
  return config


def _set_tiny(config):
  config.corpus.heldout_share = 0.05
  config.tokenizer.vocab_size = 16_384
  config.model.max_positions = 512
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 1e-3
  config.optimizer.b2 = 0.98
  config.optimizer.warmup_steps = 200
  config.train.num_steps = 4_000
  config.train.log_every = 50
  config.train.eval_every = 1_000
  config.train.eval_rows = 1_024
  config.train.checkpoint_every = 500
