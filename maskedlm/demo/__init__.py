"""`maskedlm demo`: a page on this machine, for who would rather look."""
