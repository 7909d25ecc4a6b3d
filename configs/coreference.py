"""Coreference: GAP's pronouns, or the chains of OntoGUM's documents.

  maskedlm finetune coreference --config=configs/coreference.py \\
    --config.init_from=runs/bert
  maskedlm finetune coreference_chains \\
    --config=configs/coreference.py:ontogum --config.init_from=runs/bert

  gap      which of two names a pronoun refers to, or neither (the default;
           Webster et al. 2018, https://arxiv.org/abs/1810.05201). GAP has no
           training set: its development file (2,000 examples) is used for
           training and its validation file (454) for development. The recipe
           is BERT's (Devlin et al. 2019, https://arxiv.org/abs/1810.04805,
           appendix A.3). To score its test file too:
           --config.data.also_score="('gap-test.tsv',)".
  ontogum  mentions and chains (Zhu et al. 2021, OntoGUM). Segments of 128
           tokens, 11 together, as Joshi et al. 2019
           (https://arxiv.org/abs/1908.09091) for BERT-base.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

VARIANTS = ("gap", "ontogum")


def get_config(variant="gap"):
  check_name("configs/coreference.py:VARIANT", variant, VARIANTS)
  if variant == "ontogum":
    return _ontogum()
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


def _ontogum():
  config = base.default("coreference_chains")
  config.name = "coreference_ontogum"
  folder = f"{base.data_dir()}/coref/ontogum"
  config.data.train = f"{folder}/train.conll"
  config.data.dev = f"{folder}/dev.conll"
  config.data.length = 128
  config.data.batch_size = 2
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 20
  return config
