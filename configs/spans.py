"""Labelled spans: entities of WNUT-17, or nested ones of LitBank.

Every span of a few words is classified (Jurafsky & Martin, section 11.5.2). The
data are those of Derczynski et al. 2017 (novel entities in noisy text) and
Bamman et al. 2019 (six kinds of entities in novels, up to four deep); the
recipe is BERT's for token-level tasks (Devlin et al. 2018,
https://arxiv.org/abs/1810.04805, appendix A.3).

  maskedlm finetune spans --config=configs/spans.py:litbank \\
    --config.init_from=runs/bert

  wnut17    flat entities: the data of configs/ner.py (the default)
  litbank   nested entities; a tenth of the books is held out
  identify  the same, with one label: entity or not
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

VARIANTS = ("wnut17", "litbank", "identify")


def get_config(variant="wnut17"):
  check_name("configs/spans.py:VARIANT", variant, VARIANTS)
  config = base.default("spans")
  config.name = f"spans_{variant}"
  if variant == "wnut17":
    folder = f"{base.data_dir()}/ner/wnut17"
    config.data.train = f"{folder}/wnut17train.conll"
    config.data.dev = f"{folder}/emerging.dev.conll"
    config.task.max_span_words = 8  # 99.6% of the entities.
  else:
    config.data.train = f"{base.data_dir()}/ner_nested/litbank/*.tsv"
    config.task.nested = True
    config.task.identify = variant == "identify"
    config.task.max_span_words = 16  # 98.5%.
  config.data.length = 128
  config.data.batch_size = 16
  config.optimizer.learning_rate = 5e-5
  config.train.epochs = 4
  return config
