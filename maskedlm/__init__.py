"""maskedlm: pretrain masked language models, and put them to work."""
