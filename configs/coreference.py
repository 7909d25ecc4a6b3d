"""Coreference on GAP: which of two names a pronoun refers to, or neither.

Webster et al. 2018, https://arxiv.org/abs/1810.05201. GAP has no training set:
its development file (2,000 examples) is used for training and its validation
file (454) for development. The recipe is BERT's (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, appendix A.3).

  maskedlm finetune coreference --config=configs/coreference.py \\
    --config.init_from=runs/bert

To score its test file too: --config.data.also_score="('gap-test.tsv',)".
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("coreference")
  config.name = "coreference"
  folder = f"{base.data_dir()}/coref/gap"
  config.data.train = f"{folder}/gap-development.tsv"
  config.data.dev = f"{folder}/gap-validation.tsv"
  config.data.length = 256
  config.data.batch_size = 16
  config.optimizer.learning_rate = 3e-5
  config.train.epochs = 4
  return config
