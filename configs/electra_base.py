"""ELECTRA-base: 12 layers x 768, 110M parameters.

Paper: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 6. The sizes
are those that google-research/electra's configure_pretraining.py gives for
"base"; its number of steps is that of all sizes.

  maskedlm pretrain --config=configs/electra_base.py --workdir=runs/electra \\
    --config.corpus.source='text:/data/*.txt'

The generator has a third of the width, the heads and the MLP: 12 layers x 256.
Not measured here: it wants a TPU or GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("electra")
  config.name = "electra_base"
  config.objective.generator_size = 1 / 3
  config.objective.max_predictions = 79  # int((0.15 + 0.005) * 512).
  config.tokenizer.vocab_size = 30_522
  # For TPUs and GPUs, as configs/roberta_base.py has it.
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 256
  config.optimizer = presets.electra_google()
  config.optimizer.learning_rate = 2e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 1_000_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 5_000
  return config
