"""SST-2 by a logistic regression on a frozen encoder's vectors of [CLS].

The layers are those of Devlin et al. 2019, https://arxiv.org/abs/1810.04805,
section 5.3, and ELMo's weighted sum (Peters et al. 2018,
https://arxiv.org/abs/1802.05365, equation 1).

  maskedlm finetune text_features --config=configs/text_features.py:last \\
    --config.init_from=runs/bert

The variants are the layers: embeddings, second_to_last, last (the default),
sum_all, sum_last_four, mean_last_four, concat_last_four, weighted_last_four and
weighted_all. Other files, also of pairs: --config.task.layout=columns, or a
task of GLUE, and --config.data.train=FILE --config.data.dev=FILE. The mean of
the tokens instead of [CLS]: --config.task.vector=mean.
"""

from maskedlm.core.errors import check_name
from maskedlm.finetune import config as base
from maskedlm.modeling.task_heads.layer_features import CHOICES


def get_config(layers="last"):
  check_name("configs/text_features.py:LAYERS", layers, CHOICES)
  config = base.default("text_features")
  config.name = f"text_features_{layers}"
  config.task.layout = "sst2"
  config.task.layers = layers
  # Without a development set, a tenth of the training set is held out.
  config.data.train = f"{base.data_dir()}/glue/SST-2/train.tsv"
  config.data.length = 64
  config.data.batch_size = 32
  config.optimizer.frozen_layers = -1  # Without weight decay either.
  config.optimizer.learning_rate = 1e-2
  config.train.epochs = 3
  return config
