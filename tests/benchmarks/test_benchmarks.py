"""Benchmarks: whatever one does, the others are run and the rest is told."""

import argparse
import importlib.util
import json
import math
import sys

import numpy as np
import pytest

from helpers.repository import ROOT

BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = {
  "good.py": "import sys, json\n"
  "print('| it | works |')\n"
  "json.dump([{'found': 7}], open(sys.argv[1], 'w'))\n",
  "bad.py": "print('a lead')\nraise SystemExit('it failed')\n",
  "slow.py": "import sys, time\n"
  "open(sys.argv[1], 'w').write('[{\"found\": 3}]')\n"
  "print('began')\ntime.sleep(60)\n",
}


def load(name, monkeypatch):
  monkeypatch.syspath_prepend(BENCHMARKS)  # They import each other.
  spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture
def runner(monkeypatch, tmp_path):
  module = load("run", monkeypatch)
  for name, text in SCRIPTS.items():
    (tmp_path / name).write_text(text)
  monkeypatch.setattr(module, "HERE", tmp_path)
  monkeypatch.setattr(module, "LEAST", 0.0)
  made = module.Benchmark
  chosen = (
    made("bad", "bad.py", 1),
    made("slow", "slow.py {json}", 0.05),
    made("embed", "good.py {checkpoint}", 1),
    made("good", "good.py {json}", 1),
  )
  monkeypatch.setattr(module, "BENCHMARKS", {"cpu": chosen})
  return module


def test_one_that_fails_or_hangs_stops_no_other(runner, monkeypatch, tmp_path):
  out = tmp_path / "out"
  monkeypatch.setattr(sys, "argv", ["run.py", "--device=cpu", f"--out={out}"])
  assert runner.main() == 1
  records = json.loads((out / "results.json").read_text())
  assert [r["status"] for r in records] == [
    "exit 1",
    "stopped after 3 s",
    "not run: give --checkpoint",
    "ok",
  ]
  assert records[1]["numbers"] == [{"found": 3}]  # What there was.
  assert records[3]["numbers"] == [{"found": 7}]
  text = (out / "results.md").read_text()
  assert "it failed" in text and "began" in text and "| it | works |" in text
  assert sorted(p.name for p in out.iterdir()) == ["results.json", "results.md"]


def test_no_time_is_left(runner, monkeypatch, tmp_path):
  monkeypatch.setattr(runner, "LEAST", 20.0)
  argv = ["run.py", "--device=cpu", f"--out={tmp_path}", "--minutes=0.1"]
  monkeypatch.setattr(sys, "argv", [*argv, "--only=good"])
  assert runner.main() == 1
  assert "not run: no time is left" in (tmp_path / "results.md").read_text()


# Fails unless what runs it knows better.
FLAKY = """
import json, os, sys
path, flags = sys.argv[1], os.environ.get("XLA_FLAGS", "")
if "autotuner=false" not in flags and "flaky" in path:
  sys.exit(1)
json.dump([flags.split()], open(path, "w"))
"""


@pytest.mark.parametrize("helps", [True, False])
def test_should_the_first_fail_on_a_gpu_it_is_run_again(
  helps, runner, monkeypatch, tmp_path, capsys
):
  (tmp_path / "flaky.py").write_text(FLAKY)
  made = runner.Benchmark
  first = (
    made("flaky", "flaky.py {json}", 1) if helps else made("b", "bad.py", 1)
  )
  chosen = first, made("next", "flaky.py {json}", 1), made("bad", "bad.py", 1)
  monkeypatch.setattr(runner, "BENCHMARKS", {"gpu": chosen})
  monkeypatch.setenv("XLA_FLAGS", "--mine=1")
  out = tmp_path / "a folder"  # As OUT may be.
  monkeypatch.setattr(sys, "argv", ["run.py", "--device=gpu", f"--out={out}"])
  assert runner.main() == 1
  records = json.loads((out / "results.json").read_text())
  off = runner.NO_AUTOTUNER
  if helps:  # Then the rest are run so too; nothing else is run again.
    names = ["flaky", f"flaky {off}", f"next {off}", f"bad {off}"]
    numbers = [None, [["--mine=1", off]], [["--mine=1", off]], None]
  else:
    names = ["b", f"b {off}", "next", "bad"]
    numbers = [None, None, [["--mine=1"]], None]
  assert [r["name"] for r in records] == names
  assert [r["numbers"] for r in records] == numbers
  # All that was found is printed too: files may not come back.
  assert (out / "results.md").read_text() in capsys.readouterr().out


def test_every_script_is_there_and_has_a_quick_form(monkeypatch):
  module = load("run", monkeypatch)
  for chosen in module.BENCHMARKS.values():
    for each in chosen:
      for command in (each.command, module.QUICK[each.name]):
        script, *options = command.split()
        text = (BENCHMARKS / script).read_text()
        for option in options:
          if option.startswith("--"):
            assert f'"{option}"' in text, (script, option)


def test_how_far_apart_by_hand(monkeypatch):
  module = load("attention", monkeypatch)
  y = np.array([[3.0, 4.0], [0.0, 2.0]])
  assert module.apart(y, y) == 0
  # The first row is off by 1 of 5, the second by 1 of 2.
  assert module.apart(np.add(y, [[0, 1], [1, 0]]), y) == 0.5
  assert math.isnan(module.apart(y * [[1.0], [math.nan]], y))


PEER = """
import json, sys
import numpy as np
rows = np.load(sys.argv[2])["labels"].shape
print(json.dumps({"device": "cpu"}), flush=True)
for line in sys.stdin:
  asked = json.loads(line)
  if asked["name"] == "ends":
    sys.exit(3)
  found = {"seconds": asked["count"] / 2, "cpu": 0.25, "loss": rows[0]}
  bad = {"error": "TypeError: why"}
  print(json.dumps(bad if asked["name"] == "bad" else found), flush=True)
"""


def test_the_peer_has_a_process_of_its_own(monkeypatch, tmp_path):
  module = load("peer_process", monkeypatch)
  monkeypatch.setattr(module, "SCRIPT", tmp_path / "peer.py")
  monkeypatch.setattr(module, "lacking", lambda: "")
  module.SCRIPT.write_text(PEER)
  batches = [{"labels": np.zeros([5, 7], int)}] * 3
  with module.start(module.Shape(1, 2, 3, 4, 5), batches) as peer:
    assert peer.device == "cpu"
    assert peer.run("eager", 3) == module.Taken(1.5, 0.25, 3)
    with pytest.raises(RuntimeError, match="TypeError: why"):
      peer.run("bad", 1)
    assert peer.run("eager", 2).seconds == 1.0
    with pytest.raises(RuntimeError, match=r"peer\.py ended, exit 3"):
      peer.run("ends", 1)
  monkeypatch.setattr(module, "lacking", lambda: "torch isn't installed")
  absent = module.start(module.Shape(1, 2, 3, 4, 5), batches)
  with pytest.raises(RuntimeError, match="torch isn't"), absent:
    pass


def test_a_start_is_over_with_the_first_step(monkeypatch, tmp_path):
  module = load("start", monkeypatch)
  script = tmp_path / "train.py"
  script.write_text(
    "import sys, time\n"
    "print('a lead', file=sys.stderr)\n"
    "print('step 1/3', file=sys.stderr, flush=True)\n"
    "time.sleep(60)\n"
  )
  command = [sys.executable, str(script)]
  clock, cores = module.to_first_step(command, tmp_path)
  assert 0 < clock < 30 and 0 <= cores < 30
  script.write_text("raise SystemExit('no such thing')")
  with pytest.raises(SystemExit, match="no such thing"):
    module.to_first_step(command, tmp_path)


def test_a_file_that_cannot_be_written_is_told_first(
  monkeypatch, tmp_path, capsys
):
  writable = load("writable", monkeypatch)
  parser = argparse.ArgumentParser()
  parser.add_argument("--json", **writable.TABLE)
  assert parser.parse_args([]).json is None
  path = tmp_path / "x.json"
  assert parser.parse_args([f"--json={path}"]).json == path
  for wrong in (tmp_path / "missing" / "x.json", tmp_path):
    with pytest.raises(SystemExit):
      parser.parse_args([f"--json={wrong}"])
    assert f"argument --json: {wrong}: a folder, or" in capsys.readouterr().err
