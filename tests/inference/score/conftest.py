"""Models of transformers, imported once."""

import functools

import pytest

import maskedlm


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
