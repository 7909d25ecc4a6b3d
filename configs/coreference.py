"""Coreference: the mentions and chains of OntoGUM's documents.

  maskedlm finetune coreference_chains --config=configs/coreference.py \\
    --config.init_from=runs/bert

Zhu et al. 2021, https://aclanthology.org/2021.acl-short.59 (OntoGUM). Segments
of 128 tokens, 11 together, as Joshi et al. 2019
(https://arxiv.org/abs/1908.09091) for BERT-base.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base


def get_config(variant="ontogum"):
  check_name("configs/coreference.py:VARIANT", variant, ("ontogum",))
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
