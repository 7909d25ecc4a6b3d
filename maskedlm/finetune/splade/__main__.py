from maskedlm.__main__ import finetune

finetune(__package__)
