"""Reranking: how well passages answer a query, each read together with it.

The lists are those that `maskedlm mine` writes: a query, its passage and
negatives (docs/guides/finetune/reranking.md). [CLS] query [SEP] passage [SEP]
gets a score, by a dense layer on the vector of [CLS] (Nogueira & Cho 2019,
https://arxiv.org/abs/1901.04085):

  maskedlm finetune reranking --config=configs/reranking.py \\
    --config.init_from=runs/bert --config.data.train=mined.jsonl
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("reranking")
  config.data.length = 256
  config.data.batch_size = 16
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 1
  return config
