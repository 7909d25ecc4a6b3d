"""Serves the page of `maskedlm demo` on this machine."""
