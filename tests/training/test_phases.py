"""Phases of a run: lengths by hand, what may change, resuming at borders."""

import json

import jax
import pytest

from helpers import toy
from helpers.toy_runs import (
  assert_same_end,
  killed_at,
  logged_lines,
  make_config,
  run,
)
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Carried
from maskedlm.pretraining import objectives
from maskedlm.training import joined_tasks, optimizer, phases
from maskedlm.training.checkpoints import files, load


def split(config):
  return phases.split(config, objectives.switched)


def config_of(*changes, num_steps=100, **data):
  config = defaults.default("roberta")
  config.train.num_steps = num_steps
  config.optimizer.warmup_steps = 4
  config.data.update(length=20, batch_size=6, **data)
  config.phases = changes
  return config


def borders(*changes, **options):
  found = split(config_of(*changes, **options))
  return [(phase.begin, phase.end) for phase in found]


def test_lengths_by_hand():
  assert borders() == [(0, 100)]
  assert borders({}, {"share": 0.1}) == [(0, 90), (90, 100)]
  assert borders({"steps": 7}, {}, {"share": 0.25}) == [
    *((0, 7), (7, 75), (75, 100)),
  ]
  # 1,000 tokens are 8.3 steps of 120, and 2.5 of 400.
  changes = {"tokens": 1_000}, {"tokens": 1e3, "data.length": 50}, {}
  assert borders(*changes, num_steps=100) == [(0, 9), (9, 13), (13, 100)]
  assert borders({"steps": 40}, {"steps": 60}) == [(0, 40), (40, 100)]
  # 0.29 * 100 is 28.999... in binary, but 29 steps.
  assert borders({}, {"share": 0.29}) == [(0, 71), (71, 100)]


def test_the_steps_of_all_phases():
  # 7, 8.3 of 120 tokens, 2.5 of 400, and 3 in each half of a ramp.
  config = config_of(
    {"steps": 7},
    {"tokens": 1_000},
    {"tokens": 1e3, "data.length": 50, "data.batch_size": 8},
    *phases.ramp("data.batch_size", (9, 11), steps=6),
  )
  config.train.num_steps = phases.total_steps(config)
  assert config.train.num_steps == 7 + 9 + 3 + 3 + 3
  assert split(config)[-1].end == 25
  for change in ({}, {"share": 0.5}, {"steps": 3, "tokens": 9}):
    with pytest.raises(ConfigError, match=r"phases\[1\]: expected steps or"):
      phases.total_steps(config_of({"steps": 7}, change))


def test_a_share_that_rounds_to_no_step_is_left_out():
  assert borders({}, {"share": 0.1}, num_steps=4) == [(0, 4)]
  assert borders({}, {"share": 0.1}, num_steps=6) == [(0, 5), (5, 6)]
  assert borders({}, {"share": 1.0}) == [(0, 100)]


def test_each_phase_changes_the_one_before():
  first, second, third = split(
    config_of(
      {"steps": 10},
      {"steps": 10, "data.length": 50, "objective.mask_rate": 0.3},
      {"data.batch_size": 9, "model.rope_theta": 160_000.0},
    )
  )
  assert [p.config.data.length for p in (first, second, third)] == [20, 50, 50]
  assert [p.config.data.batch_size for p in (first, third)] == [6, 9]
  assert third.config.objective.mask_rate == 0.3
  assert third.config.model.rope_theta == 160_000
  assert third.config.phases == first.config.phases == ()
  assert second.changes == {"data.length": 50, "objective.mask_rate": 0.3}


def test_a_ramp_divides_its_length():
  ramp = phases.ramp("data.batch_size", (3, 6, 12), tokens=720)
  assert ramp[2] == {"tokens": 240, "data.batch_size": 12}
  assert borders(*ramp, {}) == [(0, 4), (4, 6), (6, 7), (7, 100)]
  with pytest.raises(ConfigError, match=r"one of steps, tokens, share"):
    phases.ramp("data.batch_size", (3, 6), epochs=1)


def test_a_phase_goes_on_in_the_text_where_the_last_one_stopped():
  made = split(
    config_of(
      {"steps": 10},
      {"steps": 5, "data.batch_size": 18},
      {"data.length": 70, "data.batch_size": 4},
    )
  )
  # 1,200 tokens read are 3.3 batches of 360; 3,000 are 10.7 of 280.
  assert [phase.first_batch for phase in made] == [0, 4, 11]


def test_a_schedule_spans_phases_until_one_changes_it():
  made = split(
    config_of(
      {"steps": 10},
      {"steps": 20, "data.length": 50},
      {"steps": 30, "optimizer.learning_rate": 3e-4},
      {"steps": 10, "optimizer.weight_decay": 0.0},
      {"optimizer.schedule": "wsd_sqrt", "optimizer.warmup_steps": 0},
    )
  )
  assert [phase.rates for phase in made] == [
    *((0, 30), (0, 30), (30, 40), (30, 40), (70, 30)),
  ]
  # ModernBERT's: the last phase decays from its peak.
  last = made[-1].config.optimizer
  assert last.learning_rate == 3e-4 and last.weight_decay == 0.0
  last.decay_share = 1.0
  schedule = optimizer.make_schedule(last, 30)
  assert float(schedule(0)) == pytest.approx(3e-4)
  assert float(schedule(15)) == pytest.approx(3e-4 * (1 - 0.5**0.5))


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    (({}, {"data.lenght": 9}), r"phases\[1\].*'data.lenght'.*data.length"),
    (({}, {"length": 9}), r"phases\[1\].*'length'"),
    (({}, {"shar": 0.5}), r"phases\[1\].*'shar'.*share"),
    (({}, {"data": 3}), r"phases\[1\].*'data'"),
    (({"model.width": 24}, {"steps": 2}), r"phases\[0\].*model\.width"),
    (({}, {"steps": 2, "objective.name": "causel"}), '"causal"'),
    (({}, {"steps": 2, "objective.name": 3}), "objective.name=3"),
    (
      ({}, {"steps": 2, "objective.name": "causal", "objective.choose": "a"}),
      "'causal' has no objective.choose",
    ),
    (({}, {"steps": 2, "optimizer.rule": "lamb"}), r"optimizer\.rule"),
    (({}, {"steps": 2, "train.num_steps": 9}), r"train\.num_steps"),
    (({}, {"steps": 2, "data.length": "long"}), r"data\.length='long'"),
    (({}, {"steps": 2, "data.length": 3}), r"step 98.*data\.length=3"),
    (({}, {"steps": 2, "data.length": 600}), r"data\.length=600.*positions"),
    (({}, {"steps": 2, "objective.mask_rate": 2.0}), r"mask_rate=2\.0"),
    (({}, {}), "phases: 2 of 2 have no length"),
    (({"steps": 40}, {"steps": 61}), "--config.train.num_steps=101"),
    (({"steps": 40}, {"steps": 59}), "--config.train.num_steps=99"),
    (({"steps": 101}, {}), "--config.train.num_steps=101"),
    (({"steps": 5, "share": 0.1}, {}), r"phases\[0\] has steps and share"),
    (({}, {"steps": 0}), r"phases\[1\]: steps=0"),
    (({}, {"tokens": -3}), r"phases\[1\]: tokens=-3"),
    (({}, {"tokens": "1e9"}), r"phases\[1\]: tokens='1e9'"),
    (({}, {"share": 1.5}), r"phases\[1\]: share=1\.5.*at most 1"),
  ],
)
def test_bad_phases_are_one_line(changes, words):
  with pytest.raises(ConfigError, match=words) as error:
    defaults.validate(config_of(*changes))
  assert "\n" not in str(error.value)


def test_phases_on_the_command_line_and_in_json(tmp_path):
  path = tmp_path / "config.py"
  path.write_text(
    "from maskedlm.config import defaults\n"
    "def get_config():\n  return defaults.default('roberta')\n"
  )
  given = "({}, {'share': 0.1, 'data.length': 512})"
  config = overrides.load_config(str(path), [f"--config.phases={given}"])
  assert split(config)[1].config.data.length == 512
  kept = json.loads(config.to_json_best_effort())["phases"]
  config.phases = tuple(kept)  # As when a run is continued without a file.
  assert split(config)[1].config.data.length == 512
  for wrong in ("3", "(3,)", "('steps',)", "{'steps': 3}"):
    with pytest.raises(ConfigError, match="phases"):
      overrides.load_config(str(path), [f"--config.phases={wrong}"])


def test_other_parameters_are_refused():
  made = split(config_of({}, {"share": 0.5}))
  first = toy.make_task()

  def init(key):
    return {"dense": {"kernel": jax.random.normal(key, (4, 1))}}

  with pytest.raises(ConfigError, match=r"step 50.*parameters"):
    joined_tasks.join_tasks(made, [first, first._replace(init=init)])


def test_steps_of_a_run_are_those_of_its_phases():
  made = split(config_of({"steps": 10}, {"data.batch_size": 18}))
  tasks = [
    toy.make_task(num_heldout_batches=n)._replace(
      batch_at=lambda split, step, n=n: (n, split, step),
      flops=lambda step, n=n: 100 * n + step,
    )
    for n in (1, 2)
  ]
  joined = joined_tasks.join_tasks(made, tasks)
  for task in joined:
    assert task.batch_at("train", 9) == (1, "train", 9)
    assert task.batch_at("train", 10) == (2, "train", 4)  # 1,200 / 360 tokens.
    assert task.batch_at("train", 99) == (2, "train", 93)
    assert task.batch_at("heldout", 0) == (1, "heldout", 0)
    assert task.row_ids("train", 10)[0] == 4 * toy.ROWS
    assert (task.flops(0), task.flops(12)) == (100, 206)
    assert task.num_heldout_batches == 1
    assert task.measured == ((tasks[0].corrupt, task.loss),)


def test_heldout_rows_are_measured_by_each_objective():
  """Two phases of "a", one of "b": the last one's loss is the run's."""
  made = split(
    config_of(
      {"steps": 2},
      {"steps": 3, "objective.mask_rate": 0.3},
      {"objective.name": "causal"},
    )
  )

  def of(number, name):
    def loss(params, batch, key, train):
      return {f"{name}_term": (number, 1.0)}, {f"{name}_loss": (number, 1.0)}

    def corrupt(batch, key):
      return {**batch, "from": number}

    return toy.make_task()._replace(corrupt=corrupt, loss=loss)

  tasks = [of(0, "mlm"), of(1, "mlm"), of(2, "lm")]
  joined = joined_tasks.join_tasks(made, tasks)
  for index, now in enumerate((0, 1, 1)):
    (masks, measures), (first, metrics) = joined[index].heldout
    assert (masks({}, None), first({}, None)) == ({"from": 2}, {"from": 0})
    assert measures(None, {}, None, False)[0] == {"lm_term": (2, 1.0)}
    assert metrics(None, {}, None, False) == ({}, {"mlm_loss": (now, 1.0)})


def test_a_phase_without_state_of_its_own_passes_it_on():
  made = split(config_of({"steps": 2}, {}))
  carried = Carried(
    lambda: 5, lambda arrays, batch, key: arrays, lambda a, seen, step: a + 1
  )
  task = toy.make_task()._replace(corrupt=lambda batch, key: "plain")
  tasks = [task, task._replace(carried=carried)]
  first, second = joined_tasks.join_tasks(made, tasks)
  assert first.carried.init() == second.carried.init() == 5
  assert first.corrupt_with(5, None, None) == "plain"
  assert second.corrupt_with(5, None, None) == 5
  assert first.carried.update(5, None, 1) == 5
  assert second.carried.update(5, None, 1) == 6
  assert joined_tasks.join_tasks(made, [task, task])[1].carried.init() == ()


# Three phases of 10 steps, with borders at 3 and 7.
THREE = (
  {"steps": 3},
  {"steps": 4, "data.batch_size": 512, "optimizer.weight_decay": 0.5},
  {
    "optimizer.learning_rate": 0.05,
    "optimizer.schedule": "wsd_sqrt",
    "optimizer.decay_share": 1.0,
    "optimizer.warmup_steps": 0,
    "train.checkpoint_every": 2,
    "train.log_every": 1,
  },
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, mesh):
  """Returns the config, the folder and the result of a run of THREE."""
  config = make_config()
  config.phases = THREE
  folder = tmp_path_factory.mktemp("phases")
  return config, folder, run(config, toy.make_task(), folder, mesh)


def test_rates_logs_and_checkpoints_follow_the_phases(whole):
  _, folder, _ = whole
  lines = [x for x in logged_lines(folder) if "learning_rate" in x]
  # Every 2 steps, at each border, and every step of the last phase.
  assert [x["step"] for x in lines] == [2, 3, 4, 6, 7, 8, 9, 10]
  rates = {x["step"]: x["learning_rate"] for x in lines}
  # The last phase falls from its peak by 1 - sqrt over 3 steps.
  for step in (7, 8, 9):
    shape = 1 - ((step - 7) / 3) ** 0.5
    assert rates[step + 1] == pytest.approx(0.05 * shape, rel=1e-5)
  # The first two share a schedule of 7 steps: 2 of warm-up, then linear.
  assert rates[3] == pytest.approx(0.01)
  assert rates[7] == pytest.approx(0.01 * 1 / 5)
  # Every 3 steps, then every 2: the two newest are kept.
  assert files.complete_steps(folder / "checkpoints")[-2:] == [8, 10]


def test_a_checkpoint_describes_the_phase_that_it_ends(tmp_path, mesh, whole):
  config, _, _ = whole
  config = config.copy_and_resolve_references()
  config.train.update(keep_last=9)
  tasks = [
    toy.make_task()._replace(describe={"objective": f"phase {i}"})
    for i in range(3)
  ]
  run(config, tasks[0], tmp_path, mesh, others=dict(enumerate(tasks)))
  described = [
    load.load_params(tmp_path, step=step)[1]["task"]["objective"]
    for step in (3, 4, 6, 8, 10)
  ]
  assert described == [f"phase {i}" for i in (0, 1, 1, 2, 2)]


# Steps 0 .. 2 of the run read batches 0 .. 2; 3 .. 6, of twice the rows, read
# 2 .. 5; and 7 .. 9 read 6 .. 8. Before, the ends of each phase are read for
# their memory.
@pytest.mark.parametrize(
  ("phase", "batch", "reads", "newest"),
  [
    (1, 2, 2, [3]),  # Step 3, the first of its phase.
    (2, 8, 2, [8]),  # Step 9, the last.
  ],
)
def test_a_kill_changes_nothing(
  tmp_path, mesh, whole, phase, batch, reads, newest
):
  config, _, complete = whole
  task = toy.make_task()
  killed = {phase: killed_at(task, batch, reads=reads)}
  with pytest.raises(KeyboardInterrupt):
    run(config, task, tmp_path, mesh, others=killed)
  assert files.complete_steps(tmp_path / "checkpoints")[-1:] == newest
  assert_same_end(run(config, task, tmp_path, mesh), complete)


def test_an_option_that_another_objective_has_is_refused_with_a_remedy():
  config = defaults.default("causal")
  config.phases = ({"share": 0.5}, {"objective.mask_rate": 0.15})
  with pytest.raises(ConfigError, match=r"'causal'.*mask_rate.*phases=") as e:
    split(config)
  assert "did you mean" not in str(e.value)
