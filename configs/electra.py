"""ELECTRA: which tokens were replaced by a generator?

  small  12 layers x 256, embeddings of 128, 14M parameters
  base   12 layers x 768, 110M parameters (the default)
  large  24 layers x 1024, 335M parameters; 25% of the tokens are masked

Paper: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 6. The numbers
are those of google-research/electra's configure_pretraining.py, whose number of
steps is the same for all sizes; the 400,000 steps of large are ELECTRA-400K's
(the released model had 1.75M).

  maskedlm pretrain --config=configs/electra.py:base --workdir=runs/electra \\
    --config.corpus.source='text:/data/*.txt'

The generator has a quarter of the discriminator's width, heads and MLP (a third
in base) and as many layers: 12 x 64, 12 x 256 and 24 x 256. That of the
released ELECTRA-Small was as wide as its discriminator: to continue training
that model, or to train as it was, set --config.objective.generator_size=1.0.
The 14M parameters of small are the discriminator's (13.5 million with its
head); the generator is thrown away. None of the sizes has been trained here:
they need TPUs or GPUs.
"""

from maskedlm.config import defaults, presets
from maskedlm.core.errors import check_name

SIZES = {
  "small": {
    "num_layers": 12,
    "width": 256,
    "num_heads": 4,
    "mlp_width": 1024,
    "embedding_width": 128,
  },
  "base": {"num_layers": 12, "width": 768, "num_heads": 12, "mlp_width": 3072},
  "large": {
    "num_layers": 24,
    "width": 1024,
    "num_heads": 16,
    "mlp_width": 4096,
  },
}


def get_config(size="base"):
  check_name("configs/electra.py:SIZE", size, SIZES)
  config = defaults.default("electra")
  config.name = f"electra_{size}"
  config.tokenizer.vocab_size = 30_522
  config.model.update(SIZES[size])
  # For TPUs and GPUs, as in configs/roberta.py.
  config.model.dtype = "bfloat16"
  config.optimizer = presets.electra_google()
  config.optimizer.learning_rate = 2e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  if size == "small":
    config.objective.generator_size = 0.25
    config.objective.max_predictions = 19  # int((0.15 + 0.005) * 128).
    config.data.length = 128
    config.data.batch_size = 128
    config.optimizer.learning_rate = 5e-4
    return config
  config.model.remat = "dots"
  config.data.length = 512
  if size == "base":
    config.objective.generator_size = 1 / 3
    config.objective.max_predictions = 79  # int((0.15 + 0.005) * 512).
    config.data.batch_size = 256
  else:
    config.objective.mask_rate = 0.25
    config.objective.max_predictions = 130  # int((0.25 + 0.005) * 512).
    config.data.batch_size = 2_048
    config.train.num_steps = 400_000
    config.train.checkpoint_every = 1_000
  return config
