"""Similarity: vectors whose cosines order pairs of texts as their grades do.

For pairs such as those of STS-B, by CoSENT (Huang et al. 2024,
https://doi.org/10.1109/TASLP.2024.3402087); as in Sentence-BERT
(arXiv:1908.10084), the two texts of a pair are read apart:

  maskedlm finetune similarity --config=configs/similarity.py \\
    --config.init_from=runs/bert --config.data.train=sts.tsv
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("similarity")
  config.data.length = 128
  config.data.batch_size = 64
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 3
  return config
