"""A masked LM of DNA for an hour on a laptop: single bases, or k-mers.

  bases   a token is a base, a row has 510 of them (the default)
  kmers   a token is a 6-mer from each base on; 6 in a row are masked together

Tokens and masks of kmers are DNABERT's (Ji et al. 2021,
doi.org/10.1093/bioinformatics/btab083); layers and optimizer are those of
configs/modern_small.py (Warner et al. 2024, https://arxiv.org/abs/2412.13663),
whose rotary positions suit texts without words. Rows continue across a
sequence, cut elsewhere in each epoch; sequences don't attend to each other.

  maskedlm pretrain --config=configs/dna.py:bases --workdir=runs/dna \\
    --config.corpus.source='fasta:/data/*.fa.gz'

Of proteins, --config.tokenizer.kind=characters is right as well: the letters
are found in the text. --config.objective.documents=crops gives each sequence
rows of its own, as ESM-2 does. docs/guides/pretrain/sequences.md says more.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "bases": {"kind": "characters", "vocab_size": 32},
  "kmers": {"kind": "kmers", "k": 6, "vocab_size": 4**6 + 5},
}


def get_config(tokens="bases"):
  check_name("configs/dna.py:TOKENS", tokens, SIZES)
  config = defaults.default("roberta")
  config.name = f"dna_{tokens}"
  config.corpus.source = "fasta:*.fa.gz"
  config.tokenizer.update(SIZES[tokens])
  config.tokenizer.lowercase = False
  config.model.num_layers = 4
  config.model.width = 256
  config.model.num_heads = 4
  config.model.mlp_width = 704  # The gated MLP has three matrices.
  config.model.max_positions = 2_048
  config.model.dropout = 0.0
  config.model.attention_dropout = 0.0
  config.model.type_vocab_size = 0
  config.model.position = "rope"
  config.model.norm_order = "pre"
  config.model.skip_first_norm = True
  config.model.mlp = "gated"
  config.model.biases = False
  config.objective.isolate_documents = True
  config.data.length = 512
  config.data.batch_size = 8
  config.optimizer = presets.muon()
  config.optimizer.warmup_steps = 100
  config.train.num_steps = 3_500
  config.train.log_every = 50
  config.train.eval_every = 500
  config.train.eval_rows = 128
  config.train.checkpoint_every = 500
  return config
