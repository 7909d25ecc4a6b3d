"""Tags from the vectors of a frozen encoder; LAYERS is for config files."""

from maskedlm.finetune.common.layer_features import LAYERS

__all__ = ("LAYERS",)
