# Where config files of earlier versions import it from.
from maskedlm.finetune.common.layer_features import LAYERS as LAYERS
