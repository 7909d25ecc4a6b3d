"""Trackers: what they get, whether they fail, and each library offline."""

import contextlib
import importlib.util
import json
import sqlite3
import struct
import threading

import pytest

from helpers import toy
from helpers.toy_runs import logged_lines, make_config, run
from maskedlm.core.errors import ConfigError
from maskedlm.training import trackers


def use(monkeypatch, open_one, name="wandb"):
  """Makes open_one(config, run) the only tracker, whatever is installed."""
  monkeypatch.setattr(trackers, "TRACKERS", {name: open_one})
  monkeypatch.setattr(trackers, "check_installed", lambda name: None)


def test_a_tracker_gets_what_the_log_gets(tmp_path, mesh, monkeypatch):
  opened, got, closed = [], [], []

  def open_one(config, run):
    opened.append((config["name"], config["train"]["num_steps"], run))
    return trackers.Tracker(
      run or "r7",
      lambda *item: got.append(item),
      lambda: closed.append(len(got)),
    )

  use(monkeypatch, open_one)
  c = make_config(tracker="wandb")
  run(c, toy.make_task(), tmp_path, mesh)
  lines = [(line.pop("step"), line) for line in logged_lines(tmp_path)]
  assert got == [(step, pytest.approx(line)) for step, line in lines]
  assert closed == [len(got)]
  c.train.num_steps = 12
  run(c, toy.make_task(), tmp_path, mesh)
  assert opened == [("maskedlm", 10, ""), ("maskedlm", 12, "r7")]
  assert {step for step, _ in got[closed[0] :]} == {12}


def test_a_tracker_that_fails_is_one_warning(
  tmp_path, mesh, monkeypatch, capsys
):
  calls = []

  def write(step, values):
    calls.append(step)
    if len(calls) == 2:
      raise OSError("the server is gone\nand more")

  def open_one(config, run):
    return trackers.Tracker("r", write, lambda: calls.append("closed"))

  use(monkeypatch, open_one)
  result = run(make_config(tracker="wandb"), toy.make_task(), tmp_path, mesh)
  assert result.step == 10 and calls == [2, 3]
  (line,) = [x for x in capsys.readouterr().err.splitlines() if "tracker" in x]
  assert "train.tracker='wandb'" in line
  assert line.endswith("OSError: the server is gone")


def test_a_tracker_that_hangs_holds_up_nothing(tmp_path, monkeypatch, capsys):
  forever = threading.Event()
  use(
    monkeypatch,
    lambda *_: trackers.Tracker("r", lambda *_: forever.wait(), lambda: None),
  )
  monkeypatch.setattr(trackers, "CLOSING", 0.1)
  config = {"name": "toy", "train": {"tracker": "wandb"}}
  made = trackers.open_tracker(tmp_path, config, resumed=False)
  for step in range(3):
    made.write(step, {"loss": 1.0})
  made.close()
  assert "TimeoutError" in capsys.readouterr().err
  forever.set()


def test_only_a_new_run_insists_on_its_tracker(tmp_path, monkeypatch, capsys):
  def open_one(config, run):
    raise PermissionError("no account\nlog in")

  use(monkeypatch, open_one)
  config = {"name": "toy", "train": {"tracker": "wandb"}}
  with pytest.raises(ConfigError, match=r"tracker='wandb' .*no account;"):
    trackers.open_tracker(tmp_path, config, resumed=False)
  assert trackers.open_tracker(tmp_path, config, resumed=True) is None
  assert "PermissionError: no account" in capsys.readouterr().err
  assert not (tmp_path / "tracker.json").exists()


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  trackers.check_installed("")
  with pytest.raises(ConfigError, match=r"pip install 'maskedlm\[mlflow\]'"):
    trackers.check_installed("mlflow")


def run_twice(workdir, mesh, tracker):
  """Runs 6 steps, then to step 10; returns {(name, step): value} of the log."""
  c = make_config(tracker=tracker, num_steps=6, log_every=3)
  c.name = "odd"
  run(c, toy.make_task(), workdir, mesh)
  c.train.num_steps = 10
  run(c, toy.make_task(), workdir, mesh)
  lines = logged_lines(workdir)
  values = {
    (name, line["step"]): x for line in lines for name, x in line.items()
  }
  return {key: x for key, x in values.items() if key[0] != "step"}


def test_mlflow(tmp_path, mesh, monkeypatch):
  mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is missing")
  uri = f"sqlite:///{tmp_path}/mlflow.db"
  monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "exp")
  monkeypatch.setattr(mlflow, "get_tracking_uri", lambda: uri)
  mlflow.set_tracking_uri(uri)
  logged = run_twice(tmp_path / "run", mesh, "mlflow")
  client = mlflow.MlflowClient()
  experiment = client.get_experiment_by_name("exp").experiment_id
  (found,) = client.search_runs([experiment])
  assert found.info.run_name == "odd" and found.info.status == "FINISHED"
  assert found.data.params["optimizer.learning_rate"] == "0.01"
  assert found.data.params["seed"] == "0"
  names = {name for name, _ in logged}
  got = {
    (name, x.step): x.value
    for name in names
    for x in client.get_metric_history(found.info.run_id, name)
  }
  assert got == pytest.approx(logged)


def test_trackio(tmp_path, mesh, monkeypatch, capsys):
  pytest.importorskip("trackio", reason="the extra trackio is missing")
  from trackio import sqlite_storage, utils

  for module in (sqlite_storage, utils):
    monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
  logged = run_twice(tmp_path / "run", mesh, "trackio")
  assert not capsys.readouterr().out
  name = json.loads((tmp_path / "run" / "tracker.json").read_text())["trackio"]
  assert name.startswith("odd-")
  (path,) = (tmp_path / "trackio").rglob("maskedlm*.db")
  with contextlib.closing(sqlite3.connect(path)) as db:
    rows = db.execute("SELECT run_name, step, metrics FROM metrics").fetchall()
  assert {row[0] for row in rows} == {name}
  got = {
    (metric, step): value
    for _, step, text in rows
    for metric, value in json.loads(text).items()
  }
  assert got == pytest.approx(logged)


def test_wandb_offline(tmp_path, mesh, monkeypatch):
  pytest.importorskip("wandb", reason="the extra wandb is missing")
  monkeypatch.setenv("WANDB_MODE", "offline")
  monkeypatch.setenv("WANDB_DIR", str(tmp_path))
  monkeypatch.setenv("WANDB_SILENT", "true")
  logged = run_twice(tmp_path / "run", mesh, "wandb")
  run_id = json.loads((tmp_path / "run" / "tracker.json").read_text())["wandb"]
  parts = sorted((tmp_path / "wandb").glob(f"offline-run-*-{run_id}"))
  assert len(parts) == 2
  got = {}
  for part in parts:
    (file,) = part.glob("*.wandb")
    got |= wandb_history(file)
  assert got == pytest.approx(logged)


def wandb_history(path):
  """Returns {(name, step): value} in the file of an offline run.

  After 7 bytes it has blocks of 32 KiB with parts of records, each with a
  checksum of 4 bytes, a size of 2 and a type of 1: whole, first, middle, last.
  """
  from wandb.proto import wandb_internal_pb2

  data, at, record, got = path.read_bytes(), 7, b"", {}
  while at + 7 <= len(data):
    size, kind = struct.unpack("<HB", data[at + 4 : at + 7])
    record += data[at + 7 : at + 7 + size]
    at += 7 + size
    if 32768 - at % 32768 < 7:  # Too little for another part.
      at += 32768 - at % 32768
    if kind in (1, 4):
      found = wandb_internal_pb2.Record.FromString(record).history.item
      values = {
        x.key or "/".join(x.nested_key): json.loads(x.value_json) for x in found
      }
      step, record = values.get("_step"), b""
      got |= {(n, step): x for n, x in values.items() if n[0] != "_"}
  return got
