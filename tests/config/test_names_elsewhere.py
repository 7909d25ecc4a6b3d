"""Names of other libraries lead to the option's own."""

import re

import pytest

from maskedlm.config import defaults, names_elsewhere, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as finetune_config


@pytest.mark.parametrize(
  ("name", "option"),
  [
    ("optimizer.lr", "optimizer.learning_rate"),
    ("lr", "optimizer.learning_rate"),
    ("learning_rate", "optimizer.learning_rate"),
    ("train.learning_rate", "optimizer.learning_rate"),
    ("model.hidden_size", "model.width"),
    ("max_steps", "train.num_steps"),
    ("data.max_seq_length", "data.length"),
    ("train.batch_size", "data.batch_size"),
    ("model.witdh", "model.width"),
  ],
)
def test_options_of_pretraining(tmp_path, name, option):
  (tmp_path / "c.py").write_text(
    "from maskedlm import config\ndef get_config(): return config.default()\n"
  )
  with pytest.raises(ConfigError, match=rf' \(did you mean "{option}"\?'):
    overrides.load_config(str(tmp_path / "c.py"), [f"--config.{name}=3"])


def test_every_name_leads_to_an_option():
  configs = defaults.default(), finetune_config.default("tagging")
  options = {
    option
    for config in configs
    for option in re.findall(r'"(\w+)":', config.to_json_best_effort())
  }
  assert set(names_elsewhere.NAMES.values()) <= options
  assert not set(names_elsewhere.NAMES) & options
