"""benchmarks/run.py: whatever one benchmark does, the others are run."""

import importlib.util
import json
import pathlib
import sys

import pytest

BENCHMARKS = pathlib.Path(__file__).parent.parent / "benchmarks"
SCRIPTS = {
  "good.py": "import sys, json\n"
  "print('| it | works |')\n"
  "json.dump([{'found': 7}], open(sys.argv[1], 'w'))\n",
  "bad.py": "print('a lead')\nraise SystemExit('it failed')\n",
  "slow.py": "import time\nprint('began')\ntime.sleep(60)\n",
}


@pytest.fixture
def runner(monkeypatch, tmp_path):
  spec = importlib.util.spec_from_file_location("r", BENCHMARKS / "run.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  for name, text in SCRIPTS.items():
    (tmp_path / name).write_text(text)
  monkeypatch.setattr(module, "HERE", tmp_path)
  monkeypatch.setattr(module, "LEAST", 0.0)
  made = module.Benchmark
  chosen = (
    made("bad", "bad.py", 1),
    made("slow", "slow.py", 0.02),
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
    "stopped after 1 s",
    "not run: give --checkpoint",
    "ok",
  ]
  assert records[3]["numbers"] == [{"found": 7}]
  text = (out / "results.md").read_text()
  assert "it failed" in text and "began" in text and "| it | works |" in text


def test_no_time_is_left(runner, monkeypatch, tmp_path):
  monkeypatch.setattr(runner, "LEAST", 20.0)
  argv = ["run.py", "--device=cpu", f"--out={tmp_path}", "--minutes=0.1"]
  monkeypatch.setattr(sys, "argv", [*argv, "--only=good"])
  assert runner.main() == 1
  assert "not run: no time is left" in (tmp_path / "results.md").read_text()


def test_every_script_is_there_and_has_a_quick_form():
  spec = importlib.util.spec_from_file_location("r", BENCHMARKS / "run.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  for chosen in module.BENCHMARKS.values():
    for each in chosen:
      for command in (each.command, module.QUICK[each.name]):
        script, *options = command.split()
        text = (BENCHMARKS / script).read_text()
        for option in options:
          if option.startswith("--"):
            assert f'"{option}"' in text, (script, option)
