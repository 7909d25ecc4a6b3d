"""RoBERTa: masked tokens in rows of full sentences (FULL-SENTENCES), no NSP.

  base   12 layers x 768, 125M parameters (the default)
  large  24 layers x 1024, 355M parameters

Paper: Liu et al. 2019, https://arxiv.org/abs/1907.11692. The numbers of base
are those of fairseq's published file,
examples/roberta/config/pretraining/base.yaml: 125,000 steps of 2,048 rows of
512 tokens at a rate of 5e-4. (The paper's own run: 500,000 steps of 8,192 rows
at 6e-4, after a warm-up of 24,000.) Those of large are the paper's, table 9, as
fairseq has no file for it: 500,000 steps of 8,192 rows at 4e-4, after a warm-up
of 30,000.

  maskedlm pretrain --config=configs/roberta.py:base --workdir=runs/roberta \\
    --config.corpus.source='text:/data/*.txt' --config.train.accumulate=16

accumulate=16 is what fairseq's file has for 8 GPUs with 16 rows each; the
update doesn't depend on it. For large take --config.mesh.fsdp=8
--config.train.accumulate=64. This differs from fairseq in that [CLS] and [SEP]
are never masked, and that a row is full to the last position, whatever sentence
it cuts (--config.objective.whole_sentences=True ends it as fairseq does).
Neither size has been trained here: they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "large": {
    "num_layers": 24,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 4096,
  },
}


def get_config(size="base"):
  check_name("configs/roberta.py:SIZE", size, SIZES)
  config = defaults.default("roberta")
  config.name = f"roberta_{size}"
  config.objective.random_tokens = "uniform"
  config.tokenizer.kind = "bpe"  # Byte-level, cased.
  config.tokenizer.vocab_size = 50_265
  config.tokenizer.lowercase = False
  config.model.update(SIZES[size])
  config.model.norm_epsilon = 1e-5
  # A row is one text, so an embedding of a second one would never train.
  config.model.type_vocab_size = 0
  # Chosen for TPUs, by memory and modelled time
  # (docs/guides/pretrain/scaling.md).
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.optimizer = presets.roberta_fairseq()
  if size == "base":
    config.data.batch_size = 2_048
    config.optimizer.learning_rate = 5e-4
    config.optimizer.warmup_steps = 10_000
    config.train.num_steps = 125_000
  else:
    config.data.batch_size = 8_192
    config.optimizer.learning_rate = 4e-4
    config.optimizer.warmup_steps = 30_000
    config.train.num_steps = 500_000
  config.train.eval_every = 5_000
  config.train.checkpoint_every = 1_000
  return config
