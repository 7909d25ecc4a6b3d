"""Every config ends in a model that transformers or onnxruntime opens."""

import re

import jax
import pytest

from helpers import peers, shrunk_configs, untrained, workdirs
from maskedlm.data.batches import placeholder_corpus
from maskedlm.interop import export_source
from maskedlm.interop.heads import compute_outputs
from maskedlm.interop.huggingface import exporter
from maskedlm.modeling import architecture
from maskedlm.pretraining import objectives

pytest.importorskip("onnxruntime")
onnx_exporter = pytest.importorskip("maskedlm.interop.onnx.exporter")

# Shrunk, these are the architectures of others here.
ALIKE = (
  *("bert24h.py", "causal_then_masked.py", "continued.py", "distil.py"),
  *("dna.py", "ettin.py", "mmbert.py", "modern_small.py", "spanbert.py"),
)
# The first size of each other file, and that with groups of heads.
NAMES = [
  names[0] for file, names in shrunk_configs.NAMES.items() if file not in ALIKE
] + ["eurobert.py:610m"]
# What transformers has no class for.
ONNX_ALONE = (
  *("causal_base.py", "elmo.py", "gptbert.py", "mosaicbert.py"),
  "deberta_v3.py",
)


def save(name, folder):
  """Saves a workdir of a shrunk config with random parameters."""
  config = shrunk_configs.load(name)
  kind = config.tokenizer.kind
  tokenizer = untrained.make_tokenizer(
    kind if kind in untrained.VOCAB else "wordpiece"
  )
  config.tokenizer.vocab_size = tokenizer.vocab_size
  config.model.dtype = "float32"
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  task = objectives.make_task(config, corpus)
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  cfg = architecture.restored(task.describe["encoder"])
  params = workdirs.randomise(shapes)
  return workdirs.save(folder, params, cfg, tokenizer, **task.describe)


@pytest.mark.parametrize("name", NAMES)
def test_others_open_it(name, tmp_path):
  path = save(name, tmp_path / "ours")
  out, lines = tmp_path / "out", []
  if name.partition(":")[0] in ONNX_ALONE:
    onnx_exporter.export_onnx(path, out, log=lines.append)
    (line,) = (x for x in lines if "largest difference" in x)
    assert max(map(float, re.findall(r" (\S+) \(values", line))) < 1e-4
    return
  class_name = exporter.export_huggingface(path, out, log=lines.append)
  assert "Model" not in class_name  # It has a head.
  theirs = getattr(peers.transformers, class_name).from_pretrained(out).eval()
  opened = export_source.open_export_source(path, part="", log=print)
  has_types = "left out: the vector of a pair's second text" not in str(lines)
  batch = peers.make_batch(
    opened.tokenizer, types=has_types and opened.cfg.num_types > 1
  )
  ours = jax.jit(compute_outputs, static_argnums=1)(
    opened.params, opened.cfg, batch
  )
  peers.assert_close(ours, peers.run(theirs, batch), batch)
