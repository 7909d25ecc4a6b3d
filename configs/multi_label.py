"""Multi-label classification of your own texts: TSV, CSV, JSONL or Parquet.

Fine-tuned like classification (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, appendix A.3), with an independent decision
for each label. The columns are "text" and "labels" unless named:

  maskedlm finetune multi_label --config=configs/multi_label.py \\
    --config.init_from=runs/bert --config.data.train=posts.jsonl

See docs/guides/finetune/multi-label.md.
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
