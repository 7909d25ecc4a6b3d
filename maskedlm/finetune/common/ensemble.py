"""Where tasks of one's own import modeling/ensemble.py from."""

from maskedlm.modeling.ensemble import alone as alone
from maskedlm.modeling.ensemble import mean as mean
from maskedlm.modeling.ensemble import mean_sigmoid as mean_sigmoid
from maskedlm.modeling.ensemble import mean_softmax as mean_softmax
