"""Classification of your own texts or pairs: TSV, CSV, JSONL or Parquet files.

As BERT is fine-tuned (Devlin et al. 2019, https://arxiv.org/abs/1810.04805,
section 4.1 and appendix A.3). The columns are "text" and "label" unless named:

  maskedlm finetune classification --config=configs/classification.py \\
    --config.init_from=runs/bert --config.data.train=reviews.csv \\
    --config.task.text=review --config.task.label=stars

For pairs add --config.task.text_b=COLUMN; for numbers instead of classes,
--config.task.regression=True. See docs/guides/finetune/classification.md.
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
