"""The page of `maskedlm demo`, served on this machine."""
