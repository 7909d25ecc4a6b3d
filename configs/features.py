"""Named entities of WNUT-17 from a frozen encoder: the feature-based way.

The ablation of the BERT paper (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, section 5.3, table 7): vectors of the last
four layers side by side, then a BiLSTM of two layers, 768 wide, before the
classification; on CoNLL-2003 that was 0.3 F1 behind fine-tuning. Another row
of that table is a variant:

  maskedlm finetune features --config=configs/features.py:last \\
    --config.init_from=runs/bert

embeddings, second_to_last, last, sum_last_four, mean_last_four,
concat_last_four (the config without a variant). A linear head:
--config.task.head=linear. Data as in configs/ner.py. The paper says nothing of
the head's training; an LSTM of random weights wants more than 5e-5.
"""

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.finetune import config as base
from maskedlm.finetune.features.features import LAYERS


def get_config(layers="concat_last_four"):
  if layers not in LAYERS:
    raise ConfigError(
      f"configs/features.py:{layers}: no such variant"
      f"{did_you_mean(layers, LAYERS)}; known: {', '.join(LAYERS)}."
    )
  config = base.default("features")
  config.name = f"features_{layers}"
  folder = f"{base.data_dir()}/ner/wnut17"
  config.data.train = f"{folder}/wnut17train.conll"
  config.data.dev = f"{folder}/emerging.dev.conll"
  config.data.length = 128
  config.data.batch_size = 16
  config.task.layers = layers
  config.optimizer.frozen_layers = -1  # Nor does weight decay change it.
  config.optimizer.learning_rate = 1e-3
  config.train.epochs = 8
  return config
