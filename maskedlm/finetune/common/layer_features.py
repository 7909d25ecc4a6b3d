"""Where config files of before import the names of layers from."""

from maskedlm.modeling.task_heads.layer_features import CHOICES as CHOICES
