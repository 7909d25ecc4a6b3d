"""Where tasks of one's own import modeling/task_heads/ensemble.py from."""

from maskedlm.modeling.task_heads.ensemble import alone as alone
from maskedlm.modeling.task_heads.ensemble import mean as mean
from maskedlm.modeling.task_heads.ensemble import mean_sigmoid as mean_sigmoid
from maskedlm.modeling.task_heads.ensemble import mean_softmax as mean_softmax
