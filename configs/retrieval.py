"""Retrieval: finds the passages that answer a query, with one vector a text.

One encoder for queries and passages, mean pooling, cosine similarities with a
temperature of 0.05 (Reimers & Gurevych 2019, https://arxiv.org/abs/1908.10084;
the temperature is that of Gao et al. 2021, https://arxiv.org/abs/2104.08821);
the other passages of the batch of 128 are the negatives (Karpukhin et al. 2020,
https://arxiv.org/abs/2004.04906). By default it trains on SQuAD 1.1 and holds
out a tenth of the paragraphs:

  maskedlm finetune retrieval --config=configs/retrieval.py \\
    --config.init_from=runs/bert

For your own pairs: --config.data.train=pairs.tsv, with the columns query,
passage and optionally negative (docs/guides/finetune/retrieval.md).
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("retrieval")
  config.data.train = f"{base.data_dir()}/squad/train-v1.1.json"
  config.data.length = 256
  config.data.batch_size = 128
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 3
  return config
