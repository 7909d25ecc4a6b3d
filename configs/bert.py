"""BERT, uncased: masked tokens and next-sentence prediction.

  tiny   2 layers x 128, 4.4M parameters, for trying things out
  base   12 layers x 768, 110M parameters (the default)
  large  24 layers x 1024, 340M parameters

Paper: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, table 1; tiny is
the smallest of the compact BERTs of Turc et al. 2019,
https://arxiv.org/abs/1908.08962. The optimizer of base and large is that of
google-research/bert (docs/reference/presets.md); 90% of their steps are on
rows of 128 tokens, the rest on rows of 512.

  maskedlm pretrain --config=configs/bert.py:base --workdir=runs/bert \\
    --config.corpus.source='text:/data/*.txt'

For large add --config.mesh.fsdp=8. The paper's corpus is Wikipedia and
BooksCorpus, 3.3 billion words; the 1M steps of 256 rows read it about ten times
(the paper's 40 epochs are of rows that all have 512 tokens).
Base and large have not been trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "tiny": {"num_layers": 2, "width": 128, "num_heads": 2, "mlp_width": 512},
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "large": {
    "num_layers": 24,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 4096,
  },
}


def get_config(size="base"):
  check_name("configs/bert.py:SIZE", size, SIZES)
  config = defaults.default("mlm_nsp")
  config.name = f"bert_{size}"
  config.tokenizer.vocab_size = 30_522
  config.model.update(SIZES[size])
  config.data.length = 128
  if size == "tiny":
    config.data.batch_size = 64
    config.optimizer.learning_rate = 1e-3
    config.optimizer.b2 = 0.98
    config.optimizer.warmup_steps = 500
    config.train.num_steps = 20_000
    config.train.log_every = 50
    config.train.eval_every = 1_000
    config.train.checkpoint_every = 1_000
    return config
  config.objective.random_tokens = "uniform"  # As in google-research/bert.
  config.model.activation = "gelu_tanh"  # The same.
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.batch_size = 256
  config.phases = ({}, {"share": 0.1, "data.length": 512})
  config.optimizer = presets.bert_google()
  config.optimizer.learning_rate = 1e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
