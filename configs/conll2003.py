"""CoNLL-2003: persons, organisations, locations and others in English news.

Tjong Kim Sang & De Meulder 2003 (https://aclanthology.org/W03-0419), fine-tuned
as BERT was (Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 5.3
and table 3): batches of 16 or 32, rates of 5e-5 to 2e-5, 2 to 4 epochs, chosen
on the development set, each word tagged at its first subword.

  maskedlm finetune tagging --config=configs/conll2003.py \\
    --config.init_from=runs/bert

The table's figures are means over five restarts, for both sets:
--config.sweep.seeds='(0,1,2,3,4)'. Files: MASKEDLM_DATA/ner/conll2003/ with
eng.train, eng.testa and eng.testb as the shared task has them, or train.txt,
valid.txt and test.txt as copies of them are named: four columns, the word
first and the entity last, and -DOCSTART- lines between documents. The texts are
Reuters', so nobody may hand them on.
"""

import pathlib

from maskedlm.finetune import config as base

_NAMES = (
  ("eng.train", "eng.testa", "eng.testb"),
  ("train.txt", "valid.txt", "test.txt"),
)


def get_config():
  config = base.default("tagging")
  config.name = "conll2003"
  folder = pathlib.Path(base.data_dir()) / "ner" / "conll2003"
  present = [names for names in _NAMES if (folder / names[0]).is_file()]
  train, dev, test = (str(folder / x) for x in (*present, _NAMES[0])[0])
  config.data.train, config.data.dev = train, dev
  config.data.also_score = (test,)
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 4
  # As in the paper: the loss, too, is at a word's first subword.
  config.task.decode = "words"
  return config
