"""Multiple choice: the most plausible ending, explanation or answer.

One score w z_CLS for each choice, as BERT was fine-tuned on SWAG (Devlin et al.
2019, https://arxiv.org/abs/1810.04805, section 4.4: batches of 16, 2e-5, 3
epochs), whose layout and recipe the others share:

  maskedlm finetune multiple_choice --config=configs/multiple_choice.py:codah \\
    --config.init_from=runs/bert

codah (the config without a variant): Chen et al. 2019, W19-2008, endings made
to be hard for models. comve: SemEval-2020 task 4, subtask B, why a sentence is
against common sense. swag: Zellers et al. 2018, arXiv:1808.05326, its train.csv
and val.csv. A batch of 16 is 64 rows for the encoder with 4 choices each.
"""

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.finetune import config as base

# Variant -> training set, development set, tokens of the longest row.
FILES = {
  "codah": ("codah/train.tsv", "codah/dev.tsv", 96),
  "comve": (
    "comve_b/training/subtaskB_data_all.csv",
    "comve_b/dev/subtaskB_dev_data.csv",
    64,
  ),
  "swag": ("swag/train.csv", "swag/val.csv", 80),
}


def get_config(variant="codah"):
  if variant not in FILES:
    raise ConfigError(
      f"configs/multiple_choice.py:{variant}: no such variant"
      f"{did_you_mean(variant, FILES)}; known: {', '.join(FILES)}."
    )
  config = base.default("multiple_choice")
  config.name = variant
  folder = f"{base.data_dir()}/multiple_choice"
  train, dev, config.data.length = FILES[variant]
  config.data.train, config.data.dev = f"{folder}/{train}", f"{folder}/{dev}"
  config.data.batch_size = 16
  config.optimizer.learning_rate = 2e-5
  config.train.epochs = 3
  return config
