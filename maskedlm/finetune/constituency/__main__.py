"""`python -m maskedlm.finetune.TASK` is `maskedlm finetune TASK`."""

from maskedlm.__main__ import finetune

finetune(__package__)
