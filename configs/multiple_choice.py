"""Multiple choice: picks the most plausible ending, explanation or answer.

One score w z_CLS for each choice, as BERT was fine-tuned on SWAG (Devlin et al.
2019, https://arxiv.org/abs/1810.04805, section 4.4: batches of 16, 2e-5, 3
epochs); the other data sets share SWAG's layout and recipe:

  maskedlm finetune multiple_choice --config=configs/multiple_choice.py:codah \\
    --config.init_from=runs/bert

  codah  endings written to be hard for models (Chen et al. 2019, W19-2008;
         the default)
  comve  why a sentence is against common sense (SemEval-2020 task 4B), with
         the answers joined: comve_b/train.csv and dev.csv have id, FalseSent,
         OptionA, ..., and label (docs/guides/finetune/multiple-choice.md)
  swag   what happens next (Zellers et al. 2018, arXiv:1808.05326), its
         train.csv and val.csv

With 4 choices each, a batch of 16 is 64 rows for the encoder.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base

# Variant -> training set, development set, tokens a row.
FILES = {
  "codah": ("codah/train.tsv", "codah/dev.tsv", 96),
  "comve": ("comve_b/train.csv", "comve_b/dev.csv", 64),
  "swag": ("swag/train.csv", "swag/val.csv", 80),
}
# CODAH's files have no header line, and some choices are numbers.
CODAH = ("category", "prompt", *(f"ending{i}" for i in range(4)), "label")


def get_config(variant="codah"):
  check_name("configs/multiple_choice.py:VARIANT", variant, FILES)
  config = base.default("multiple_choice")
  config.name = variant
  folder = f"{base.data_dir()}/multiple_choice"
  train, dev, config.data.length = FILES[variant]
  config.data.train, config.data.dev = f"{folder}/{train}", f"{folder}/{dev}"
  if variant == "codah":
    config.task.header, config.task.first_label = CODAH, "0"
  config.data.batch_size = 16
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 3
  return config
