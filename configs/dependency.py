"""Dependency parsing on Universal Dependencies: heads and labels of words.

Deep biaffine attention (Dozat and Manning 2017,
https://arxiv.org/abs/1611.01734) on the encoder's vectors; the recipe is BERT's
for token-level tasks (Devlin et al. 2018, https://arxiv.org/abs/1810.04805,
appendix A.3). The trees are those of EWT (English).

  maskedlm finetune dependency --config=configs/dependency.py \\
    --config.init_from=runs/bert

With another treebank, in CoNLL-U: --config.data.train=FILE
--config.data.dev=FILE.
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("dependency")
  folder = f"{base.data_dir()}/ud_pos/English-EWT"
  config.data.train = f"{folder}/en_ewt-ud-train.rebuilt.conllu"
  config.data.dev = f"{folder}/en_ewt-ud-dev.conllu"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 5
  return config
