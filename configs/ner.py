"""Named entity recognition on WNUT-17: BIO tags, scored by entities.

The recipe is BERT's for token-level tasks (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805, appendix A.3: batches of 16 or 32, rates of
5e-5 to 2e-5, 2 to 4 epochs); the data are those of Derczynski et al. 2017,
novel and emerging entities in noisy text. Every subword is trained with its
word's tag; the prediction is read at the first one.

  maskedlm finetune tagging --config=configs/ner.py --config.init_from=runs/bert

With a CRF on top: --config=configs/ner.py:crf. With your own files, in CoNLL
columns: --config.data.train=FILE --config.data.dev=FILE. The paper averages
five random restarts: --config.sweep.seeds='(0,1,2,3,4)'.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base


def get_config(variant="wnut17"):
  check_name("configs/ner.py:VARIANT", variant, ("wnut17", "crf"))
  config = base.default("tagging")
  config.name = f"ner_{variant}"
  folder = f"{base.data_dir()}/ner/wnut17"
  config.data.train = f"{folder}/wnut17train.conll"
  config.data.dev = f"{folder}/emerging.dev.conll"
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 4
  if variant == "crf":
    config.task.decode = "crf"
  return config
