"""Discourse: does a text continue another, and how are the two related?

  coherence  1: the second text follows the first in a document; 0: it is from
             another document of the same genre
  relations  the relation between two parts of a document, such as
             contingency.cause: the second level of PDTB 3 (Webber et al. 2019),
             annotated in GUM (Liu et al. 2024, GDTB)

Pairs are fine-tuned as in BERT (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, section 4.1 and appendix A.3).

  maskedlm finetune classification --config=configs/discourse.py:coherence \\
    --config.init_from=runs/bert --config.task.head_from=nsp

With head_from=nsp the classifier starts from the pretrained head of
next-sentence prediction, whose "B follows A" becomes the label 1.
Files: MASKEDLM_DATA/discourse/{coherence,relations}.{train,dev}.tsv.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

VARIANTS = ("coherence", "relations")


def get_config(variant="coherence"):
  check_name("configs/discourse.py:VARIANT", variant, VARIANTS)
  config = base.default("classification")
  config.name = f"discourse_{variant}"
  folder = f"{base.data_dir()}/discourse"
  config.data.train = f"{folder}/{variant}.train.tsv"
  config.data.dev = f"{folder}/{variant}.dev.tsv"
  config.task.text, config.task.text_b = "text_a", "text_b"
  if variant == "coherence":
    config.task.positive = "1"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 3e-5
  config.train.epochs = 4
  return config
