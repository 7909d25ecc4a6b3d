"""Models by name: the real huggingface_hub against a stand-in hub."""

import errno
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from huggingface_hub import constants, file_download

import maskedlm
from helpers import stand_in_hub, untrained
from maskedlm.cli import frame, main, plot, pretrain
from maskedlm.finetune import start
from maskedlm.finetune.config import default
from maskedlm.interop.huggingface import exporter, hub, importer
from maskedlm.runtime import hub_names
from maskedlm.training.checkpoints import load

NAME = "acme/tiny"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """Returns a model as transformers has it: {path: content}."""
  folder = tmp_path_factory.mktemp("model")
  run = untrained.pretrained(folder / "run")
  exporter.export_huggingface(run, folder / "hf", log=print)
  return {
    str(path.relative_to(folder / "hf")): path.read_bytes()
    for path in (folder / "hf").rglob("*")
    if path.is_file()
  }


@pytest.fixture
def site(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr("time.sleep", lambda seconds: None)
  with stand_in_hub.serve() as site:
    site.use(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(hub, "import_apart", import_here)
    yield site


def import_here(name, place):
  folder, _ = hub.download(name)
  importer.import_model(folder, place, name=str(name), log=print)


@pytest.fixture
def repo(site, files):
  unwanted = {
    "model.py": b"1 / 0",
    "pytorch_model.bin": b"x",
    "onnx/m.onnx": b"",
  }
  return site.add(NAME, files | unwanted)


def offline(monkeypatch):
  monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def weights(path):
  table = load.open_best(path).params["encoder"]["embeddings"]["token"]
  return np.asarray(table["embedding"])


def run(command, capsys):
  """Returns (exit code, what it printed on stderr) of a command."""
  code = main.main(command.split())
  return code, capsys.readouterr().err


def test_an_import_by_name(repo, capsys):
  code, error = run(f"import --from hf {NAME} --out runs/x", capsys)
  assert code == 0, error
  commit = repo.refs["main"]
  meta = load.describe_checkpoint("runs/x").meta
  named = meta["identity"]["config"]["imported"]["directory"]
  assert named == f"hf:{NAME}@{commit}"
  exporter.export_huggingface("runs/x", pathlib.Path("out"), log=print)
  card = pathlib.Path("out/README.md").read_text()
  assert f"| imported from | hf:{NAME}@{commit} |" in card
  assert f"base_model: {NAME}" in card
  assert f"- It reads {untrained.POSITIONS} tokens at once" in card
  assert "- Capitals make no difference" in card


def test_neither_code_nor_pickles_are_fetched(repo, site):
  hub.download(hub_names.parse(f"hf:{NAME}"))
  got = {path.rpartition("/")[2] for path in site.asked if "/resolve/" in path}
  assert "model.safetensors" in got and "config.json" in got
  assert not got & {"model.py", "pytorch_model.bin", "m.onnx", "README.md"}


def test_an_import_leaves_this_process_without_a_backend(repo, site, tmp_path):
  """Else hosts could not be connected any more, nor XLA's flags be set."""
  code = (
    "from maskedlm.interop.huggingface import hub\n"
    f"pinned = hub.pin('hf:{NAME}')\n"
    "from maskedlm.training.checkpoints import load\n"
    "load.describe_checkpoint(pinned)\n"
    "from jax._src import xla_bridge\n"
    "assert not xla_bridge.backends_are_initialized()\n"
    "try: hub.pin('hf:acme/bad')\n"
    "except ValueError as error: print(error)\n"
  )
  site.add("acme/bad", {"model.safetensors": b"", "config.json": b"[]"})
  caches = {"HF_HOME": str(tmp_path / "hf")}
  done = subprocess.run(
    [sys.executable, "-c", code],
    env=os.environ | site.environment | caches,
    capture_output=True,
    text=True,
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stderr
  assert done.stdout.count("\n") == 1 and "config.json" in done.stdout


def test_what_was_imported_needs_no_hub(repo, site, files, monkeypatch):
  """A branch that moves is followed, a name with its commit stays."""
  first = maskedlm.load(f"hf:{NAME}")
  old, asked = first.path, len(site.asked)
  assert old == f"hf:{NAME}#{repo.refs['main']}"
  assert hub.pin(old) == old and len(site.asked) == asked
  other = dict(files, **{"README.md": b"Another commit."})
  repo.commit(other, "v2")
  tagged = f"hf:{NAME}@v2"
  assert hub.pin(tagged) == f"{tagged}#{repo.refs['v2']}"
  exact = f"hf:{NAME}@{repo.refs['v2']}"
  assert hub.pin(exact) == exact
  offline(monkeypatch)
  assert hub.pin(f"hf:{NAME}") == old and hub.pin(exact) == exact
  np.testing.assert_array_equal(weights(old), weights(tagged_path(repo)))


def tagged_path(repo):
  return f"hf:{NAME}@v2#{repo.refs['v2']}"


@pytest.mark.parametrize("folder", ["runs/y", "runs/y/lr_1e-5"])
def test_a_run_keeps_its_commit(folder, repo, site, capsys, monkeypatch):
  """Of a sweep, the runs are in folders of the workdir."""
  began = hub.pin(f"hf:{NAME}")
  pathlib.Path(folder).mkdir(parents=True)
  config = json.dumps({"init_from": began, "task": {}})
  pathlib.Path(folder, "config.json").write_text(config)
  repo.commit({"README.md": b"The branch has moved."})
  asked = len(site.asked)
  starts = []
  monkeypatch.setattr(
    start, "run_or_sweep", lambda config, _: starts.append(config.init_from)
  )
  code, error = run(
    f"finetune --config=classification --config.init_from=hf:{NAME} "
    "--config.data.train=x.tsv --workdir=runs/y",
    capsys,
  )
  assert code == 0, error
  tuning = default("classification")
  tuning.init_from, tuning.data.train = f"hf:{NAME}", "x.tsv"
  maskedlm.train(tuning, "runs/y")
  assert starts == [began, began] and len(site.asked) == asked
  assert tuning.init_from == f"hf:{NAME}"
  # Another revision is another run, which check_identity refuses.
  repo.commit(repo.commits[began.partition("#")[2]], "v1")
  tagged = f"hf:{NAME}@v1"
  assert hub.pin(tagged, "runs/y") == f"{tagged}#{repo.refs['v1']}"


def test_pretraining_and_checkpoints_by_name(repo, capsys):
  argv = ["--config=bert:tiny", f"--config.init_from=hf:{NAME}"]
  argv += ["--config.data.length=48"]
  config = frame.parse(pretrain.Pretrain, "pretrain", argv).config
  assert config.init_from == f"hf:{NAME}#{repo.refs['main']}"
  assert config.model.width == untrained.D
  pinned = f"hf:{NAME}#{repo.refs['main']}"
  argv = ["--checkpoint", f"hf:{NAME}", "--checkpoint=runs/x", "--out=x.png"]
  drawn = frame.parse(plot.Attention, "plot attention", [*argv, "the cat"])
  assert drawn.checkpoint == (pinned, "runs/x")
  code = main.main(f"fill-mask --checkpoint=hf:{NAME} the[MASK]".split())
  assert code == 0, capsys.readouterr().err


REFUSED = {  # name -> (what is at fault, command, exit code, message)
  "missing": ("", "import --from hf acme/tinny --out o", 2, (
    "acme/tinny: no such folder here; hf:acme/tinny is not on the hub, or is "
    "private: check the spelling, or log in with `hf auth login`"
  )),
  "offline": ("offline", "import --from hf hf:acme/tiny --out o", 2, (
    "hf:acme/tiny is not in this machine's cache, and HF_HUB_OFFLINE is set"
  )),
  "gated": ("gated", "import --from hf acme/tiny --out o", 2, (
    "hf:acme/tiny is gated: ask for access at http"
  )),
  "login": (401, "import --from hf hf:acme/tiny --out o", 2, (
    "hf:acme/tiny is refused without a login, or to this one: log in"
  )),
  "down": (503, "import --from hf hf:acme/tiny --out o", 74, (
    "wait, then run the same command again."
  )),
  "full": ("full", "import --from hf hf:acme/tiny --out o", 74, (
    "fails (No space left on device): make room, then run"
  )),
  "pickle": ("pickle", "import --from hf hf:acme/tiny --out o", 2, (
    "hf:acme/tiny has no *.safetensors, and a pickle (*.bin), which can run "
    "code, is not read. If you trust it: hf download acme/tiny --revision"
  )),
  "both": ("folder", "import --from hf acme/tiny --out o", 2, (
    "acme/tiny is spelt as a name on the hub, and is a folder here: give "
    "hf:acme/tiny for the first, ./acme/tiny for the other."
  )),
  "out": ("out", "import --from hf hf:acme/tiny --out o", 2, "o exists"),
  "many": ("", "average hf:acme/tiny hf:acme/tiny --out o", 2, (
    "the hub is not asked here; `maskedlm import --from hf hf:acme/tiny --out "
    "runs/tiny`, and give runs/tiny"
  )),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case, repo, site, capsys, monkeypatch, tmp_path):
  fault, command, code, message = REFUSED[case]
  if isinstance(fault, int):
    site.failing = lambda method, path: fault
  elif fault == "offline":
    offline(monkeypatch)
  elif fault == "gated":
    repo.gated = True
  elif fault == "full":
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(file_download, "http_get", throws(full))
  elif fault == "pickle":
    names = ("config.json", "training_args.bin", "pytorch_model-00001-of-2.bin")
    repo.commit(dict.fromkeys(names, b"x"))
  elif fault in ("folder", "out"):
    here = tmp_path / {"folder": NAME, "out": "o"}[fault]
    here.mkdir(parents=True)
    (here / "x").touch()
  found, error = run(command, capsys)
  assert (found, error.count("\n")) == (code, 1), error
  assert error.startswith("error: ") and message in error
  assert fault != "pickle" or error.endswith("./models/tiny --out runs/tiny\n")
  assert fault != "pickle" or "weights_only=True" in error
  assert fault == "out" or not (tmp_path / "o").exists()
  assert not list(tmp_path.glob("cache/maskedlm/models/*"))


def throws(error):
  def raising(*args, **kwargs):
    raise error

  return raising


TOKEN = "hf_secretsecretsecret"


@pytest.fixture
def login(site, tmp_path):
  """Logs in; returns the token's file."""
  site.token = TOKEN
  file = pathlib.Path(constants.HF_TOKEN_PATH)
  file.parent.mkdir(parents=True, exist_ok=True)
  file.write_text(TOKEN)
  untrained.pretrained(tmp_path / "run")
  return file


def test_an_upload(login, site, capsys):
  command = f"export --checkpoint run --to hf --push {NAME} --out "
  code = main.main(f"{command}out".split())
  told = capsys.readouterr()
  assert code == 0, told.err
  repo = site.repos[NAME]
  assert repo.private and f"uploaded as {NAME}, private: http" in told.err
  found = repo.commits[repo.refs["main"]]
  here = {
    str(path.relative_to("out")): path.read_bytes()
    for path in pathlib.Path("out").rglob("*")
    if path.is_file()
  }
  assert found == here
  assert f'path = "{NAME}"' in here["README.md"].decode()
  assert TOKEN not in told.out + told.err
  assert not [path for path, x in here.items() if TOKEN.encode() in x]
  # The large file went where only its address is asked for.
  assert any(each.startswith("PUT /large/") for each in site.asked)
  # Again, which changes nothing; and as a public one, which it isn't.
  assert main.main(f"{command}again".split()) == 0
  code, error = run(f"{command}third --public", capsys)
  assert code == 2 and "and private: leave out --public, or" in error
  # What was uploaded can be fetched.
  np.testing.assert_array_equal(weights("run"), weights(hub.pin(f"hf:{NAME}")))


def test_a_public_upload(login, site, capsys):
  command = "export --checkpoint run --to hf --push acme/other --public --out "
  code, error = run(f"{command}out", capsys)
  assert code == 0 and "acme/other, public: http" in error, error
  assert not site.repos["acme/other"].private
  code, error = run(f"{command.replace('--public', '')}again", capsys)
  assert code == 2 and "is on the hub, and public: add --public, or" in error


NOT_UPLOADED = {  # name -> (status of uploads, NAME, exit code, message)
  "no login": ("", "acme/mine", 2, "hf:acme/mine is refused without a login"),
  "no right": (403, "acme/mine", 2, "hf:acme/mine is forbidden to this login"),
  "revision": ("", "acme/mine@v1", 2, "--push=acme/mine@v1: expected a name"),
}


@pytest.mark.parametrize("case", NOT_UPLOADED)
def test_what_is_not_uploaded(case, login, site, capsys):
  status, name, code, message = NOT_UPLOADED[case]
  if case == "no login":
    login.unlink()
  site.failing = lambda method, path: (
    status or None if method == "POST" else None
  )
  command = f"export --checkpoint run --to hf --push {name} --out out"
  found, error = run(command, capsys)
  assert found == code and error.splitlines()[-1].startswith("error: "), error
  assert message in error and TOKEN not in error
  assert not pathlib.Path("out").exists() and not site.repos
