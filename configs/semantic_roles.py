"""Semantic roles of English-EWT: who did what to whom (PropBank).

The roles are PropBank's for the English Web Treebank (Palmer et al. 2005,
https://aclanthology.org/J05-1004); predicates are verbs, nouns and adjectives.
The recipe is BERT's for token-level tasks (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805, appendix A.3; Shi and Lin 2019,
https://arxiv.org/abs/1904.05255, use 5e-5 as well).

  maskedlm finetune semantic_roles --config=configs/semantic_roles.py \\
    --config.init_from=runs/bert

With your own files, JSON Lines or CoNLL-2005 or 2012 columns:
--config.data.train=FILE --config.data.dev=FILE.
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("semantic_roles")
  folder = f"{base.data_dir()}/srl/ewt"
  config.data.train = f"{folder}/train.jsonl"
  config.data.dev = f"{folder}/dev.jsonl"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 5
  return config
