"""An exported program runs with jax alone, for any batch size and length."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import maskedlm
from helpers import peers, workdirs
from maskedlm.core.errors import InteropError
from maskedlm.interop import stablehlo
from maskedlm.interop.heads import compute_outputs, head_outputs

# As README.md shows; maskedlm can't be imported.
RUN = """
import sys
sys.modules["maskedlm"] = None
import jax, jax.export, numpy as np
from safetensors.numpy import load_file, save_file

folder, inputs, outputs = sys.argv[1:]
model = jax.export.deserialize(open(f"{folder}/model.stablehlo", "rb").read())
weights = load_file(f"{folder}/weights.safetensors")
run = jax.jit(model.call)
batch = load_file(inputs)
names = ("input_ids", "token_type_ids", "attention_mask")
whole = run(weights, *(batch[name] for name in names))
part = run(weights, *(batch[name][1:4, :9] for name in names))
save_file({f"whole/{n}": np.asarray(x) for n, x in whole.items()} |
          {f"part/{n}": np.asarray(x) for n, x in part.items()}, outputs)
assert not [m for m in sys.modules if m.startswith("maskedlm.")]
assert "flax" not in sys.modules
try:
  run(weights, *(np.zeros((1, 18), np.int32) for _ in names))
except ValueError as error:
  assert "constraint l <= 17" in str(error.__cause__), error
else:
  raise AssertionError("18 tokens, where there are 17 positions")
"""


def test_runs_without_maskedlm(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  cfg = workdirs.config(tokenizer, **workdirs.MODERN, num_layers=2)
  heads = ("pooler", "mlm_head", "nsp_head", "tagger")
  params = workdirs.make_params(cfg, heads, num_labels=3)
  task = {"kind": "tagging", "about": {"labels": [*"xyz"]}}
  path = workdirs.save(tmp_path / "ours", params, cfg, tokenizer, **task)
  out = tmp_path / "program"
  about = stablehlo.export_stablehlo(path, out, log=print)
  assert about == json.loads((out / "model.json").read_text())
  assert about["platforms"] == ["cpu", "cuda", "tpu"]
  assert about["max_length"] == 17
  assert about["labels"] == [*"xyz"]

  batch = peers.make_batch(tokenizer, types=bool(cfg.type_vocab_size))
  feed = {**batch, "attention_mask": batch["segment_ids"]}
  del feed["segment_ids"]
  save_file(feed, tmp_path / "in")
  ran = subprocess.run(
    [sys.executable, "-c", RUN, out, tmp_path / "in", tmp_path / "out"],
    capture_output=True,
    text=True,
    check=False,
    cwd=tmp_path,
  )
  assert ran.returncode == 0, ran.stderr
  found = load_file(tmp_path / "out")
  compute = jax.jit(compute_outputs, static_argnums=1)
  ours = compute(params, cfg, batch)
  assert set(about["outputs"]) == set(ours)
  for key, x in ours.items():
    assert about["outputs"][key][0] == "float32"
    assert len(about["outputs"][key]) == 1 + x.ndim
    np.testing.assert_allclose(found[f"whole/{key}"], x, atol=1e-5)
  part = {n: x[1:4, :9] for n, x in batch.items()}
  ours = compute(params, cfg, part)
  for key, x in ours.items():
    np.testing.assert_allclose(found[f"part/{key}"], x, atol=1e-5)


def test_unknown_platform(tmp_path):
  with pytest.raises(InteropError, match=r"platforms='gpu' .*known: cpu, cuda"):
    stablehlo.export_stablehlo(
      tmp_path, tmp_path / "out", platforms=("cpu", "gpu"), log=print
    )


def test_a_causal_encoder_is_pooled_at_its_last_token():
  """As in fine-tuning: [CLS] attends only to itself."""
  cfg = workdirs.config(peers.train_tokenizer("wordpiece"), causal=True)
  params = workdirs.make_params(cfg, ("pooler",))
  hidden = np.random.default_rng(0).normal(size=(2, 5, cfg.width))
  segment_ids = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
  made = head_outputs(params, cfg, np.float32(hidden), segment_ids)
  dense = params["pooler"]["dense"]
  expected = np.tanh(hidden[[0, 1], [2, 4]] @ dense["kernel"] + dense["bias"])
  np.testing.assert_allclose(made["pooler_output"], expected, atol=1e-4)


def test_sentence_vectors_equal_embed(tmp_path):
  """A model with its own pooling exports it."""
  tokenizer = peers.train_tokenizer("wordpiece")
  cfg = workdirs.config(tokenizer, num_layers=1)
  params = workdirs.make_params(cfg, ())
  sentences = {"pool": "max", "normalize": True, "length": 9}
  sentences["truncate_dim"] = 3
  path = workdirs.save(
    tmp_path / "ours", params, cfg, tokenizer, sentences=sentences
  )
  out = tmp_path / "program"
  about = stablehlo.export_stablehlo(path, out, platforms=("cpu",), log=print)
  assert about["sentences"].items() >= sentences.items()
  model = jax.export.deserialize((out / "model.stablehlo").read_bytes())
  texts = ["the cat", "a list"]
  rows = [tokenizer.encode(text).ids for text in texts]
  special = tokenizer.special
  ids = np.full((2, 9), special.pad, np.int32)
  mask = np.zeros_like(ids)
  for i, row in enumerate(rows):
    ids[i, : len(row) + 2] = [special.cls, *row, special.sep]
    mask[i, : len(row) + 2] = 1
  weights = load_file(out / "weights.safetensors")
  made = model.call(weights, ids, np.zeros_like(ids), mask)
  np.testing.assert_allclose(
    made["sentence_embedding"], maskedlm.load(path).embed(texts), atol=1e-5
  )
