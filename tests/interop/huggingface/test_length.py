"""An import reads as many tokens as its model does, and so does an export."""

import json

import numpy as np
import pytest

import maskedlm
from helpers import peers
from maskedlm.cli import main
from maskedlm.finetune import predict
from maskedlm.interop.huggingface import exporter, importer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SENTENCE = "The function returns a list of the values. "


def save_model(folder, architecture, ending, positions, **stated):
  """Saves a model of `positions` positions; returns (model, its tokenizer)."""
  special = peers.train_tokenizer(peers.kind_of(architecture)).special
  positions += special.pad + 1 if architecture in peers.ROBERTAS else 0
  made = peers.save_model(
    folder, architecture, ending, max_position_embeddings=positions
  )
  if stated:
    (folder / "tokenizer_config.json").write_text(
      json.dumps({"do_lower_case": False, **stated})
    )
  return made


def import_hf(folder, out):
  return importer.import_model(folder, out, log=print)


@pytest.mark.parametrize("architecture", ["Roberta", "ModernBert"])
def test_long_texts_are_read_as_in_transformers(architecture, tmp_path, capsys):
  model, tokenizer = save_model(
    tmp_path / "theirs", architecture, "ForSequenceClassification", 900
  )
  made = import_hf(tmp_path / "theirs", tmp_path / "ours")
  assert made.length == made.task["length"] == 900
  special = tokenizer.special
  opened = maskedlm.load(tmp_path / "ours")
  sizes = [len(tokenizer.encode(SENTENCE * k).ids) + 2 for k in range(90)]
  most = max(k for k, size in enumerate(sizes) if size <= 900)
  assert sizes[most] > 800
  for text in (SENTENCE * most, "A list"):
    row = np.r_[special.cls, tokenizer.encode(text).ids, special.sep]
    capsys.readouterr()
    (found,) = opened.predict([text])
    assert capsys.readouterr().err == ""
    with torch.no_grad():
      logits = model(torch.tensor(np.int64(row[None]))).logits[0]
    np.testing.assert_allclose(
      list(found["probabilities"].values()),
      torch.softmax(logits, -1).numpy(),
      atol=2e-5,
    )


@pytest.mark.parametrize(
  ("stated", "expected"),
  [
    ({}, 40),
    ({"model_max_length": 24}, 24),
    ({"max_len": 24}, 24),  # In files of 2019.
    ({"model_max_length": 1e30}, 40),  # transformers writes it for no limit.
    ({"model_max_length": None}, 40),
  ],
)
def test_the_stated_length(stated, expected, tmp_path, capsys):
  theirs, ours = tmp_path / "theirs", tmp_path / "ours"
  save_model(theirs, "Bert", "ForSequenceClassification", 40, **stated)
  argv = ["import", "--from", "hf", str(theirs), "--out", str(ours)]
  assert main.main(argv) == 0
  assert f"rows of up to {expected} tokens" in capsys.readouterr().out
  assert predict.open_model(ours).length == expected
  if "model_max_length" in stated:  # It comes back from an export.
    exporter.export_huggingface(ours, tmp_path / "back", log=print)
    back = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert back.model_max_length == expected
    assert import_hf(tmp_path / "back", tmp_path / "again").length == expected


def test_a_cross_encoders_length(tmp_path):
  """max_seq_length comes before the tokenizer's, and positions before both."""
  folder = tmp_path / "theirs"
  save_model(
    folder, "Bert", "ForSequenceClassification", 40, model_max_length=30
  )
  for given, expected in ((20, 20), (None, 30), (64, 40)):
    (folder / "sentence_bert_config.json").write_text(
      json.dumps({"max_seq_length": given})
    )
    made = import_hf(folder, tmp_path / f"ours{expected}")
    assert made.length == expected
