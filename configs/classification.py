"""Classification of texts of your own, or pairs: TSV, CSV, JSONL, Parquet.

As BERT is fine-tuned (Devlin et al. 2019, https://arxiv.org/abs/1810.04805,
section 4.1 and appendix A.3). Columns "text" and "label" unless named:

  maskedlm finetune classification --config=configs/classification.py \\
    --config.init_from=runs/bert --config.data.train=reviews.csv \\
    --config.task.text=review --config.task.label=stars

A pair has --config.task.text_b=COLUMN too; numbers instead of classes are
--config.task.regression=True. docs/guides/finetune/classification.md has the
rest.
"""

from maskedlm.finetune import config as base


def get_config():
  config = base.default("classification")
  config.name = "classification"
  config.task.layout = "columns"
  config.data.length = 128
  config.data.batch_size = 32
  config.optimizer.learning_rate = 3e-5
  config.train.epochs = 3
  return config
