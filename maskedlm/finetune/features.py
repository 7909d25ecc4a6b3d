"""Where config files of earlier versions import LAYERS from."""

from maskedlm.finetune.common.layer_features import LAYERS

__all__ = ("LAYERS",)
