"""Benchmarks: whatever one does, the others are run and the rest is told."""

import importlib.util
import json
import math
import pathlib
import sys

import numpy as np
import pytest

BENCHMARKS = pathlib.Path(__file__).parent.parent / "benchmarks"
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


@pytest.mark.parametrize(
  ("script", "said"),
  [
    ("print('a line'); print('[[\"triton\", 0.5, 0.01]]')", ""),
    ("raise SystemExit('illegal address')", "not tried: exit 1"),
    ("import time; time.sleep(60)", "not tried: over 2 s"),
  ],
  ids=["ok", "crashes", "hangs"],
)
def test_ways_of_attention_are_tried_apart(
  script, said, monkeypatch, tmp_path, capsys
):
  module = load("goal_runs", monkeypatch)
  (tmp_path / "attention.py").write_text(script)
  monkeypatch.setattr(module, "HERE", tmp_path)
  monkeypatch.setattr(module, "TRY_SECONDS", 2.0 if "sleep" in script else 60.0)
  monkeypatch.setattr(module.jax, "default_backend", lambda: "gpu")
  tried = tmp_path / "tried.json"
  bench = module.Bench({}, 1, tried)
  shape = module.Shape(2, 48, 3, 24, 5)
  (way,) = module.tried_attention(bench, shape)
  assert said in capsys.readouterr().out
  if said:
    assert way.name == "xla" and math.isnan(way.seconds)
  else:
    assert way == module.Tried("triton", 0.5, 0.01)
  # It isn't tried again: the other parts read what was found.
  (tmp_path / "attention.py").unlink()
  assert module.tried_attention(bench, shape)[0].name == way.name
  assert list(json.loads(tried.read_text())) == ["5,24,3,16"]


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
