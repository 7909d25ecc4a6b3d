"""Any number of labels for a text of your own: TSV, CSV, JSONL, Parquet.

As classification is fine-tuned (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, appendix A.3), each label a decision of its
own. Columns "text" and "labels" unless named:

  maskedlm finetune multi_label --config=configs/multi_label.py \\
    --config.init_from=runs/bert --config.data.train=posts.jsonl

docs/guides/finetune/classification.md has the rest.
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("multi_label")
  config.name = "multi_label"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 3e-5
  config.train.epochs = 3
  return config
