"""Exported graphs compute what the model does, in onnxruntime."""

import dataclasses
import json
import logging
import re
import subprocess
import sys
import types

import jax
import numpy as np
import pytest

from helpers import workdirs
from helpers.english_tokenizer import english_tokenizer
from maskedlm.cli import main
from maskedlm.core.errors import InteropError
from maskedlm.interop.heads import compute_outputs

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
exporter = pytest.importorskip("maskedlm.interop.onnx.exporter")

PRETRAINED = ("pooler", "mlm_head", "nsp_head")
TYPES = "token_type_ids"
# name -> (tokenizer, changes of the architecture, heads).
MODELS = {
  "bert": ("wordpiece", {}, PRETRAINED),
  "modern": (
    "bpe",
    {**workdirs.MODERN, "pooler": "norm", "row_pool": "mean"},
    PRETRAINED,
  ),
  "causal": (
    "wordpiece",
    {
      "causal": True,
      "position": "alibi",
      "norm_kind": "rms",
      "activation": "gelu_tanh",
      "embedding_width": 10,
      "pooler": "gelu",
    },
    PRETRAINED,
  ),
  "lstm": ("wordpiece", {"family": "bilm", "embedding_width": 12}, ()),
  "right to left": (
    "wordpiece",
    {"causal": True, "right_to_left": True, "dtype": "bfloat16"},
    ("pooler",),
  ),
}
NAMES = exporter.OUTPUTS
N = 2


def make_batch(cfg, B=5, L=13):
  """Returns rows of different lengths, with the names of the graph."""
  rng = np.random.default_rng(0)
  real = np.arange(L) < np.array([L, L - 1, 7, 3, 2])[:B, None]
  return {
    "input_ids": np.where(real, rng.integers(5, cfg.vocab_size, (B, L)), 0),
    TYPES: np.int64(real & (np.arange(L) > 4)) * (cfg.num_types > 1),
    "attention_mask": np.int64(real),
  }


def expect(params, cfg, batch):
  """Returns the outputs of the model under the names of the graph."""
  cfg = dataclasses.replace(cfg, dtype="float32", attention="xla")
  ours = {name: np.int32(x) for name, x in batch.items()}
  ours["segment_ids"] = ours.pop("attention_mask")
  made = jax.jit(compute_outputs, static_argnums=1)(params, cfg, ours)
  return {NAMES.get(name, name): x for name, x in made.items()}


def run(path, batch):
  """Returns {name: array} of a graph's outputs."""
  session = onnxruntime.InferenceSession(path)
  feed = {x.name: batch[x.name] for x in session.get_inputs()}
  names = [x.name for x in session.get_outputs()]
  return dict(zip(names, session.run(names, feed), strict=True))


def assert_equal(path, params, cfg, batch):
  found, expected = run(path, batch), expect(params, cfg, batch)
  assert found.keys() == expected.keys()
  for name, x in expected.items():
    assert found[name].dtype == np.float32
    np.testing.assert_allclose(found[name], x, atol=1e-4, err_msg=name)


def save(folder, tokenizer="wordpiece", heads=PRETRAINED, task=None, **changes):
  """Saves a workdir; returns (its path, params, cfg)."""
  tokenizer = english_tokenizer(tokenizer)
  cfg = workdirs.config(tokenizer, **{"num_layers": N, **changes})
  params = workdirs.make_params(cfg, heads, num_labels=3)
  path = folder / "ours"
  workdirs.save(path, params, cfg, tokenizer, **(task or {}))
  return path, params, cfg


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_the_model(name, tmp_path):
  tokenizer, changes, heads = MODELS[name]
  path, params, cfg = save(tmp_path, tokenizer, heads, **changes)
  lines, out = [], tmp_path / "out"
  shapes = exporter.export_onnx(path, out, log=lines.append)
  graph = out / "onnx" / "model.onnx"
  assert_equal(graph, params, cfg, make_batch(cfg))
  # Compared by the command too, with other sizes.
  assert "model.onnx: largest difference" in lines[0]
  for output in shapes:
    assert float(re.search(rf"{output} (\S+) ", lines[0])[1]) < 1e-4
  # As the tokenizer's files say.
  inputs = [x.name for x in onnxruntime.InferenceSession(graph).get_inputs()]
  assert (TYPES in inputs) == (cfg.num_types > 1)
  has_config = name == "bert"  # transformers has no others.
  assert (out / "config.json").exists() == has_config
  assert any("left out: config.json" in x for x in lines) != has_config
  assert (out / "tokenizer.json").exists()


def test_one_operator_stands_for_each_function(tmp_path, monkeypatch):
  """Their parts would be as right, but slower; also on a machine with a GPU."""
  path, _, cfg = save(tmp_path, "bpe", ("mlm_head",), activation="gelu_tanh")
  gpu = types.SimpleNamespace(
    platform="gpu", device_kind="a GPU", compute_capability="9.0"
  )
  make = exporter.make_forward

  def make_on_gpu(opened):
    monkeypatch.setattr(jax, "devices", lambda *_: [gpu])
    return make(opened)

  monkeypatch.setattr(exporter, "make_forward", make_on_gpu)
  exporter.export_onnx(path, tmp_path / "out", log=print)
  graph = onnx.load(tmp_path / "out/onnx/model.onnx").graph
  ops = [node.op_type for node in graph.node]
  assert ops.count("LayerNormalization") == 2 * N + 2
  assert ops.count("Softmax") == N
  assert ops.count("Gelu") == N + 1
  assert not {"Exp", "ReduceSum", "Sqrt", "Erf", "Loop", "Scan"} & set(ops)
  # The table of tokens is stored once, though it is the output layer too.
  shape = [cfg.padded_vocab_size, workdirs.D]
  assert [list(x.dims) for x in graph.initializer].count(shape) == 1


def test_fine_tuned(tmp_path):
  task = {"kind": "classification", "options": {}, "length": 11}
  task["about"] = {"labels": [*"xyz"]}
  changes = {**workdirs.MODERN, "pooler": "norm", "num_layers": 1}
  heads = ("pooler", "class_head")
  path, params, cfg = save(tmp_path, "bpe", heads, task, **changes)
  out = tmp_path / "out"
  shapes = exporter.export_onnx(path, out, log=print)
  assert "logits" in shapes
  assert_equal(out / "onnx/model.onnx", params, cfg, make_batch(cfg))
  config = json.loads((out / "config.json").read_text())
  assert config["architectures"] == ["ModernBertForSequenceClassification"]
  assert config["id2label"] == {"0": "x", "1": "y", "2": "z"}
  assert "truncation(11)" in (out / "README.md").read_text()


def test_choices_are_a_dimension(tmp_path):
  """As in transformers: [questions, choices, tokens] -> [questions, choices]"""
  task = {"kind": "multiple_choice", "options": {}, "about": {}, "length": 9}
  heads = ("pooler", "choice_head")
  path, params, cfg = save(tmp_path, heads=heads, task=task, num_layers=1)
  shapes = exporter.export_onnx(path, tmp_path / "out", log=print)
  assert shapes["logits"] == ("batch_size", "num_choices")
  rows = make_batch(cfg, B=4)
  batch = {name: x.reshape(2, 2, 13) for name, x in rows.items()}
  found = run(tmp_path / "out/onnx/model.onnx", batch)
  expected = expect(params, cfg, rows)
  np.testing.assert_allclose(
    found["logits"].ravel(), expected["logits"].ravel(), atol=1e-5
  )
  assert found["last_hidden_state"].shape == (2, 2, 13, workdirs.D)


def test_int8(tmp_path, monkeypatch, capfd):
  """Dense layers hold int8, also if the weights lie in files of their own."""
  monkeypatch.setattr(exporter, "MOST_BYTES", 1_000)
  path, params, cfg = save(
    tmp_path, heads=("mlm_head",), width=48, mlp_width=96
  )
  out = tmp_path / "out"
  argv = ["export", f"--checkpoint={path}", "--to=onnx", "--int8"]
  assert main.main([*argv, f"--out={out}"]) == 0
  told = capfd.readouterr()
  assert "out: last_hidden_state, logits" in told.out
  assert told.err.count("largest difference") == 2
  assert "pre-processing" not in told.err
  assert {p.name for p in (out / "onnx").iterdir()} == {
    *("model.onnx", "model.onnx_data"),
    *("model_int8.onnx", "model_int8.onnx.data"),
  }
  assert_equal(out / "onnx/model.onnx", params, cfg, make_batch(cfg))
  graph = onnx.load(out / "onnx/model_int8.onnx").graph
  kinds = [node.op_type for node in graph.node]
  assert kinds.count("MatMulInteger") == 4 * N + 2
  assert kinds.count("MatMul") == 2 * N  # Of queries, keys, values.
  ints = {tuple(x.dims) for x in graph.initializer if x.data_type == 3}
  assert {(48, 96), (96, 48), (48, cfg.padded_vocab_size)} <= ints
  batch = make_batch(cfg)
  real = batch["attention_mask"] > 0
  x = run(out / "onnx/model_int8.onnx", batch)["last_hidden_state"][real]
  y = np.asarray(expect(params, cfg, batch)["last_hidden_state"])[real]
  cosines = np.sum(x * y, 1) / np.sqrt(np.sum(x**2, 1) * np.sum(y**2, 1))
  assert cosines.min() > 0.98
  assert not logging.getLogger().filters


def test_what_has_no_translation_is_refused(tmp_path, monkeypatch):
  from maskedlm.interop.onnx import primitives

  monkeypatch.delitem(primitives.PRIMITIVES, "tanh")
  path, *_ = save(tmp_path, heads=("pooler",))
  with pytest.raises(InteropError, match=r"operation tanh .* --to=stablehlo"):
    exporter.export_onnx(path, tmp_path / "out", log=print)
  assert [p.name for p in tmp_path.iterdir()] == ["ours"]


def test_without_onnx_the_extra_is_named(monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, "onnx", None)
  monkeypatch.delitem(sys.modules, exporter.__name__)
  monkeypatch.delattr(exporter.__name__)
  argv = ["export", "--checkpoint=x", "--to=onnx", "--out=o"]
  assert main.main(argv) == 2
  assert "pip install 'maskedlm[onnx]'" in capsys.readouterr().err


def test_the_readme_runs_without_maskedlm(tmp_path):
  sentences = {"pool": "mean", "normalize": True, "length": 9}
  task = {"sentences": sentences}
  path, *_ = save(tmp_path, heads=(), task=task)
  out = tmp_path / "out"
  exporter.export_onnx(path, out, int8=True, log=print)
  card = (out / "README.md").read_text()
  code = re.search("```python\n(.*?)```", card, re.DOTALL)[1]
  code = 'import sys; sys.modules["maskedlm"] = sys.modules["jax"] = None\n' + (
    f'{code}np.save("vectors.npy", outputs["sentence_embedding"])\n'
  )
  subprocess.run([sys.executable, "-c", code], check=True, cwd=out)
  import maskedlm

  np.testing.assert_allclose(
    np.load(out / "vectors.npy"),
    maskedlm.load(path).embed(["a text", "another"]),
    atol=1e-5,
  )
  assert (out / "modules.json").exists()
  names = [p.name for p in (out / "onnx").iterdir()]
  assert sorted(names) == ["model.onnx", "model_int8.onnx"]
