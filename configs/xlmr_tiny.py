"""A small XLM-R: 4 layers x 256, 16k vocabulary, 19 languages, no NSP.

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116: RoBERTa's
objective on text of many languages, in one vocabulary, both sampled with the
exponent 0.3. The layers are ModernBERT's, as in modern_small.py: in so few
steps BERT's learn little more than how frequent words are.

  maskedlm pretrain --config=configs/xlmr_tiny.py --workdir=runs/xlmr \\
    --config.corpus.parts=/data/multilingual,en:/data/english.txt

A folder's files are called de.txt, fr.txt, ...:
docs/guides/pretrain/multilingual.md.
"""

from maskedlm.config import defaults as base


def get_config():
  config = base.default("roberta")
  config.name = "xlmr_tiny"
  config.objective.random_tokens = "uniform"  # Else English words, mostly.
  config.corpus.heldout_share = 0.05
  config.tokenizer.kind = "unigram"
  config.tokenizer.vocab_size = 16_384
  config.tokenizer.lowercase = False
  config.model.num_layers = 4
  config.model.width = 256
  config.model.num_heads = 4
  config.model.mlp_width = 704  # Three matrices of it, not two of 1,024.
  config.model.max_positions = 512
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.type_vocab_size = 0
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
  return config
