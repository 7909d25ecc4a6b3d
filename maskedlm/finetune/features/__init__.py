# Where config files of earlier versions import it from.
from maskedlm.modeling.task_heads.layer_features import LAYERS as LAYERS
