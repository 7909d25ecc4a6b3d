"""Constituency parsing on GUM: labelled brackets that nest, and tags.

Every span of a sentence is labelled (Stern et al. 2017, Kitaev and Klein 2018,
https://arxiv.org/abs/1805.01052); the recipe is BERT's for token-level tasks
(Devlin et al. 2018, https://arxiv.org/abs/1810.04805, appendix A.3). The
trees of GUM (Zeldes 2017) are the output of another parser, which was given the
gold tags: scores measure agreement with it.

  maskedlm finetune constituency --config=configs/constituency.py \\
    --config.init_from=runs/bert

With your own trees, in brackets: --config.data.train=FILE
--config.data.dev=FILE.
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("constituency")
  folder = f"{base.data_dir()}/parsing/gum"
  config.data.train = f"{folder}/train.ptb"
  config.data.dev = f"{folder}/dev.ptb"
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 4
  return config
