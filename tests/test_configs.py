"""Tests every config: its published size, and two real steps of it, shrunk."""

import functools
import json
import runpy

import jax
import numpy as np
import pytest

from helpers.repository import CONFIGS
from maskedlm.cli import pretrain
from maskedlm.config import defaults, overrides
from maskedlm.modeling import architecture, encoder
from maskedlm.training import sharding

FILES = sorted(CONFIGS.glob("*.py"))
# tests/finetune runs the configs of fine-tuning.
PRETRAINING = {
  path.name: [
    f"{path.name}:{size}" if size else path.name
    for size in runpy.run_path(str(path)).get("SIZES", ("",))
    # Shrunk, a large model is the base one again.
    if size != "large"
  ]
  for path in FILES
  if "maskedlm.finetune" not in path.read_text()
}
# Shrunk, sizes differ in a few options only, as do these from the others.
ALIKE = ("continued.py", "modern_small.py", "mosaicbert_base.py", "roberta.py")
NAMES = [
  pytest.param(name, marks=[pytest.mark.slow] if i or file in ALIKE else [])
  for file, names in PRETRAINING.items()
  for i, name in enumerate(names)
]


@pytest.mark.parametrize("name", NAMES)
def test_two_steps_of_a_shrunk_config(name, tiny, tmp_path, monkeypatch):
  # For one device compiling takes a quarter less.
  on_one = functools.partial(sharding.make_mesh, devices=jax.devices()[:1])
  monkeypatch.setattr(sharding, "make_mesh", on_one)
  config = overrides.load_config(f"{CONFIGS}/{name}")
  _, corpus = tiny
  config.corpus.path = str(corpus)
  # The options the corpus was prepared with, so that it is accepted.
  for section in ("corpus", "tokenizer"):
    made = overrides.load_config(str(tiny[0]))[section].to_dict()
    made.pop("path", None)
    config[section].update(made)
  config.model.update(width=24, num_heads=4, mlp_width=40, max_positions=48)
  # One layer of each kind: most of the time goes into compiling.
  config.model.num_layers = 2 if config.model.local_window else 1
  if config.model.embedding_width:
    config.model.embedding_width = 8
  if config.model.local_window:
    config.model.local_window = 8
  config.data.update(length=40, batch_size=8)
  config.phases = ()
  config.optimizer.warmup_steps = 1
  config.train.update(
    num_steps=2, log_every=1, eval_rows=8, checkpoint_every=2, eval_every=2
  )
  defaults.validate(config)
  assert pretrain.pretrain(config, tmp_path) == 0
  result = json.loads((tmp_path / "result.json").read_text())
  assert result["steps"] == 2
  loss = "lm" if config.objective.name in ("causal", "bilm") else "mlm"
  assert np.isfinite(result[f"heldout_{loss}_loss"])


def test_causal_is_roberta_but_for_name_and_objective():
  causal, roberta = (
    overrides.load_config(f"{CONFIGS}/{name}").to_dict()
    for name in ("causal_base.py", "roberta.py:base")
  )
  own = {"name": "", "objective": {}}
  assert {**causal, **own} == {**roberta, **own}


@pytest.mark.parametrize("family", ["bert", "electra", "roberta", "xlmr"])
def test_name_has_the_size_and_base_is_the_default(family):
  config = overrides.load_config(f"{CONFIGS}/{family}.py")
  expected = overrides.load_config(f"{CONFIGS}/{family}.py:base")
  assert config.to_dict() == expected.to_dict()
  # The default workdir, in which a preempted run resumes.
  assert config.name == f"{family}_base"
  large = overrides.load_config(f"{CONFIGS}/{family}.py:large")
  assert large.name == f"{family}_large"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_docstring_has_the_command_and_the_paper(path):
  text = path.read_text()
  assert text.startswith('"""')
  docstring = text.split('"""')[1]
  assert f"--config=configs/{path.name}" in docstring
  assert "arxiv" in docstring.lower()


@pytest.mark.parametrize(
  ("size", "published"), [("base", 109_482_240), ("large", 335_141_888)]
)
def test_published_parameter_counts(size, published):
  """Counts encoder and pooler of the released models, without padding."""
  config = overrides.load_config(f"{CONFIGS}/bert.py:{size}")
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, 512
  )
  count = _count(cfg)
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * cfg.width
  pooler = cfg.width**2 + cfg.width
  assert count - padding + pooler == published


@pytest.mark.parametrize(
  ("size", "published"), [("base", 278_043_648), ("large", 559_890_432)]
)
def test_xlmr_has_the_published_parameters(size, published):
  config = overrides.load_config(f"{CONFIGS}/xlmr.py:{size}")
  defaults.validate(config)
  assert config.tokenizer.alpha == config.data.alpha == 0.3
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, 512
  )
  D = cfg.width
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * D
  # The released model has a pooler, two unused positions, one token type.
  assert _count(cfg) - padding + D * D + D + 2 * D + D == published


@pytest.mark.parametrize(
  ("name", "by_hand", "published"),
  [
    # The discriminator's encoder: tables of 128, projected to 256.
    (
      "electra.py:small",
      (30_522 + 512 + 2 + 2) * 128
      + 128 * 256
      + 256
      + 12 * (12 * 256**2 + 13 * 256),
      13.5e6,
    ),
    (
      "electra.py:large",
      (30_522 + 512 + 2 + 2) * 1_024 + 24 * (12 * 1_024**2 + 13 * 1_024),
      335e6,
    ),
    # No positions; the gated layer has no bias.
    (
      "mosaicbert_base.py",
      (30_522 + 2 + 2) * 768 + 12 * (4 * 768**2 + 3 * 768 * 3_072 + 9 * 768),
      137e6,
    ),
    # No biases. Norms: two a block, the first of which is skipped but present
    # (768 more than in transformers), that of the embeddings, the final one.
    (
      "modernbert_base.py",
      50_368 * 768 + 22 * (4 * 768**2 + 3 * 768 * 1_152 + 2 * 768) + 2 * 768,
      149e6,
    ),
  ],
)
def test_parameter_counts_of_later_models(name, by_hand, published):
  config = overrides.load_config(f"{CONFIGS}/{name}")
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, 512
  )
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * cfg.embedding_size
  assert _count(cfg) - padding == by_hand
  assert by_hand == pytest.approx(published, rel=0.005)


def _count(cfg):
  ids = jax.ShapeDtypeStruct((1, 7), np.int32)
  made = jax.eval_shape(
    lambda key, ids: encoder.Encoder(cfg).init(key, ids, ids, ids, train=False),
    jax.random.key(0),
    ids,
  )
  return sum(x.size for x in jax.tree.leaves(made["params"]))


@pytest.mark.parametrize("size", ["laptop", "gpu"])
def test_the_warm_up_of_continued_pretraining_follows_the_steps(size):
  path = f"{CONFIGS}/continued.py:{size}"
  usual = overrides.load_config(path)
  steps, warmup = usual.train.num_steps, usual.optimizer.warmup_steps
  assert warmup == steps * 6 // 100
  few = overrides.load_config(path, ["--config.train.num_steps=50"])
  assert (few.train.num_steps, few.optimizer.warmup_steps) == (50, 3)
  own = [
    "--config.optimizer.warmup_steps=7",
    "--config.train.num_steps=50",
  ]
  assert overrides.load_config(path, own).optimizer.warmup_steps == 7
