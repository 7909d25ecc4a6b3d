"""transformers' weights give the same outputs, and are exported bit for bit."""

import dataclasses
import pathlib

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from helpers import peers
from helpers.peers import assert_close
from helpers.workdirs import assert_same_trees
from maskedlm.core.errors import InteropError
from maskedlm.interop import labels
from maskedlm.interop.export_source import ExportSource
from maskedlm.interop.heads import head_outputs
from maskedlm.interop.huggingface import exporter
from maskedlm.interop.huggingface.parameter_names import ARCHITECTURES
from maskedlm.modeling import masked_lm

# Compiled once for each architecture; the heads are not.
encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))


def outputs(found, batch, **changes):
  """As heads.compute_outputs, but compiled once for each architecture."""
  cfg = dataclasses.replace(found.cfg, **changes)
  hidden = encode(cfg, {"encoder": found.params["encoder"]}, batch, None, False)
  heads = head_outputs(found.params, cfg, hidden, batch["segment_ids"])
  return {"last_hidden_state": hidden, **heads}


def as_opened(read, tokenizer):
  here = pathlib.Path()
  return ExportSource(
    read.params, read.cfg, read.task, {}, tokenizer, here, here
  )


ROPE = {"rope_type": "default", "rope_theta": 250.0}
CASES = (
  *((*of_class, {}) for of_class in peers.CLASSES),
  ("ModernBert", "ForSequenceClassification", {"classifier_pooling": "mean"}),
  *(
    ("EuroBert", "ForSequenceClassification", {"classifier_pooling": pooling})
    for pooling in ("bos", "mean")  # The default is "late".
  ),
  # Heads of keys and values as of queries; a tied table; another base.
  ("EuroBert", "ForMaskedLM", {"num_key_value_heads": 6}),
  ("EuroBert", "ForMaskedLM", {"rope_parameters": ROPE}),
  ("ModernBert", "ForMaskedLM", {"tie_word_embeddings": False}),
  ("Esm", "ForMaskedLM", {"emb_layer_norm_before": True}),
  ("Esm", "ForMaskedLM", {"token_dropout": False, "rope_theta": 250.0}),
  # Ignored by this class.
  ("ModernBert", "ForMaskedLM", {"classifier_pooling": "mean"}),
)


@pytest.mark.parametrize(("architecture", "ending", "changes"), CASES, ids=str)
def test_numbers_and_round_trip(architecture, ending, changes, tmp_path):
  folder = tmp_path / "theirs"
  model, tokenizer = peers.save_model(folder, architecture, ending, **changes)
  found = peers.read_model(folder)

  batch = peers.make_batch(tokenizer, types=found.cfg.type_vocab_size > 1)
  theirs = peers.run(model, batch)
  assert_close(outputs(found, batch), theirs, batch)

  # Import, then export.
  opened = as_opened(found, tokenizer)
  name = ARCHITECTURES[model.config.model_type]
  assert exporter.choose_class_ending(opened) == ending
  made = exporter.to_tensors(
    opened, exporter.choose_architecture(opened), ending
  )
  original = {  # transformers saves ESM under older names.
    key.replace("gamma", "weight").replace("beta", "bias"): x
    for key, x in load_file(folder / "model.safetensors").items()
    # ESM's contacts are read off the attention, which no head here does.
    if "contact_head" not in key and "inv_freq" not in key
  }
  assert made.keys() == original.keys()
  pad = tokenizer.special.pad
  for key, x in made.items():
    expected = original[key]
    if name.positions_after_pad and "position_embeddings" in key:
      # Rows of positions that no token has are not kept.
      assert not x[: pad + 1].any()
      x, expected = x[pad + 1 :], expected[pad + 1 :]
    np.testing.assert_array_equal(x, expected, err_msg=key)
  if not changes:
    check_class_by_tensors(folder, architecture, ending, found)


def check_class_by_tensors(folder, architecture, ending, expected):
  """Without a class in config.json, the same model is read, and it is said.

  That of a fine-tuned head is asked for.
  """
  peers.change_config(folder, architectures=...)
  if ending in labels.TASKS:
    with pytest.raises(InteropError, match='write its class to "archi'):
      peers.read_model(folder)
    return
  lines = []
  found = peers.read_model(folder, log=lines.append)
  (line,) = (x for x in lines if "by its tensors, the model is" in x)
  assert line.endswith(f"is {architecture}{ending}")
  assert found.task == {
    **expected.task,
    "objective": f"hf:{architecture}{ending}",
  }
  assert_same_trees(found.params, expected.params)


@pytest.mark.parametrize(
  ("theirs", "own"),
  [("gelu_new", "gelu_tanh"), ("swish", "silu")],
)
def test_other_activations(tmp_path, theirs, own):
  changes = {"hidden_act": theirs, "layer_norm_eps": 1e-3}
  model, tokenizer = peers.save_model(
    tmp_path, "Bert", "ForMaskedLM", **changes
  )
  found = peers.read_model(tmp_path)
  assert found.cfg.activation == own
  assert found.cfg.norm_epsilon == 1e-3
  batch = peers.make_batch(tokenizer, types=True)
  theirs = peers.run(model, batch)
  ours = outputs(found, batch)
  assert_close(ours, theirs, batch)
  # The exact GELU would be told apart by this test.
  exact = outputs(found, batch, activation="gelu")
  assert np.abs(exact["mlm_logits"] - ours["mlm_logits"]).max() > 3e-4


@pytest.mark.parametrize("tied", [False, True])
def test_a_decoder_is_an_encoder_without_its_mask(tied, tmp_path):
  model, tokenizer = peers.save_model(
    tmp_path, "Llama", "ForCausalLM", tie_word_embeddings=tied
  )
  lines = []
  found = peers.read_model(tmp_path, log=lines.append)
  assert [tied, True] == [
    any(part in line for line in lines)
    for part in ("here it has a copy", "tokens read both of their sides")
  ]
  assert not found.cfg.tied
  batch = peers.make_batch(tokenizer, types=False)
  ours = outputs(found, batch, causal=True)
  ours["logits"] = ours.pop("mlm_logits")
  assert_close(ours, peers.run(model, batch), batch)
  # Each token attends to all real ones: a mask [B, 1, L, L] of transformers'.
  real = batch["segment_ids"] > 0
  seen = np.repeat(real[:, None, None], real.shape[1], axis=2)
  theirs = peers.run(model, {**batch, "segment_ids": seen})
  ours = outputs(found, batch)
  ours["logits"] = ours.pop("mlm_logits")
  assert_close(ours, theirs, batch)
  # The encoder is EuroBERT's; the decoder, Llama's.
  for causal, name in ((False, "eurobert"), (True, "llama")):
    cfg = dataclasses.replace(found.cfg, causal=causal)
    opened = as_opened(found._replace(cfg=cfg), tokenizer)
    made = exporter.convert(opened, "", print)
    assert made.architecture.model_type == name
    assert made.tensors["lm_head.weight"].shape == (277, peers.D)
