"""Names of other libraries lead to the option's own."""

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
def test_options_of_pretraining(name, option):
  known = overrides._option_names(defaults.default())
  assert names_elsewhere.suggest(name, known) == (f'; did you mean "{option}"?')
  assert option in known


def test_every_name_leads_to_an_option():
  known = overrides._option_names(defaults.default())
  known += overrides._option_names(finetune_config.default("tagging"))
  last = {name.rpartition(".")[2] for name in known}
  assert set(names_elsewhere._NAMES.values()) <= last
  assert not set(names_elsewhere._NAMES) & last


def test_the_error_has_the_suggestion(tmp_path):
  (tmp_path / "c.py").write_text(
    "from maskedlm import config\ndef get_config(): return config.default()\n"
  )
  with pytest.raises(ConfigError, match=r'"optimizer\.learning_rate"'):
    overrides.load_config(
      str(tmp_path / "c.py"), ["--config.optimizer.lr=3e-4"]
    )
