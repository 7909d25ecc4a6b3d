"""Overrides on the command line, and what is said of wrong ones."""

import argparse

import pytest

from helpers.repository import CONFIGS
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError

CONFIG = f"{CONFIGS}/bert.py:tiny"


def parse(*argv):
  parser = argparse.ArgumentParser()
  parser.add_argument("--workdir")
  return overrides.parse_config(parser, argv)


def test_overrides_in_any_order_and_both_spellings():
  args, config = parse(
    "--config.model.num_layers=5",
    "--config.optimizer.learning_rate",
    "3e-4",
    f"--config={CONFIG}",
    "--noconfig.tokenizer.lowercase",
    "--config.optimizer.frozen_layers",
    "-1",
    "--workdir=w",
  )
  assert args.workdir == "w"
  assert config.model.num_layers == 5
  assert config.optimizer.learning_rate == 3e-4
  assert config.tokenizer.lowercase is False
  assert config.optimizer.frozen_layers == -1


@pytest.mark.parametrize(
  ("argv", "words"),
  [
    (["--config.model.nlayers=5"], ["model.nlayers", "model.num_layers"]),
    (["--config.modle.width=5"], ["modle.width", "model.width"]),
    (["--config.model.width=wide"], ["model.width", "wide"]),
    (["--workdri=x"], ["--workdri", "--workdir"]),
    (["stray"], ["stray"]),
    # absl sets a boolean option that has no "=", and drops what follows.
    (["--config.model.unroll", "False"], ["False", "--config.OPTION=VALUE"]),
    (["--config.data.length", "64", "32"], ["32", "--config.OPTION=VALUE"]),
    (["--config.data.length=4"], ["data.length=4", "8"]),
    (["--config.seed=4294967296"], ["seed=4294967296", "to 4294967295"]),
    (["--config.model.norm_epsilon=-1"], ["norm_epsilon=-1.0", "expected 0"]),
    (["--config.model.init_stddev=nan"], ["init_stddev=nan", "expected 0"]),
    (["--config.profile=-3"], ["profile=-3", "expected 0"]),
    (["--config.data.length=600"], ["600", "max_positions"]),
    (["--config.corpus.sentences=spilt"], ["spilt", "split"]),
    (["--config.objective.name=mlm_nps"], ["mlm_nps", "mlm_nsp"]),
  ],
)
def test_bad_input_is_one_line_with_the_remedy(argv, words):
  with pytest.raises(ConfigError) as caught:
    parse(f"--config={CONFIG}", *argv)
  text = str(caught.value)
  assert "\n" not in text
  for word in words:
    assert word in text


def test_missing_file():
  with pytest.raises(ConfigError, match="no such file"):
    parse("--config=configs/nope.py")


@pytest.mark.parametrize(
  ("old", "new"),
  [("bert_base", "bert.py:base"), ("xlmr_tiny", "xlmr.py:tiny")],
)
def test_a_file_of_one_size_is_refused_with_its_new_name(old, new):
  with pytest.raises(ConfigError, match="no such file") as caught:
    parse(f"--config={CONFIGS}/{old}.py")
  assert f"--config={CONFIGS}/{new}" in str(caught.value)


def test_an_unknown_size():
  with pytest.raises(ConfigError, match="bert.py.*'bsae'.*\"base\".*large"):
    parse(f"--config={CONFIGS}/bert.py:bsae")


def test_a_misspelt_option_in_a_config_file(tmp_path):
  path = tmp_path / "c.py"
  path.write_text(
    "from maskedlm.config.defaults import default\n"
    "def get_config():\n"
    "  c = default()\n"
    "  c.train.num_step = 3\n"
    "  return c\n"
  )
  with pytest.raises(ConfigError, match="num_steps"):
    parse(f"--config={path}")


def test_broken_config_file(tmp_path):
  path = tmp_path / "c.py"
  path.write_text("def get_config(:\n")
  with pytest.raises(ConfigError, match="SyntaxError"):
    parse(f"--config={path}")


def test_what_get_config_refuses_is_one_line(tmp_path):
  path = tmp_path / "c.py"
  path.write_text(
    "from maskedlm.config.defaults import ConfigError\n"
    "def get_config(arg='x'):\n"
    "  raise ConfigError(f'c.py:{arg}: no such task')\n"
  )
  with pytest.raises(ConfigError) as error:
    overrides.load_config(f"{path}:mrcp")
  assert str(error.value) == "c.py:mrcp: no such task"
