"""Config files that were written for earlier versions still load."""

import pytest

from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
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


OF_PRETRAINING, OF_TAGGING = "defaults.default()", "tuning.default('tagging')"


@pytest.mark.parametrize(
  ("default", "line", "words"),
  [
    (OF_PRETRAINING, "optimizer.decay_from_zero = True", "schedule='bert'"),
    (OF_PRETRAINING, "optimizer.power = 0.5", "schedule='lamb'"),
    (OF_PRETRAINING, "optimizer.bias_correction = False", "rule='bert_adam'"),
    (
      OF_PRETRAINING,
      "optimizer.warmup_steps = c.train.get_oneway_ref('num_steps') // 9",
      "warmup_steps=0.06 is a share",
    ),
    # No section of pretraining but train ever had it.
    (OF_PRETRAINING, "data.num_steps = 3", "^(?!.*was removed).*num_steps"),
    (OF_TAGGING, "train.warmup_share = 0.06", "warmup_steps=0.1 is a share"),
    (OF_TAGGING, "train.num_steps = 3", "train.epochs"),
    (OF_TAGGING, "train.eval_every = 3", "train.evals_per_epoch"),
    (OF_TAGGING, "task.crf = True", "task.decode='crf'"),
  ],
)
def test_an_option_of_before_is_refused_with_its_new_name(
  default, line, words, tmp_path
):
  path = tmp_path / "c.py"
  path.write_text(
    "from maskedlm.config import defaults\n"
    "from maskedlm.finetune import config as tuning\n"
    "def get_config():\n"
    f"  c = {default}\n"
    f"  c.{line}\n"
    "  return c\n"
  )
  with pytest.raises(ConfigError, match=words):
    overrides.load_config(str(path), validate=lambda config: None)
