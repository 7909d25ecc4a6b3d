"""Retrieval: which passage answers a query, by one vector of each text.

One encoder for both, the mean of its vectors, cosines over 0.05 (Reimers &
Gurevych 2019, https://arxiv.org/abs/1908.10084; the temperature is that of Gao
et al. 2021, https://arxiv.org/abs/2104.08821), and the other passages of the
batch as wrong answers, batches of 128 (Karpukhin et al. 2020,
https://arxiv.org/abs/2004.04906). As it stands it learns from SQuAD 1.1, of
which a tenth of the paragraphs is held out:

  maskedlm finetune retrieval --config=configs/retrieval.py \\
    --config.init_from=runs/bert

Your own pairs: --config.data.train=pairs.tsv, with the columns query, passage
and, if you have them, negative (docs/guides/finetune/retrieval.md).
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
