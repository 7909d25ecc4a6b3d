"""Part-of-speech tagging on Universal Dependencies, scored by words.

The recipe is BERT's for token-level tasks (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805, appendix A.3); the treebanks are EWT
(English), VTB (Vietnamese) and UFAL (Marathi), with their universal tags.

  maskedlm finetune tagging --config=configs/pos.py --config.init_from=runs/bert

Vietnamese is --config=configs/pos.py:vi, Marathi :mr. For the treebank's own
tags, if it has any: --config.task.conllu_tag=xpos.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

# Language -> (train, dev).
FILES = {
  "en": (
    "English-EWT/en_ewt-ud-train.rebuilt.conllu",
    "English-EWT/en_ewt-ud-dev.conllu",
  ),
  "vi": (
    "Vietnamese-VTB/vi_vtb-ud-train.conllu",
    "Vietnamese-VTB/vi_vtb-ud-dev.conllu",
  ),
  "mr": (
    "Marathi-UFAL/mr_ufal-ud-train.conllu",
    "Marathi-UFAL/mr_ufal-ud-dev.conllu",
  ),
}
# More for the small ones (12,544, 1,400, 373 sentences); not tuned.
EPOCHS = {"en": 3, "vi": 10, "mr": 30}


def get_config(language="en"):
  check_name("configs/pos.py:LANGUAGE", language, FILES)
  config = base.default("tagging")
  config.name = f"pos_{language}"
  train, dev = FILES[language]
  config.data.train = f"{base.data_dir()}/ud_pos/{train}"
  config.data.dev = f"{base.data_dir()}/ud_pos/{dev}"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = EPOCHS[language]
  config.task.task = "pos"
  return config
