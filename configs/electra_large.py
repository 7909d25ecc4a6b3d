"""ELECTRA-large: 24 layers x 1,024, 335M parameters.

Paper: Clark et al. 2020, https://arxiv.org/abs/2003.10555, table 6. The sizes
are those that google-research/electra's configure_pretraining.py gives for
"large"; its 400,000 steps are ELECTRA-400K's, the released model had 1.75M.

  maskedlm pretrain --config=configs/electra_large.py --workdir=runs/electra \\
    --config.corpus.source='text:/data/*.txt'

The generator has a quarter of the width, the heads and the MLP: 24 layers x
256; a quarter of the tokens is hidden. Not measured here: it wants a TPU or
GPUs.
"""

from maskedlm.config import defaults as base
from maskedlm.config import presets


def get_config():
  config = base.default("electra")
  config.name = "electra_large"
  config.objective.mask_rate = 0.25
  config.objective.max_predictions = 130  # int((0.25 + 0.005) * 512).
  config.tokenizer.vocab_size = 30_522
  config.model.num_layers = 24
  config.model.width = 1024
  config.model.num_heads = 16
  config.model.mlp_width = 4096
  # For TPUs and GPUs, as configs/roberta_base.py has it.
  config.model.dtype = "bfloat16"
  config.model.remat = "dots"
  config.data.length = 512
  config.data.batch_size = 2_048
  config.optimizer = presets.electra_google()
  config.optimizer.learning_rate = 2e-4
  config.optimizer.warmup_steps = 10_000
  config.train.num_steps = 400_000
  config.train.eval_every = 10_000
  config.train.checkpoint_every = 1_000
  return config
