"""The state of a run, read from its workdir alone."""

import json
import os
import time

import fsspec
import pytest

from maskedlm.cli import main
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import buckets
from maskedlm.training import status

CONFIG = {"name": "x", "objective": {}, "train": {"num_steps": 70}}
LINES = [
  {"step": 20, "loss": 7.5, "tokens_per_second": 900.0},
  {"step": 20, "heldout/loss": 7.25, "heldout/mlm_loss": 7.0},
  {"step": 30, "loss": None, "tokens_per_second": 1234.5},
]
STEPS = {10: 500, 30: 100}


def write_run(folder, *, lines=LINES, steps=STEPS, cut="", **files):
  """Writes a workdir; steps: number of a checkpoint -> seconds since then."""
  folder.mkdir(exist_ok=True)
  (folder / "config.json").write_text(json.dumps(CONFIG))
  text = "".join(json.dumps(line) + "\n" for line in lines)
  (folder / "metrics.jsonl").write_text(text + cut)
  now = time.time()
  os.utime(folder / "metrics.jsonl", (now - 700, now - 700))
  for step, age in steps.items():
    path = folder / "checkpoints" / str(step) / "manifest.sha256"
    path.parent.mkdir(parents=True)
    path.write_text("")
    os.utime(path, (now - age, now - age))
  for name, text in files.items():
    (folder / name.replace("_", ".")).write_text(text)
  return folder


def test_a_run_that_trains(tmp_path):
  # Unfinished and damaged steps don't count; nor does a line being written.
  for name in ("40", "30.damaged", "²"):
    (tmp_path / "checkpoints" / name).mkdir(parents=True)
  found = status.read_status(write_run(tmp_path, cut='{"step": 40, "lo'))
  assert found["step"] == 30 and found["num_steps"] == 70
  assert found["loss"] != found["loss"]  # It was not finite.
  assert found["tokens_per_second"] == 1234.5
  assert found["heldout_loss"] == 7.25 and found["heldout_step"] == 20
  assert found["checkpoint"] == 30 and not found["complete"]
  assert 100 <= found["seconds_since"] < 130
  # 20 steps in 400 s; 40 are left.
  assert found["seconds_left"] == pytest.approx(800, abs=2)
  line = status.format_status(found)
  for words in ("step 30 of 70", "7.250 at 20", "checkpoint 30", "13m"):
    assert words in line


def test_before_the_first_line_and_at_the_end(tmp_path):
  found = status.read_status(write_run(tmp_path / "a", lines=[], steps={}))
  assert found["step"] is found["checkpoint"] is found["seconds_left"] is None
  assert "step 0 of 70 | no checkpoint" in status.format_status(found)
  end = [{"step": 70, "loss": 1.5}]
  found = status.read_status(
    write_run(tmp_path / "b", lines=end, steps={60: 9, 70: 1}, result_json="{}")
  )
  assert found["complete"] and found["seconds_left"] is None
  assert status.format_status(found).endswith("| complete")
  # Trained on: the result is that of the first part.
  found = status.read_status(write_run(tmp_path / "c", result_json="{}"))
  assert not found["complete"]


def test_an_address(tmp_path):
  write_run(tmp_path)
  fs = fsspec.filesystem("memory")
  for name in buckets.list_files(tmp_path):
    fs.pipe_file(f"/status/run/{name}", (tmp_path / name).read_bytes())
  found = status.read_status("memory://status/run/")
  assert found["step"] == 30 and found["checkpoint"] == 30
  assert found["seconds_since"] < 60  # When it was copied.


def test_the_verb(tmp_path, capsys):
  write_run(tmp_path / "a")
  write_run(tmp_path / "b")
  argv = ["status", str(tmp_path / "a"), str(tmp_path / "b")]
  assert main.main(argv) == 0
  assert len(capsys.readouterr().out.splitlines()) == 2
  assert main.main([*argv, "--json"]) == 0
  one, _ = map(json.loads, capsys.readouterr().out.splitlines())
  assert one["name"] == "x" and one["loss"] is None


@pytest.mark.parametrize(
  "value", ["null", "[]", '"a"', "1e999", "9" * 400, "9" * 5_000, "NaN"]
)
def test_edited_files(tmp_path, value):
  """Lines that are none are passed over; a config that is none is told."""
  cut = "".join(
    f'{{"step": {x}, "loss": {y}}}\n' for x, y in ((value, 1), (1, value))
  )
  write_run(tmp_path, cut=cut)
  (tmp_path / "metrics.jsonl").touch()
  found = status.read_status(tmp_path)
  assert found["step"] in (1, 30) and status.format_status(found)
  config = (
    f'{{"name": {value}, "objective": {{}}, "train": {{"num_steps": {value}}}}}'
  )
  (tmp_path / "config.json").write_text(config)
  with pytest.raises(ConfigError, match="holds no run"):
    status.read_status(tmp_path)


@pytest.mark.parametrize(
  "text", [None, "{", "[1]", '{"imported": {}}', "[" * 9999]
)
def test_what_is_no_run(tmp_path, text):
  if text is not None:
    (tmp_path / "config.json").write_text(text)
  with pytest.raises(ConfigError, match="holds no run"):
    status.read_status(tmp_path)
  with pytest.raises(ConfigError, match="holds no run"):
    status.read_status(tmp_path / "config.json")
