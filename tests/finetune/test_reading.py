"""How a labelled file is read can be set beside a checkpoint."""

import json

import pytest
import runs

from maskedlm import cli
from maskedlm.config import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.finetune import reading, run
from maskedlm.finetune.question_answering import Options

KINDS = ("classification", "features", "spans", "tagging")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A workdir fine-tuned for two steps on columns `word tag`."""
  path = tmp_path_factory.mktemp("reading")
  file = path / "train.conll"
  file.write_text("the O\ncat B-PER\nsat I-PER\n\na O\ndog B-PER\n")
  config = configs.default("tagging")
  config.init_from = str(runs.make_encoder(path / "encoder"))
  config.data.update(
    train=str(file), dev=str(file), length=32, batch_size=8, buckets=(32,)
  )
  config.train.update(num_steps=2, log_every=1)
  run.finetune(config, path / "run")
  return path / "run"


@pytest.mark.parametrize("name", KINDS)
def test_reading_options_are_options(name):
  kind = configs.load_kind(name)
  assert {*kind.READING} <= {*kind.Options._fields}


def test_override():
  kind = configs.load_kind("classification")
  tokens = ["--config.task.label=stars", "--config.task.header=('a','stars')"]
  argv, found = reading.split(["--data", "x", *tokens, "a text"])
  assert (argv, found) == (["--data", "x", "a text"], tokens)
  options = kind.Options(pooler=False)
  assert reading.override(kind, options, found) == options._replace(
    label="stars", header=("a", "stars")
  )
  kind = configs.load_kind("question_answering")
  token = "--config.task.allow_impossible=True"
  assert reading.override(kind, Options(), [token]).allow_impossible
  kind = configs.load_kind("coreference")
  assert reading.override(kind, kind.Options(), []) == kind.Options()
  with pytest.raises(ConfigError, match="how a file is read, here none"):
    reading.override(kind, kind.Options(), [token])


def test_how_a_file_is_read_can_be_set_anew(folder, tmp_path, capsys):
  workdir = str(folder)
  lines = ["1 the O x", "2 cat I-PER x", "", "1 a I-LOC x", "2 b O x", ""]
  path = tmp_path / "test.conll"
  path.write_text("\n".join(lines))
  columns = ["--config.task.token_column=1", "--config.task.tag_column=2"]
  argv = ["evaluate", "--checkpoint", workdir, "--data", str(path), *columns]
  assert cli.main(argv) == 2
  error = capsys.readouterr().err
  assert error.count("\n") == 1 and "--config.task.repair_bio=True" in error
  for value in ("repair_bio=True", "file_scheme=iob1"):
    assert cli.main([*argv, "--json", f"--config.task.{value}"]) == 0
    assert json.loads(capsys.readouterr().out)["examples"] == 2
  predict = ["predict", *argv[1:], "--json", "--config.task.repair_bio=True"]
  assert cli.main(predict) == 0
  found = map(json.loads, capsys.readouterr().out.splitlines())
  assert [made["tokens"] for made in found] == [["the", "cat"], ["a", "b"]]
  transfer = ["transfer", "--checkpoint", workdir, "--json", *columns]
  transfer += ["--data", f"en:{path}", "--config.task.repair_bio=True"]
  assert cli.main(transfer) == 0
  result = json.loads(capsys.readouterr().out)
  assert result["languages"]["en"]["examples"] == 2


@pytest.mark.parametrize("verb", ["evaluate", "predict", "transfer"])
@pytest.mark.parametrize(
  ("token", "message"),
  [
    (
      "--config.task.repair_boi=True",
      "--config.task.repair_boi: what can be set beside a checkpoint is how a "
      "file is read, of tagging token_column, tag_column, conllu_tag, "
      'file_scheme, repair_bio; did you mean "repair_bio"?',
    ),
    ("--config.task.crf=True", "--config.task.crf: what can be set beside"),
    ("--config.task.tag_column=x", "--config.task.tag_column=x: invalid"),
    ("--config.task.repair_bio=so", "--config.task.repair_bio=so: "),
    ("--config.task.file_scheme=bo", "task.file_scheme='bo' is unknown; "),
    ("--config.task.repair_bio", "expected --config.task.NAME=VALUE"),
    ("--config.data.length=8", "expected --config.task.NAME=VALUE"),
    ("--config=a.py", "expected --config.task.NAME=VALUE"),
  ],
)
def test_what_can_not_be_set_anew(folder, capsys, verb, token, message):
  data = f"{'en:' if verb == 'transfer' else ''}{folder / 'config.json'}"
  argv = [verb, "--checkpoint", str(folder), "--data", data, token]
  assert cli.main(argv) == 2
  error = capsys.readouterr().err
  assert error.startswith("error: ") and error.count("\n") == 1
  assert message in error
