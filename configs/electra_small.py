"""ELECTRA-small: 12 layers x 256, embeddings of 128; 14M parameters.

Paper: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 6. The numbers
are the defaults of google-research/electra's configure_pretraining.py.

  maskedlm pretrain --config=configs/electra_small.py --workdir=runs/electra \\
    --config.corpus.source='text:/data/*.txt'

The generator is a quarter as wide: 12 layers x 64. That of the released
ELECTRA-Small was as wide as its discriminator, so to continue that one, or to
do as it did, set --config.objective.generator_size=1.0. The 14M are the
discriminator (13.5 million, with its head); the generator is thrown away.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("electra")
  config.name = "electra_small"
  config.objective.generator_size = 0.25
  config.objective.max_predictions = 19  # int((0.15 + 0.005) * 128).
  config.tokenizer.vocab_size = 30_522
  config.model.num_layers = 12
  config.model.width = 256
  config.model.num_heads = 4
  config.model.mlp_width = 1_024
  config.model.embedding_width = 128
  # For TPUs and GPUs, as configs/roberta_base.py has it.
  config.model.dtype = "bfloat16"
  config.data.length = 128
  config.data.batch_size = 128
  config.optimizer = presets.electra_google()
  config.optimizer.learning_rate = 5e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
