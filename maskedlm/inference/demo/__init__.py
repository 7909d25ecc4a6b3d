"""`maskedlm demo`: a page on this machine, to try a model on."""
