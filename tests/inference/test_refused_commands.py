"""Refused commands of all verbs: command, flags and the line of the error.

Suffixes, ranges, choices and files that aren't there: tests/cli/test_frame.py.
{encoder}, {run} and {other} are workdirs, {text} is a file, {tmp} a folder,
{fitted} what `embed --unit=word --fit` writes.
"""

import json
import pathlib
import shlex
import sys

import pytest

from helpers import sense_files, vector_encoder
from helpers.repository import CONFIGS

PLOT = "plot instances --checkpoint={encoder}"
ATTENTION = "plot attention --checkpoint={encoder} --out=a.png"
SENSES = "word-senses train --checkpoint={encoder} --data={senses}"
TABLE = {
  "embed --checkpoint={encoder} --input={text}": [
    ("--out=v.npz --layers -9", "layers has -9: the encoder has 2"),
    ("", "give --out=FILE"),
    ("--fit=a.npz --standardise={text}", "--fit measures"),
    (
      "--out=v.npz --layers=1 --standardise={fitted}",
      "fitted with layers=[2], these vectors have layers=[1]",
    ),
    (
      "--out=v.npz --standardise={fitted} --checkpoint={other}",
      "was fitted to vectors of another encoder",
    ),
  ],
  "similarity --checkpoint={encoder}": [
    ("'a *cat*' b", "no word is marked"),
    ("--wic={text}", "--wic needs --dev"),
    ("--format=jsonl 'the *cat*' '*a*'", "--format=jsonl has no effect beside"),
  ],
  "isotropy --checkpoint={encoder} --input={text}": [
    ("--field=body", "--field=body has no effect"),
  ],
  "static average --checkpoint={run} --source=text:{text} --out=t.txt": [
    ("--min_count=99", "--min_count"),
    ("--text_field=body", "--text_field=body"),
  ],
  "evaluate --checkpoint={run} --data={text}": [
    ("--out=p.jsonl", "--out=p.jsonl has no effect on {run}, a pretrained"),
    ("--config.task.label=x", "--config.task.label=x has no effect on"),
    ("--field=t", "--field=t"),
    ("--length=9999", "length=9999"),
  ],
  "evaluate --checkpoint={run} --data=jsonl:{jsonl}": [
    ("--field=x", "--field='x'"),
    ("--field=x", "--data='jsonl:{jsonl}'"),
  ],
  SENSES: [
    ("--out=a.npz --layers=-9", "layers has -9: the encoder has 2"),
    ("--out=a.npz --first_senses=none", "none: No such file"),
  ],
  f"{PLOT} --data={{text}} --word house --out=a.png": [
    ("--field=body", "--field=body has no effect"),
    ("--word ?!", "--word='?!': expected a word"),
    ("--projection=umap", "pip install 'maskedlm[umap]'"),
  ],
  f"{PLOT} --word house": [("--data={text}", "give --out=FILE.png")],
  f"{PLOT} --word zebra --out=a.png": [
    ("--data={once}", "“zebra” occurs once, {once}:2"),
    ("--data={text}", "“zebra”: no whole word in {text}; list other"),
  ],
  ATTENTION: [
    ("--layers=3 'the cat'", "--layers=3: attention is in layers 1 to 2"),
    ("--layers=first 'the cat'", "--layers='first': expected last, all"),
    ("' '", "has no token"),
    (f"'{'the ' * 47}'", "has 49 tokens"),
  ],
  "plot isotropy none.json --out=a.png": [("", "none.json: No such file")],
  "plot run {metrics} --out=a.png --panels=loss": [
    ("--width=1", "--width=1: expected 2.6 to 100 inches"),
    ("--panels=loss,los", "--panels='los' is unknown"),
    ("--over=token", "--over='token' is unknown (did"),
  ],
  "plot run {tmp} --out=a.png": [("", "{tmp}/metrics.jsonl: No such file")],
  "tokenizer report {quickstart}": [("--parts=x", "--parts=x has no effect")],
  "tokenizer report --tokenizer={run}/tokenizer --parts=en:{text}": [
    ("--text_field=body", "--text_field=body has no effect"),
  ],
  "prepare --verify=x": [("--out=y", "--out=y has no effect")],
  "plan {quickstart} --topology=h100:8": [
    ("--phase=2", "--phase=2: the run has 1 phase"),
  ],
  "inspect {quickstart} --json": [("--rows=2", "--rows=2 has no effect")],
  "finetune --config={configs}/ner.py --config.data.dev=x": [
    (
      "--config.data.dev_share=0.2",
      "data.dev_share=0.2 has no effect with data.dev='x'",
    ),
  ],
  "finetune --config={configs}/ner.py --config.init_from=none --workdir=x": [
    (
      "--config.sweep.learning_rate=(1e-5,) "
      "--config.optimizer.learning_rate=1e-4",
      "optimizer.learning_rate=0.0001 has no effect with sweep.learning_rate",
    ),
  ],
  "finetune --config={configs}/pos.py --config.task.tag_column=2": [
    (
      "--config.task.conllu_tag=xpos",
      "task.conllu_tag='xpos' has no effect with task.tag_column=2",
    ),
  ],
  "export --checkpoint=none --out=x --to=hf": [
    ("--int8", "--int8 has no effect with --to=hf"),
  ],
  "plot masks --checkpoint={run} --out=a.png": [
    ("'the cat'", "no word is marked"),
  ],
}


@pytest.fixture(scope="module")
def other(tmp_path_factory):
  folder = tmp_path_factory.mktemp("other") / "encoder"
  return vector_encoder.make(folder, init_stddev=0.2)


@pytest.fixture
def named(workdir, run, other, text, tmp_path):
  """Returns the values of the names in braces."""
  files = {
    "once": "\nthe zebra ran\n",
    "jsonl": json.dumps({"t": "the cat sat"}) + "\n",
    "metrics": "",
  }
  paths = {name: tmp_path / name for name in files}
  for name, content in files.items():
    paths[name].write_text(content)
  paths["metrics"] = tmp_path / "logged"
  paths["metrics"].mkdir()
  (paths["metrics"] / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
  return {
    **paths,
    "configs": CONFIGS,
    "quickstart": f"--config={CONFIGS}/quickstart.py",
    "encoder": workdir,
    "run": run,
    "other": other,
    "text": text,
    "tmp": tmp_path,
    "fitted": tmp_path / "fitted.npz",
    "senses": sense_files.write_columns(tmp_path),
  }


@pytest.mark.parametrize(
  ("command", "more", "message"),
  [(command, *row) for command, rows in TABLE.items() for row in rows],
)
def test_refused(named, verb, monkeypatch, command, more, message):
  monkeypatch.chdir(named["tmp"])
  monkeypatch.setitem(sys.modules, "umap", None)
  if "{fitted}" in more:
    fit = "embed --checkpoint={encoder} --input={text} --unit=word"
    verb(*shlex.split(f"{fit} --fit={{fitted}}".format(**named)))
    more = f"--unit=word {more}"
  before = sorted(pathlib.Path().iterdir())
  argv = shlex.split(f"{command} {more}".format(**named))
  *progress, line = verb(*argv, expect=2).err.splitlines()
  assert all("texts/s" in each for each in progress)  # On a slow machine.
  assert line.startswith("error: ") and message.format(**named) in line
  assert sorted(pathlib.Path().iterdir()) == before
