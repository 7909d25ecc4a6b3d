"""The config of a run: options, presets, overrides on the command line.

A config file imports `from maskedlm import config` and starts from
`config.default(objective)`.
"""

from maskedlm.config import presets
from maskedlm.config.defaults import default
from maskedlm.core.errors import ConfigError, did_you_mean

__all__ = ("ConfigError", "default", "did_you_mean", "presets")
