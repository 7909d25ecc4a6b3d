"""Runs whose phases have different objectives: first causal, then masked."""

import json

import jax
import numpy as np
import pytest

from helpers.killed_runs import killed_after, train
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.pretraining import objectives, run
from maskedlm.pretraining.config import split
from maskedlm.pretraining.initial import init_from
from maskedlm.training.checkpoints import load

pytestmark = pytest.mark.usefixtures("on_one")

# 7 steps with a border at 3; every second step is saved and evaluated.
PHASES = (
  {"steps": 3},
  {"steps": 4, "objective.name": "roberta", "objective.mask_rate": 0.3},
)


def make_config(tiny):
  path, corpus = tiny
  config = overrides.load_config(
    str(path),
    ["--config.objective.name=causal", f"--config.corpus.path={corpus}"],
  )
  config.train.update(num_steps=7, eval_every=2, eval_rows=8, keep_last=9)
  config.train.update(checkpoint_every=2, log_every=1)
  config.model.update(position="rope", dropout=0.1, attention_dropout=0.1)
  config.data.update(length=24, batch_size=8)
  config.objective.isolate_documents = True  # Rows are packed.
  config.phases = PHASES
  defaults.validate(config)
  return config


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
  """Returns the folder, state and metrics of a run of PHASES."""
  folder = tmp_path_factory.mktemp("whole")
  return folder, *train(make_config(tiny), folder)


def test_each_checkpoint_has_its_phases_direction(whole):
  described = {
    step: load.load_params(whole[0], step=step)[1]["task"] for step in (2, 4, 7)
  }
  assert {k: x["objective"] for k, x in described.items()} == {
    2: "causal",
    4: "roberta",
    7: "roberta",
  }
  assert [x["encoder"]["causal"] for x in described.values()] == [
    *(True, False, False)
  ]


def test_both_heldout_losses_are_logged_throughout(whole):
  lines = map(json.loads, (whole[0] / "metrics.jsonl").read_text().splitlines())
  found = [x for x in lines if "heldout/loss" in x]
  assert [x["step"] for x in found] == [2, 4, 6, 7]
  for x in found:
    # ln 500 is 6.2. The last phase's loss is the run's.
    assert 3 < x["heldout/lm_loss"] < 6.5 and 3 < x["heldout/mlm_loss"] < 6.5
    assert x["heldout/loss"] == pytest.approx(x["heldout/mlm_loss"])
  result = json.loads((whole[0] / "result.json").read_text())
  assert result["heldout_lm_loss"] and result["heldout_mlm_loss"]


@pytest.mark.parametrize("step", [2, 4])
def test_a_kill_in_either_phase_changes_nothing(tiny, whole, tmp_path, step):
  folder, state, heldout = whole
  killed = killed_after(step, folder, tmp_path / "killed")
  resumed, same = train(make_config(tiny), killed)
  jax.tree.map(np.testing.assert_array_equal, resumed, state)
  assert resumed.step == 7 and heldout == same


def test_the_direction_of_init_from_is_the_configs(tiny, whole):
  """It is the objective's, and else model.causal's; not the old model's."""
  config = make_config(tiny)
  config.phases = ()
  config.init_from = str(whole[0] / "checkpoints" / "2")  # It was causal.
  for causal in (False, True):
    config.model.causal = causal
    config.model.position = "learned"
    init_from.copy_architecture(config)
    assert config.model.causal == causal
    assert config.model.position == "rope"


@pytest.mark.parametrize(
  ("name", "changes", "parts"),
  [
    ("spanbert", {}, "sbo_head"),
    ("electra", {}, "discriminator_head, generator, mlm_head"),
    ("mlm_nsp", {"model.local_window": 0}, "nsp_head, pooler"),
    ("bilm", {}, "bilm_head, encoder, mlm_head"),
  ],
)
def test_other_parameters_are_refused(name, changes, parts):
  config = defaults.default("roberta")
  config.model.update(num_layers=1, width=24, num_heads=3, mlp_width=40)
  config.data.batch_size = 8
  config.phases = ({}, {"share": 0.5, "objective.name": name, **changes})
  defaults.validate(config)
  with pytest.raises(ConfigError, match=rf"{name}'.*50,000.*\({parts}\)") as e:
    run.check(config)
  assert "\n" not in str(e.value)


def test_options_that_both_objectives_have_are_kept():
  config = defaults.default("causal")
  config.objective.isolate_documents = True
  config.phases = PHASES
  config.train.num_steps = 7
  first, second = split(config)
  assert (first.config.objective.name, second.config.objective.name) == (
    *("causal", "roberta"),
  )
  assert second.config.objective.isolate_documents
  assert second.config.objective.mask_rate == 0.3


def test_a_kill_as_the_weights_of_masks_change_changes_nothing(tiny, tmp_path):
  """They change at steps 3 and 6; step 4 has weights, and counts since 3."""
  config = make_config(tiny)
  config.phases = ()
  config.objective = objectives.default_section("roberta")
  config.objective.update(adapt_every=3, mask_rate=0.4)
  defaults.validate(config)
  whole, heldout = train(config, tmp_path / "whole")
  assert whole.carried["weights"].std() > 0.01
  # The seventh step's: 8 rows of 24 tokens.
  seen = whole.carried["right"].sum() + whole.carried["wrong"].sum()
  assert 40 < seen <= 8 * 10
  killed = killed_after(4, tmp_path / "whole", tmp_path / "killed")
  resumed, same = train(config, killed)
  jax.tree.map(np.testing.assert_array_equal, resumed, whole)
  assert heldout == same
