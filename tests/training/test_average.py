"""Averages of checkpoints by hand; the list of a run's checkpoints."""

import json

import jax
import numpy as np
import pytest

from helpers import untrained, workdirs
from helpers.checkpoint_states import META, files_of, flip, make_state, opened
from maskedlm.cli import main
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.inference.pretrained import evaluate
from maskedlm.training import average, listing
from maskedlm.training.checkpoints import load, resume


@pytest.fixture(scope="module")
def three(tmp_path_factory):
  """Workdirs of one architecture with other parameters."""
  folder = tmp_path_factory.mktemp("three")
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(tokenizer)
  shapes = workdirs.make_params(cfg, ("mlm_head",))
  return [
    workdirs.save(
      folder / str(seed), workdirs.randomise(shapes, seed), cfg, tokenizer
    )
    for seed in range(3)
  ]


def test_weights_of_a_moving_average_are_those_of_its_recursion():
  weights = average.decay_weights(0.75, 4)
  moving = np.eye(4)[0]
  for t in range(1, 4):
    moving = 0.75 * moving + 0.25 * np.eye(4)[t]
  np.testing.assert_allclose(weights, moving)
  # 0.75^3, 0.25 * 0.75^2, 0.25 * 0.75, 0.25.
  np.testing.assert_allclose(weights, [0.421875, 0.140625, 0.1875, 0.25])


def test_a_weighted_mean_by_hand(three, tmp_path, capsys):
  argv = ["average", *map(str, three), "--weights=1,2,5"]
  assert main.main([*argv, "--out", str(tmp_path / "mean")]) == 0
  assert "0.6250" in capsys.readouterr().out
  made = load.open_checkpoint(tmp_path / "mean")
  members = [load.open_checkpoint(path).params for path in three]
  expected = jax.tree.map(
    lambda a, b, c: (np.float64(a) + 2 * np.float64(b) + 5 * np.float64(c)) / 8,
    *members,
  )
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6),
    made.params,
    expected,
  )
  assert jax.tree.leaves(made.params)[0].dtype == np.float32
  written = json.loads((tmp_path / "mean" / "config.json").read_text())
  assert [m["weight"] for m in written["averaged"]] == [0.125, 0.25, 0.625]


def test_the_losses_of_each_and_of_the_average(three, tmp_path, capsys):
  text = tmp_path / "text.txt"
  text.write_text("the cat sat on the mat\n" * 9)
  out = str(tmp_path / "mean")
  argv = ["average", *map(str, three), "--out", out, "--data", str(text)]
  assert main.main(argv) == 0
  *_, last = shown = capsys.readouterr().out.splitlines()
  assert len(shown) == 5 and out in last
  argv = ["evaluate", "--checkpoint", out, "--data", str(text), "--json"]
  assert main.main([*argv, f"--length={workdirs.T}"]) == 0
  loss = json.loads(capsys.readouterr().out)["mlm_loss"]
  assert last.split()[-1] == f"{loss:.4f}"


def test_it_is_read_as_its_run_was_trained(tmp_path):
  """The length of its rows, and what its NSP head tells apart (ALBERT's)."""
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(tokenizer)
  params = workdirs.make_params(cfg, ("pooler", "mlm_head", "nsp_head"))
  config = {"data": {"length": 11}, "objective": {"pairs": "sop"}}
  identity = {"config": config, "corpus": "", "tokenizer": ""}
  for step in (20, 30):
    name, about = str(tmp_path / str(step)), {"identity": identity}
    workdirs.save(name, params, cfg, tokenizer, step=step, **about)
  runs = [str(tmp_path / name) for name in ("20", "30")]
  out, words = str(tmp_path / "mean"), tmp_path / "vocab.txt"
  assert main.main(["average", *runs, "--out", out]) == 0
  tokens = map(tokenizer.tokens, range(tokenizer.vocab_size))
  words.write_text("\n".join([*tokens, "zebra"]) + "\n")
  argv = ["retokenize", f"--checkpoint={out}", f"--tokenizer={words}"]
  assert main.main([*argv, f"--out={tmp_path / 'new'}"]) == 0
  for path in (runs[0], out, tmp_path / "new"):
    model = evaluate.make_model(load.open_checkpoint(path), path)
    assert (model.length, model.pairs.length, model.swaps) == (11, 11, True)
  argv = ["export", f"--checkpoint={out}", "--to=hf", f"--out={tmp_path}/hf"]
  assert main.main(argv) == 0
  card = (tmp_path / "hf" / "README.md").read_text()
  assert "| the mean of | 2 checkpoints |" in card
  assert "| steps | 30 |" in card
  with pytest.raises(ConfigError, match="holds another run: an average"):
    resume.check_workdir(tmp_path / "mean", {"objective": {}})


def test_thresholds_are_averaged_and_metrics_are_not():
  def member(threshold):
    cfg = workdirs.config(untrained.make_tokenizer())
    meta = {"heldout": {"threshold": threshold, "f1": 0.5}, "task": {}}
    params = {"x": np.float32([threshold])}
    return load.LoadedCheckpoint(params, cfg, untrained.make_tokenizer(), meta)

  members = [("a", member(1.0)), ("b", member(4.0))]
  params, thresholds = average.average(members, [2, 1])
  assert thresholds == pytest.approx({"threshold": 2.0})
  np.testing.assert_allclose(params["x"], [2.0])


def test_other_shapes_are_refused(three, tmp_path, capsys):
  other = workdirs.config(untrained.make_tokenizer(), mlp_width=32)
  params = workdirs.make_params(other, ("mlm_head",))
  path = workdirs.save(
    tmp_path / "other", params, other, untrained.make_tokenizer()
  )
  argv = ["average", str(three[0]), str(path), "--out", str(tmp_path / "out")]
  assert main.main(argv) == 2
  assert "mlp_width 40 and 32" in capsys.readouterr().err
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
  "argv",
  [["--weights=1,2"], ["--weights=1,x,2"], ["--weights=1,-1,2"], ["--decay=1"]],
)
def test_wrong_weights_are_named(three, tmp_path, argv, capsys):
  argv = ["average", *map(str, three), *argv, "--out", str(tmp_path / "out")]
  assert main.main(argv) == 2
  assert argv[4].split("=")[0] in capsys.readouterr().err
  assert not (tmp_path / "out").exists()


def test_checkpoints_are_listed_with_what_is_damaged(tmp_path, capsys):
  with opened(tmp_path) as checkpoints:
    for step, loss in [(10, 0.5), (200, 0.25), (3000, None)]:
      checkpoints.save(step, make_state(step), META, metric=loss)
  first, second, third = listing.list_steps(tmp_path)
  assert [s["step"] for s in (first, second, third)] == [10, 200, 3000]
  assert [s["heldout"] for s in (first, second, third)] == [0.5, 0.25, None]
  assert [s["best"] for s in (first, second, third)] == [False, True, False]
  size = sum(p.stat().st_size for p in files_of(tmp_path, 200))
  assert second["bytes"] >= size > 0
  damaged = files_of(tmp_path, 3000)[0]
  flip(damaged)
  (tmp_path / "checkpoints" / "10").rename(
    tmp_path / "checkpoints" / "10.damaged"
  )
  assert main.main(["runs", str(tmp_path)]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == str(tmp_path)
  assert "10.damaged" in lines[2] and "best" in lines[3]
  assert "3,000" in lines[4] and damaged.name in lines[4]


def test_a_folder_without_checkpoints_is_named(tmp_path):
  with pytest.raises(CheckpointError, match="has no checkpoint"):
    list(listing.list_steps(tmp_path))
