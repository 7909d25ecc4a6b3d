"""Config files that were written for earlier versions still load."""

from maskedlm.config import overrides
from maskedlm.finetune import config as finetune_config

PRETRAINING = """
from maskedlm import config as base
from maskedlm import presets
from maskedlm.config import ConfigError, did_you_mean

def get_config():
  config = base.default("roberta")
  config.optimizer = presets.adamw()
  return config
"""
FINE_TUNING = """
from maskedlm.config import ConfigError, did_you_mean
from maskedlm.finetune import config as base
from maskedlm.finetune import glue
from maskedlm.finetune.features import LAYERS

def get_config():
  config = base.default("features")
  config.name = f"{'sst2' in glue.TASKS}-{'last' in LAYERS}"
  return config
"""


def test_a_file_of_an_earlier_version(tmp_path):
  for name, text in (("a.py", PRETRAINING), ("b.py", FINE_TUNING)):
    (tmp_path / name).write_text(text)
  config = overrides.load_config(str(tmp_path / "a.py"))
  assert config.objective.name == "roberta"
  config = overrides.load_config(
    str(tmp_path / "b.py"), validate=finetune_config.validate
  )
  assert config.name == "True-True"
