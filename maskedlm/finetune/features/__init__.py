# Where config files of earlier versions import it from.
from maskedlm.modeling.layer_features import LAYERS as LAYERS
