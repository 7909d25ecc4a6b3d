"""`prepare --runner=beam`: several workers write the local runner's bytes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.many_files import make_config
from helpers.prepare_corpus import prepare_corpus, read_files
from helpers.repository import ROOT
from maskedlm.cli import main
from maskedlm.core.errors import CorpusError
from maskedlm.data.corpus import store
from maskedlm.data.prepare.beam import runner


@pytest.fixture
def apache_beam():
  reason = "Apache Beam is not installed: pip install 'maskedlm[beam]'"
  return pytest.importorskip("apache_beam", reason=reason)


THREADS = ["--direct_num_workers=3", "--direct_running_mode=multi_threading"]


def test_three_workers_write_the_same_bytes(apache_beam, tmp_path, monkeypatch):
  monkeypatch.setattr(runner, "PIECE_BYTES", 1500)
  config = make_config(
    tmp_path,
    corpus__deduplicate=True,
    corpus__near_duplicates=0.7,
    tokenizer__sample_bytes=2_000,
  )
  here = prepare_corpus(config, tmp_path / "here")
  lines = []
  there = prepare_corpus(
    config,
    tmp_path / "there",
    runner.make_runner(["--runner=DirectRunner", *THREADS]),
    log=lines.append,
  )
  assert read_files(here.path) == read_files(there.path)
  report = there.meta["report"]
  assert report["equal documents dropped"] > 5
  assert report["near-duplicate documents dropped"] > 5
  assert lines[0].startswith("beam: survey: ")
  assert sorted(os.listdir(tmp_path)) == ["here", "text", "there"]


def test_an_error_of_a_worker_is_one_line(apache_beam, tmp_path):
  config = make_config(tmp_path)
  (tmp_path / "text" / "z.txt").write_bytes(b"\x1f\x8b gzip")
  with pytest.raises(CorpusError) as error:
    prepare_corpus(config, tmp_path / "corpus", runner.make_runner(THREADS))
  message = str(error.value)
  assert message.startswith(f"{tmp_path}/text/z.txt is gzip")
  assert "\n" not in message and "while running" not in message


def test_without_apache_beam(monkeypatch, tmp_path, capsys):
  monkeypatch.setitem(sys.modules, "apache_beam.options", None)
  config = tmp_path / "config.py"
  config.write_text(
    "from maskedlm import config\n\n\ndef get_config():\n"
    "  return config.default()\n"
  )
  verb = ["prepare", f"--config={config}", f"--out={tmp_path / 'corpus'}"]
  assert main.main([*verb, "--runner=beam"]) == 2
  message = capsys.readouterr().err
  assert "pip install 'maskedlm[beam]'" in message
  assert message.count("\n") == 1
  assert main.main([*verb, "--runner=bean"]) == 2
  assert 'did you mean "beam"' in capsys.readouterr().err
  assert main.main([*verb, "--runner=FlinkRunner"]) == 2
  assert "--beam.runner=FlinkRunner" in capsys.readouterr().err
  assert main.main([*verb, "--beam.runner=FlinkRunner"]) == 2
  assert "give --runner=beam" in capsys.readouterr().err


CONFIG = """
from maskedlm.config import defaults
from maskedlm.data.prepare.beam import runner
runner.PIECE_BYTES = 1500


def get_config():
  config = defaults.default()
  config.corpus.update(
    source="text:{folder}/text", sentences="lines", num_workers=1,
    shard_tokens=500, near_duplicates=0.7)
  config.tokenizer.vocab_size = 80
  return config
"""


@pytest.mark.slow
def test_killed_processes_continue(apache_beam, tmp_path):
  make_config(tmp_path)
  config = tmp_path / "config.py"
  config.write_text(CONFIG.format(folder=tmp_path))
  verb = [sys.executable, "-m", "maskedlm", "prepare", f"--config={config}"]
  workers = [
    "--runner=beam",
    "--beam.runner=DirectRunner",
    "--beam.direct_num_workers=2",
    "--beam.direct_running_mode=multi_processing",
  ]
  here, there = tmp_path / "here", tmp_path / "there"
  subprocess.run([*verb, f"--out={here}"], cwd=ROOT, check=True)
  command = [*verb, f"--out={there}", *workers]
  process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
  encoded = tmp_path / "there.beam" / "encoded"
  while not encoded.exists():
    assert process.poll() is None
    time.sleep(0.01)
  os.killpg(process.pid, signal.SIGKILL)
  process.wait()
  assert not there.exists()
  again = subprocess.run(
    command, cwd=ROOT, check=True, capture_output=True, text=True
  )
  assert "beam: survey: 0 of " in again.stdout
  assert read_files(here) == read_files(there)
  assert store.verify_corpus(there) == []
