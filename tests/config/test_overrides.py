"""Overrides of a config on the command line, and the errors of wrong ones."""

import argparse
import pathlib

import pytest

from helpers.repository import CONFIGS
from maskedlm.cli import frame, pretrain
from maskedlm.config import defaults, overrides, presets
from maskedlm.core.errors import ConfigError

CONFIG = f"{CONFIGS}/bert.py:tiny"


def parse(*argv):
  made = frame.parse(pretrain.Pretrain, "pretrain", argv)
  return made, made.config


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
    (["--config.model.tied=so"], ["model.tied=so: expected True or False"]),
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
    (["--config.objective.name=spanbret"], ["objective.name", '"spanbert"']),
    (["--config.optimizer=moun"], ["optimizer='moun'", '"muon"', "adamw"]),
    (["--config.optimizer="], ["optimizer=''", "adamw"]),
    (["--config.optimizre=muon"], ["optimizre"]),
    (["--config.optimizer=muon", "--config.optimizer.b3=1"], ["optimizer.b3"]),
    # The options of the config's objective are gone after a switch.
    (
      ["--config.objective.name=roberta", "--config.objective.pairs=sop"],
      ["objective.pairs"],
    ),
  ],
)
def test_bad_input_is_one_line_with_the_remedy(argv, words):
  with pytest.raises(ConfigError) as caught:
    parse(f"--config={CONFIG}", *argv)
  text = str(caught.value)
  assert "\n" not in text
  for word in words:
    assert word in text


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_single_options_apply_on_top_of_a_preset_in_any_order(order):
  argv = (
    "--config.optimizer=muon",
    "--config.optimizer.learning_rate=1e-3",
    "--config.optimizer.no_decay=('norm/',)",
  )
  _, config = parse(f"--config={CONFIG}", *(argv[i] for i in order))
  expected = presets.muon()
  expected.update(learning_rate=1e-3, no_decay=("norm/",))
  assert config.optimizer.to_dict() == expected.to_dict()


def test_an_objective_s_name_switches_its_options(capsys):
  _, config = parse(
    f"--config={CONFIG}",
    "--config.objective.sbo_weight=0.5",
    "--config.objective.name=spanbert",
  )
  expected = defaults.default("spanbert").objective.to_dict()
  assert config.objective.to_dict() == {**expected, "sbo_weight": 0.5}
  assert not capsys.readouterr().err


def test_a_switched_objective_keeps_the_file_s_changes(tmp_path, capsys):
  path = tmp_path / "c.py"
  path.write_text(
    "from maskedlm.config.defaults import default\n"
    "def get_config():\n"
    "  c = default('mlm_nsp')\n"
    "  c.objective.update(mask_rate=0.2, pairs='sop')\n"
    "  return c\n"
  )
  _, config = parse(f"--config={path}", "--config.objective.name=electra")
  expected = defaults.default("electra").objective.to_dict()
  assert config.objective.to_dict() == {**expected, "mask_rate": 0.2}
  (line,) = capsys.readouterr().err.splitlines()
  assert "objective.pairs='sop'" in line and "'electra'" in line


@pytest.mark.parametrize(
  ("config", "content", "expected"),
  [
    ("", None, "--config=: no such file"),
    ("configs/nope.py", None, "no such file"),
    (f"{CONFIGS}/bert.py:bsae", None, r"bert.py.*'bsae'.*\"base\".*large"),
    ("{}/a:b/c.py", "get_config = None", r"no colon.*copy the file"),
    ("{}/a:b/c.py:base", "get_config = None", r"no colon.*copy the file"),
    ("{}/c.py", "def get_config(:\n", "SyntaxError"),
    ("{}/c.py", "def config(): return 1\n", r"get_config\(\) is missing"),
    ("{}/c.py", "def get_config(): return {}\n", "returns dict; .*ConfigDict"),
    (
      "{}/c.py",
      "from maskedlm.config.defaults import default\n"
      "def get_config():\n"
      "  c = default()\n"
      "  c.train.num_step = 3\n",
      "num_steps",
    ),
    (
      "{}/c.py:mrcp",
      "from maskedlm.config.defaults import ConfigError\n"
      "def get_config(arg='x'):\n"
      "  raise ConfigError(f'c.py:{arg}: no such task')\n",
      r"\Ac\.py:mrcp: no such task\Z",
    ),
  ],
)
def test_a_config_that_cant_be_loaded(tmp_path, config, content, expected):
  config = config.format(tmp_path)
  if content:
    path = pathlib.Path(f"{config.rpartition('.py')[0]}.py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
  with pytest.raises(ConfigError, match=expected):
    overrides.load_config(config)


@pytest.mark.parametrize(
  ("old", "new"), [("bert_base", "bert.py:base"), ("xlmr_tiny", "xlmr.py:tiny")]
)
def test_the_earlier_name_of_a_size(old, new):
  _, config = parse(f"--config={CONFIGS}/{old}.py")
  assert config.to_dict() == parse(f"--config={CONFIGS}/{new}")[1].to_dict()


def test_an_override_without_effect_is_named(capsys):
  argv = [f"--config={CONFIG}", "--config.optimizer.decay_share=0.2"]
  parse(*argv, "--config.optimizer.schedule=wsd")
  assert capsys.readouterr().err == ""
  parse(*argv, "--config.optimizer.decay_share=0.3")
  assert capsys.readouterr().err == (
    "--config.optimizer.decay_share has no effect with "
    "optimizer.schedule='linear'\n"
  )


def test_a_value_with_a_space_is_no_text_of_the_verb():
  parser = argparse.ArgumentParser()
  parser.add_argument("--config")
  parser.add_argument("text", nargs="*")
  option = "--config.corpus.source=text:/my folder/x.txt"
  args, found = overrides.split_arguments(
    parser, ["--config=configs/quickstart.py", option, "a text"]
  )
  assert (args.text, found) == (["a text"], [option])
