"""Buckets instead of folders: addresses, and runs stored in a bucket.

fake_gcs.py serves the bucket over HTTP, as Google would, to TensorStore and
gcsfs.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import fsspec
import pytest

from helpers import checkpoint_states, fake_gcs, finetune_runs, host_processes
from helpers import tiny as tiny_run
from maskedlm.cli import main
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError, StorageError
from maskedlm.data.corpus import concat, store, streamed
from maskedlm.data.prepare import local
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.pretraining.initial import init_from
from maskedlm.runtime import buckets
from maskedlm.training import status
from maskedlm.training.checkpoints import files, load, manager, manifest

# Addresses and folders.


def test_other_addresses_are_refused(monkeypatch):
  for path in ("az://bucket/run", pathlib.Path("az://bucket/run")):
    with pytest.raises(ConfigError, match=r"az://bucket/run: .* Mount"):
      buckets.origin(path)

  def absent(address):
    raise ImportError("Please install gcsfs")

  monkeypatch.setattr(fsspec.core, "url_to_fs", absent)
  for kind, extra in (("gs", "gcs"), ("s3", "s3")):
    with pytest.raises(ConfigError, match=rf"install 'maskedlm\[{extra}\]'"):
      buckets.origin(f"{kind}://bucket-of-mine/run")


def test_folders_are_left_alone(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path / "home"))
  for given, path in (("x", tmp_path / "x"), ("~/x", tmp_path / "home" / "x")):
    with buckets.workdir(given) as folder:
      assert folder == buckets.folder(given) == buckets.origin(given) == path
    assert buckets.local_copy(given).resolve() == path
  for address, copy in (
    ("gs://bucket/corpus", ", gcloud storage rsync --recursive FOLDER gs://"),
    ("s3://bucket/corpus", ", aws s3 sync FOLDER s3://"),
    ("ftp://host/corpus", r"\.$"),
  ):
    with pytest.raises(ConfigError, match=f"on this machine; copy .*{copy}"):
      buckets.folder(address)


@pytest.mark.parametrize(
  ("raised", "said", "code"),
  [
    (ConnectionRefusedError(111, ""), "check that its server runs, then", 74),
    (OSError(24, ""), "allow more open files", 74),
    (OSError("no libjvm"), "no libjvm.*or mount the storage", 74),
    (NotImplementedError("none"), "mount the storage, and give the folder", 2),
  ],
)
def test_an_address_of_another_kind(monkeypatch, raised, said, code):
  def fails(address, **options):
    raise raised

  monkeypatch.setattr(fsspec.core, "url_to_fs", fails)
  with pytest.raises((ConfigError, StorageError), match=said) as caught:
    buckets.filesystem("other://host/x" + said)
  assert caught.value.exit_code == code
  assert "make room" not in str(caught.value)


def test_a_file_is_copied_with_the_files_it_needs():
  root, fs = "/one_file", fsspec.filesystem("memory")
  for name in ("a.txt", "b.json", "c.json"):
    fs.pipe_file(f"{root}/{name}", name.encode())
  copy = buckets.local_copy(f"memory:/{root}/a.txt", beside=["b.json", "none"])
  assert copy.read_text() == "a.txt"
  assert buckets.list_files(copy.parent) == ["a.txt", "b.json"]
  with pytest.raises(ConfigError, match="nothing is there"):
    buckets.local_copy(f"memory:/{root}/none.json")


def test_an_address_is_not_created_as_a_folder(tmp_path, monkeypatch, capsys):
  config = pathlib.Path("configs", "quickstart.py").resolve()
  monkeypatch.chdir(tmp_path)
  for argv in (
    ["prepare", "--verify", "gs://b/corpus"],
    ["tokenizer", f"--config={config}", "--out=gs://b/tok"],
  ):
    assert main.main(argv) == 2
    assert "expected a folder on this machine" in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


# Checkpoints in a bucket, in this process.


@pytest.fixture(scope="module")
def gcs():
  pytest.importorskip("gcsfs", reason="needs `pip install gcsfs`")
  buckets.filesystem.cache_clear()
  with fake_gcs.serve() as served, pytest.MonkeyPatch.context() as patch:
    for name, value in served.environment.items():
      patch.setenv(name, value)
    yield served


@pytest.fixture(scope="module")
def saved(gcs):
  """Returns the objects of a run that has saved steps 1, 2, 3."""
  checkpoint_states.save_steps("gs://bucket/saved", 1, 2, 3)
  return {key: gcs.objects[key] for key in keys(gcs, "gs://bucket/saved")}


@pytest.fixture
def run_at(gcs, saved, request):
  """Returns the address of a copy of `saved`."""
  gcs.refused.clear()
  name = re.sub(r"[^a-z0-9]+", "_", request.node.name)
  for key, made in saved.items():
    gcs.objects[key.replace("/saved/", f"/{name}/", 1)] = made
  return f"gs://bucket/{name}"


def keys(gcs, address, *parts):
  start = "/".join([address.removeprefix("gs://"), *map(str, parts), ""])
  return sorted(key for key in gcs.objects if key.startswith(start))


def restored(address, step, log=None):
  lines = [] if log is None else log
  with checkpoint_states.opened(address, log=lines) as checkpoints:
    state, _ = checkpoints.restore(
      checkpoint_states.like(checkpoint_states.make_state(0))
    )
  checkpoint_states.assert_same(state, checkpoint_states.make_state(step))
  return lines


def test_checkpoints_in_a_bucket(gcs, run_at):
  assert not restored(run_at, 3)
  with checkpoint_states.opened(run_at, keep_last=1) as checkpoints:
    with pytest.raises(manager.CheckpointError, match="already has step 3"):
      checkpoints.save(3, checkpoint_states.make_state(3), {}, metric=None)
    checkpoints.save(5, checkpoint_states.make_state(5), {"x": 1}, metric=0.5)
    checkpoints.wait()
    assert checkpoints.steps() == [5]
  assert {key.split("/")[3] for key in keys(gcs, run_at)} == {"5", ".lock"}
  params, meta = load.load_params(run_at, step="best")
  assert "encoder" in params and meta["x"] == 1
  with pytest.raises(manager.CheckpointError, match="has no checkpoint"):
    load.load_params("gs://bucket/nothing")


def test_the_status_of_a_run_in_a_bucket(gcs, run_at):
  place = buckets.origin(run_at)
  (place / "config.json").write_text('{"task": {}, "train": {"num_steps": 9}}')
  (place / "metrics.jsonl").write_text('{"step": 3, "loss": 1.5}\n')
  found = status.read_status(f"{run_at}/")
  assert found["step"] == found["checkpoint"] == 3 and found["loss"] == 1.5
  assert found["written"].startswith("2026-01-01T00:00:00")


def test_every_damaged_object_is_found(gcs, run_at):
  path = buckets.origin(run_at) / "checkpoints" / "3"
  names = keys(gcs, run_at, "checkpoints", 3)
  present = [key for key in names if gcs.objects[key][0]]  # Not the marker.
  assert len(present) > 10 and manifest.find_damage(path) is None
  for key in present[::4]:
    content, generation = gcs.objects.pop(key)
    assert key.rpartition("/")[2] in manifest.find_damage(path)
    half = len(content) // 2
    flipped = bytes([content[half] ^ 1])
    gcs.objects[key] = (content[:half] + flipped + content[half + 1 :], 7)
    assert key.rpartition("/")[2] in manifest.find_damage(path)
    gcs.objects[key] = (content, generation)
  assert manifest.find_damage(path) is None


@pytest.mark.parametrize(
  ("part", "expected"),
  [
    ("/d/", "checkpoint 3 is not used"),
    # The manifest is written last, so a kill leaves none.
    ("/manifest.sha256", "checkpoint 3 is not used: manifest.sha256 is"),
  ],
)
def test_a_damaged_step_falls_back_and_is_saved_anew(
  gcs, run_at, part, expected
):
  key = next(k for k in keys(gcs, run_at, "checkpoints", 3) if part in k)
  if part == "/d/":
    gcs.objects[key] = (b"", 9)
  else:
    del gcs.objects[key]
  log = restored(run_at, 2)
  assert expected in log[0]
  if part == "/d/":
    assert log[1] == "falling back to checkpoint 2"
    assert keys(gcs, run_at, "checkpoints", "3.damaged")
  checkpoint_states.save_steps(run_at, 3)
  assert not restored(run_at, 3)


@pytest.mark.parametrize(
  ("file", "error", "kind"),
  [
    # Its error is a ValueError, as is that of a damaged record.
    (manifest.MANIFEST, PermissionError(13, "denied"), ConfigError),
    ("meta/metadata", PermissionError(13, "denied"), ConfigError),
    (manifest.MANIFEST, ConnectionError("no such name"), StorageError),
  ],
)
def test_a_bucket_that_cant_be_read_is_not_damage(
  gcs, run_at, monkeypatch, file, error, kind
):
  place, before = type(buckets.origin(run_at)), dict(gcs.objects)
  read = place.read_text

  def read_text(path, *args):
    if os.fspath(path).endswith(file):
      raise error
    return read(path, *args)

  with monkeypatch.context() as patch:
    patch.setattr(place, "read_text", read_text)
    for call in (restored, load.load_params):
      with pytest.raises(kind, match="can't be reached"):
        call(run_at, step=3)
  changed = {k for k in before if gcs.objects.get(k) != before[k]}
  assert {key.rpartition("/")[2] for key in changed} == {".lock"}
  assert not restored(run_at, 3)


def frees_buffers() -> bool:
  """Returns whether Python survives the end of a BytesIO with its buffer.

  Python 3.12.1 crashes, which aiohttp's failed uploads run into.
  """
  program = """
import gc, io
for _ in range(200):
  file = io.BytesIO(bytes(1000))
  cycle = [file, file.getbuffer()]
  cycle.append(cycle)
  del file, cycle
  gc.collect()
"""
  command = [sys.executable, "-c", program]
  return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(
  sys.version_info[:2] == (3, 12) and not frees_buffers(),
  reason="this Python crashes when it frees the buffer of a BytesIO",
)
def test_a_refused_write_is_one_error(gcs, run_at):
  gcs.refused.add("/checkpoints/4/params")
  checkpoints = manager.open_checkpoints(
    run_at, keep_last=9, keep_best=0, log=print
  )
  with pytest.raises(ConfigError) as caught:
    checkpoints.save(4, checkpoint_states.make_state(4), {}, metric=None)
    checkpoints.wait()
  assert "saving step 4" in str(caught.value) and "\n" not in str(caught.value)
  assert "Steps [1, 2, 3] are intact" in str(caught.value)
  assert caught.value.exit_code == 2
  with contextlib.suppress(ConfigError):
    checkpoints.close()
  gcs.refused.add(".lock")
  with pytest.raises(ConfigError, match="can't be reached"):
    restored(run_at, 3)
  gcs.refused.clear()
  # The failing run deletes what there is of step 4; what its other threads
  # write later is found by the next one, which then falls back.
  log = restored(run_at, 3)
  assert not log or log[1] == "falling back to checkpoint 3"


def test_only_the_newest_run_may_write(gcs, run_at):
  with checkpoint_states.opened(run_at) as first:
    with checkpoint_states.opened(run_at) as second:
      second.save(4, checkpoint_states.make_state(4), {}, metric=None)
      second.wait()
      before = dict(gcs.objects)
      with pytest.raises(manager.CheckpointError, match="another run"):
        first.save(5, checkpoint_states.make_state(5), {}, metric=None)
    assert gcs.objects == before


def test_a_mirror_is_filled_and_uploaded(gcs):
  address = "gs://bucket/mirrored/run"
  with buckets.workdir(address) as folder:
    assert folder.name == "run" and not gcs.objects.get("bucket/mirrored/run")
    (folder / "config.json").write_text("{}")
    (folder / "sst2" / "tensorboard").mkdir(parents=True)
    (folder / "sst2" / "tensorboard" / "events").write_bytes(b"\0")
    assert str(buckets.origin(folder / "sst2")) == f"{address}/sst2"
    buckets.upload(folder)
    (folder / "config.json").write_text("[]")
  assert not folder.exists()
  assert {k.partition("run/")[2]: gcs.objects[k][0] for k in keys(gcs, address)
  } == {"config.json": b"[]", "sst2/tensorboard/events": b"\0"}  # fmt: skip
  before = dict(gcs.objects)
  with (
    pytest.raises(ValueError, match="bug"),
    buckets.workdir(address) as folder,
  ):
    assert (folder / "config.json").read_text() == "[]"
    assert not (folder / "sst2").exists()  # Mirrors never download it.
    raise ValueError("a bug")
  assert gcs.objects == before  # Nothing is written after an error.
  copy = buckets.local_copy(buckets.origin(address))
  assert (copy / "sst2" / "tensorboard" / "events").read_bytes() == b"\0"
  shutil.rmtree(copy)


# Pretraining from a run in a bucket.


def put(gcs, folder, address):
  for name in buckets.list_files(folder):
    content = (folder / name).read_bytes()
    gcs.objects[f"{address.removeprefix('gs://')}/{name}"] = content, 1


def test_init_from_an_address_is_the_same_on_every_host(gcs, tmp_path):
  address = "gs://bucket/encoder"
  put(gcs, finetune_runs.make_encoder(tmp_path / "encoder"), address)
  adopted = []
  for _ in range(2):
    config = defaults.default("roberta")
    config.init_from = address
    init_from.copy_architecture(config)
    adopted.append(config.to_json_best_effort())
  assert adopted[0] == adopted[1]
  assert config.tokenizer.path == f"{address}/tokenizer"
  assert config.model.width == 24
  # The address is resolved when the tokenizer is loaded.
  made = local.make_tokenizer(config, None, log=print)
  assert made.sha256 == load_tokenizer(tmp_path / "encoder/tokenizer").sha256
  (file,) = (tmp_path / "encoder" / "tokenizer").iterdir()
  one = load_tokenizer(f"{address}/tokenizer/{file.name}")
  assert one.sha256 == made.sha256


@pytest.mark.parametrize("name", ["none", "encoder/tokenizer/none.json"])
def test_an_address_without_a_tokenizer_is_a_one_line_error(gcs, name):
  gcs.objects["bucket/encoder/tokenizer/tokenizer.json"] = b"{}", 1
  with pytest.raises(ConfigError, match=f"gs://bucket/{name}") as caught:
    load_tokenizer(f"gs://bucket/{name}")
  assert "\n" not in str(caught.value)


# Whole runs, in processes of their own.


@pytest.mark.slow
def test_killed_hosts_leave_a_run_that_one_host_continues(gcs, tmp_path):
  address = "gs://bucket/killed"
  hosts = host_processes.start(
    2, *host_processes.TOY, "train", address, 20, 0.2, **gcs.environment
  )
  host_processes.wait_for("step 10/", hosts[0])
  hosts[0].send_signal(signal.SIGKILL)
  host_processes.finish(hosts)
  saved = buckets.origin(address) / "checkpoints"
  # Saved by the clock after 4 and 8 steps, and after 5 when it is evaluated.
  assert files.complete_steps(saved)[-1] in (4, 5, 8, 10)
  host_processes.run(
    1, *host_processes.TOY, "train", address, 20, devices=2, **gcs.environment
  )
  host_processes.run(1, *host_processes.TOY, "train", tmp_path, 20, devices=2)
  assert files.complete_steps(saved)[-1] == 20
  log = gcs.objects["bucket/killed/metrics.jsonl"][0]
  (tmp_path / "bucket").mkdir()
  (tmp_path / "bucket" / "metrics.jsonl").write_bytes(log)
  # Log lines are uploaded before their checkpoint, so none is missing.
  assert host_processes.losses(tmp_path / "bucket") == host_processes.losses(
    tmp_path
  )


def test_a_corpus_in_a_bucket_is_streamed(gcs, tiny, tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  put(gcs, tiny[1], "gs://bucket/corpora/streamed")
  corpora = (
    store.open_corpus(tiny[1]),
    streamed.open_corpus(
      "gs://bucket/corpora/streamed", cache_gb=1.0, log=print
    ),
  )
  one, other = (concat.take_all(corpus.train.tokens) for corpus in corpora)
  assert one.tolist() == other.tolist() and len(one) > 10_000
  assert not list(tmp_path.rglob("*.tokens.npy"))
  # A file that was cut; its blocks are asked for again.
  shutil.rmtree(tmp_path / "maskedlm" / "blocks")
  name = "bucket/corpora/streamed/train-00000.tokens.npy"
  gcs.objects[name] = (gcs.objects[name][0][:100], gcs.objects[name][1])
  tokens = corpora[1].train.tokens.arrays[0]
  with pytest.raises(ConfigError, match=f"gs://{name}: bytes"):
    tokens[[len(tokens) - 1]]


@pytest.mark.slow
def test_pretraining_from_bucket_to_bucket(gcs, tiny, tmp_path):
  """Trains from a corpus in a bucket, and uses the result, as a user would."""
  config, corpus = tiny
  put(gcs, corpus, "gs://bucket/corpora/tiny")
  environ = {**gcs.environment, "XDG_CACHE_HOME": str(tmp_path)}
  argv = [
    *tiny_run.command("pretrain", f"--config={config}"),
    "--config.corpus.path=gs://bucket/corpora/tiny",
    "--workdir=gs://bucket/runs/tiny",
  ]
  ((_, out, err),) = host_processes.run(1, *argv, **environ)
  assert "gs://bucket/runs/tiny/result.json" in out
  assert "copying gs://bucket/corpora/tiny" in err
  ((_, out, err),) = host_processes.run(
    1,
    *tiny_run.command("fill-mask", "--checkpoint=gs://bucket/runs/tiny"),
    "the [MASK] of",
    **environ,
  )
  assert "the [MASK] of" in out
  # Two hosts start from it; started again, they find nothing changed.
  onward = [
    *argv[:-1],
    "--config.init_from=gs://bucket/runs/tiny",
    f"--workdir={tmp_path / 'onward'}",
  ]
  ended = host_processes.run(2, *onward, **environ)
  assert "weights of gs://bucket/runs/tiny: encoder" in ended[0][2]
  written = json.loads((tmp_path / "onward" / "config.json").read_text())
  assert written["tokenizer"]["path"] == "gs://bucket/runs/tiny/tokenizer"
  ended = host_processes.run(2, *onward, **environ)
  assert "continuing from the checkpoint of step 12" in ended[0][2]
  assert "changed since the checkpoint" not in ended[0][2]
  ((code, _, err),) = host_processes.finish(
    host_processes.start(1, *argv[:-2], argv[-1], **environ)
  )
  assert code == 2
  assert "add --config.corpus.path=gs://bucket/corpora/tiny" in err
