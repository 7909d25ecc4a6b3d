"""Named entities of WNUT-17 from a frozen encoder: the feature-based approach.

The ablation of the BERT paper (Devlin et al. 2019,
https://arxiv.org/abs/1810.04805, section 5.3, table 7): the concatenated
vectors of the last four layers, then a BiLSTM of two layers, 768 wide, before
the classification; on CoNLL-2003 that was 0.3 F1 behind fine-tuning. The other
rows of that table are variants:

  maskedlm finetune features --config=configs/features.py:last \\
    --config.init_from=runs/bert

The variants are embeddings, second_to_last, last, sum_all, sum_last_four,
mean_last_four, concat_last_four (the default), weighted_last_four and
weighted_all. For a linear head:
--config.task.head=linear. The data are those of configs/ner.py. The paper does
not give the head's learning rate; a randomly initialized LSTM needs more than
5e-5.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base
from maskedlm.modeling.task_heads.layer_features import CHOICES


def get_config(layers="concat_last_four"):
  check_name("configs/features.py:LAYERS", layers, CHOICES)
  config = base.default("features")
  config.name = f"features_{layers}"
  folder = f"{base.data_dir()}/ner/wnut17"
  config.data.train = f"{folder}/wnut17train.conll"
  config.data.dev = f"{folder}/emerging.dev.conll"
  config.data.length = 128
  config.data.batch_size = 16
  config.task.layers = layers
  config.optimizer.frozen_layers = -1  # Without weight decay either.
  config.optimizer.learning_rate = 1e-3
  config.train.epochs = 8
  return config
