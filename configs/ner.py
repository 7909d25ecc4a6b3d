"""Named entities of WNUT-17 by fine-tuning: BIO tags, scored by entity.

The recipe is BERT's for tasks of tokens (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805, appendix A.3: batch 16 or 32, 5e-5 to 2e-5, 2
to 4 epochs); the data is that of Derczynski et al. 2017, novel and emerging
entities in noisy text. Every subword is trained with its word's tag, the first
one is read.

  maskedlm finetune tagging --config=configs/ner.py --config.init_from=runs/bert

A CRF on top: --config=configs/ner.py:crf. Files of your own, in CoNLL columns:
--config.data.train=FILE --config.data.dev=FILE. Random restarts, as the paper
averages five: --config.sweep.seeds='(0,1,2,3,4)'.
"""

from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as base


def get_config(arg=""):
  if arg not in ("", "crf"):
    raise ConfigError(f"configs/ner.py:{arg}: expected configs/ner.py or :crf.")
  config = base.default("tagging")
  config.name = f"ner_{arg or 'wnut17'}"
  folder = f"{base.data_dir()}/ner/wnut17"
  config.data.train = f"{folder}/wnut17train.conll"
  config.data.dev = f"{folder}/emerging.dev.conll"
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 4
  config.task.crf = arg == "crf"
  return config
