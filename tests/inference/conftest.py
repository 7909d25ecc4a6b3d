"""Untrained models, made once for all tests, and a way to run a verb."""

import functools
import io
import sys

import pytest

import maskedlm
from helpers import finetune_runs, untrained, vector_encoder
from maskedlm.cli import main
from maskedlm.inference.vectors import vectors


@pytest.fixture(scope="session")
def workdir(tmp_path_factory):
  """Returns a workdir with an encoder of two layers."""
  return vector_encoder.make(tmp_path_factory.mktemp("vectors") / "encoder")


@pytest.fixture(scope="session")
def model(workdir):
  return vectors.open_text_encoder(workdir)


@pytest.fixture(scope="session")
def run(tmp_path_factory):
  """Returns a workdir of pretraining, which fills masks."""
  return untrained.pretrained(tmp_path_factory.mktemp("pretrained") / "run")


@pytest.fixture(scope="session")
def pretrained(run):
  return maskedlm.load(run)


@pytest.fixture(scope="session")
def causal(tmp_path_factory):
  folder = tmp_path_factory.mktemp("causal")
  return maskedlm.load(untrained.causal(folder / "run"))


@pytest.fixture(scope="session")
def from_right(tmp_path_factory):
  folder = tmp_path_factory.mktemp("from_right") / "run"
  return maskedlm.load(untrained.causal(folder, right_to_left=True))


@pytest.fixture(scope="session")
def bilm(tmp_path_factory):
  folder = tmp_path_factory.mktemp("bilm")
  return maskedlm.load(untrained.bilm(folder / "run"))


@pytest.fixture(scope="session")
def tagged(tmp_path_factory):
  """Returns a workdir of fine-tuning whose second checkpoint is the best."""
  folder = tmp_path_factory.mktemp("tagged") / "pos"
  return untrained.finetuned(folder, "pos", metrics=(0.5, 0.2, 0.9))


@pytest.fixture(scope="session")
def tagger(tagged):
  return maskedlm.load(tagged)


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
  """Maps an architecture to (transformers' model, ours with its weights)."""
  pytest.importorskip("transformers")
  from helpers import peers
  from maskedlm.interop.huggingface import importer

  endings = {"Bert": "ForPreTraining", "Roberta": "ForMaskedLM"}

  @functools.cache
  def get(architecture):
    folder = tmp_path_factory.mktemp(architecture)
    tokenizer = peers.train_tokenizer(peers.kind_of(architecture))
    theirs = peers.make_model(
      architecture,
      endings[architecture],
      tokenizer,
      max_position_embeddings=40,
    )
    saved = peers.save(theirs, tokenizer, folder / "theirs")
    importer.import_model(saved, folder / "run", log=print)
    return theirs, maskedlm.load(folder / "run")

  return get


@pytest.fixture
def text(tmp_path):
  """Returns a file of 12 lines, with "house" 9 and "the" 21 times."""
  path = tmp_path / "en.txt"
  path.write_text("\n".join(finetune_runs.TEXTS))
  return path


@pytest.fixture
def verb(capsys, monkeypatch):
  """Returns a function that runs a verb and returns (stdout, stderr)."""

  def call(*argv, expect=0, stdin=b""):
    file = io.TextIOWrapper(io.BytesIO(stdin))
    monkeypatch.setattr(sys, "stdin", file)
    capsys.readouterr()
    assert main.main([*map(str, argv)]) == expect
    return capsys.readouterr()

  return call
