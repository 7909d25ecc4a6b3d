"""Tests every config: its published size, and two real steps of it, shrunk."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import shrunk_configs
from helpers.repository import CONFIGS
from maskedlm import in_python
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError
from maskedlm.data.corpus import store
from maskedlm.modeling import architecture, encoder
from maskedlm.pretraining import objectives
from maskedlm.pretraining.config import split
from maskedlm.training import optimizer, sharding, step
from maskedlm.training import phases as phasing

FILES = sorted(CONFIGS.glob("*.py"))
PRETRAINING = shrunk_configs.NAMES
# Run, not only traced, as it has an encoder of its own. tests/pretraining runs
# every objective, test_mesh_invariance.py what is modern, cli/test_phases.py
# phases.
RUN = "elmo.py:small"
# Shrunk, sizes differ in a few options only.
NAMES = [names[0] for names in PRETRAINING.values()] + ["eurobert.py:610m"]


def load(name, tiny):
  """Returns a shrunk config of two steps; the second has all phases' changes.

  The corpus's options are those that it was prepared with.
  """
  config = shrunk_configs.load(name)
  for section in ("corpus", "tokenizer"):
    made = overrides.load_config(str(tiny[0]))[section].to_dict()
    config[section].update(made)
  config.corpus.path = str(tiny[1])
  config.optimizer.warmup_steps = 1
  config.train.update(num_steps=2, log_every=1, eval_rows=8, accumulate=1)
  config.train.update(checkpoint_every=2, eval_every=2)
  if config.phases:
    changes = {
      name: value
      for phase in config.phases
      for name, value in phase.items()
      if "." in name
    }
    changes |= {"data.length": 48, "data.batch_size": 8, "train.accumulate": 1}
    changes["optimizer.warmup_steps"] = 0
    config.phases = ({"steps": 1}, {"steps": 1, **changes})
  defaults.validate(config)
  return config


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_a_shrunk_config(name, tiny, on_one, tmp_path):
  config = load(name, tiny)
  if name == RUN:
    assert in_python.run_pretraining(config, tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["steps"] == 2
    assert np.isfinite(result["heldout_lm_loss"])
    return
  corpus = store.open_corpus(tiny[1])
  mesh = sharding.make_mesh(config.mesh)
  for part in split(config):
    task = objectives.make_task(part.config, corpus)
    program = step.over_mesh(part.config, task, mesh)
    with jax.set_mesh(mesh):
      batch = task.batch_at("train", part.begin)
      state, metrics = jax.eval_shape(program.step, program.state, batch)
    assert jax.tree.map(jnp.shape, state.params) == jax.tree.map(
      jnp.shape, program.state.params
    )
    assert any("loss" in each for each in metrics)


def test_causal_is_roberta_but_for_name_and_objective():
  causal, roberta = (
    overrides.load_config(f"{CONFIGS}/{name}").to_dict()
    for name in ("causal_base.py", "roberta.py:base")
  )
  own = {"name": "", "objective": {}}
  assert {**causal, **own} == {**roberta, **own}


@pytest.mark.parametrize(
  "family", ["bert", "electra", "modernbert", "roberta", "xlmr"]
)
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


def encoder_of(name):
  """Returns a config and its architecture, for rows of 512 tokens."""
  config = overrides.load_config(f"{CONFIGS}/{name}")
  vocab_size = config.tokenizer.vocab_size
  return config, architecture.encoder_config(config.model, vocab_size, 512)


@pytest.mark.parametrize(
  ("size", "published"), [("base", 109_482_240), ("large", 335_141_888)]
)
def test_published_parameter_counts(size, published):
  """Counts encoder and pooler of the released models, without padding."""
  _, cfg = encoder_of(f"bert.py:{size}")
  count = _count(cfg)
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * cfg.width
  pooler = cfg.width**2 + cfg.width
  assert count - padding + pooler == published


@pytest.mark.parametrize(
  ("size", "published"), [("base", 278_043_648), ("large", 559_890_432)]
)
def test_xlmr_has_the_published_parameters(size, published):
  config, cfg = encoder_of(f"xlmr.py:{size}")
  defaults.validate(config)
  assert config.tokenizer.alpha == config.data.alpha == 0.3
  D = cfg.width
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * D
  # The released model has a pooler, two unused positions, one token type.
  assert _count(cfg) - padding + D * D + D + 2 * D + D == published


@pytest.mark.parametrize(
  ("size", "backbone"),
  # README of microsoft/DeBERTa: millions, beside 128K tokens.
  [("xsmall", 22), ("small", 44), ("base", 86), ("large", 304)],
)
def test_deberta_has_the_published_parameters(size, backbone):
  config, cfg = encoder_of(f"deberta_v3.py:{size}")
  defaults.validate(config)
  D = cfg.width
  # The file has a table of positions, which the discriminator doesn't use, and
  # the head of detection: a norm, D x D and D x 1 with biases.
  beside = 512 * D + 2 * D + D**2 + D + D + 1
  count = _count(cfg) - cfg.padded_vocab_size * D + beside
  assert int(count / 1e6 + 0.5) == backbone


def _modern(V, N, D, F):
  """Returns the parameters of ModernBERT's encoder of another size."""
  return V * D + N * (4 * D**2 + 3 * D * F + 2 * D) + 2 * D


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
    # No positions; the gated layer has no bias.
    (
      "mosaicbert.py",
      (30_522 + 2 + 2) * 768 + 12 * (4 * 768**2 + 3 * 768 * 3_072 + 9 * 768),
      137e6,
    ),
    # No biases. Norms: two a block, the first of which is skipped but present
    # (768 more than in transformers), that of the embeddings, the final one.
    (
      "modernbert.py:base",
      50_368 * 768 + 22 * (4 * 768**2 + 3 * 768 * 1_152 + 2 * 768) + 2 * 768,
      149e6,
    ),
    ("mmbert.py:base", _modern(256_000, 22, 768, 1_152), 307e6),
    # RMSNorms: two a block, and the final one; none of the embeddings.
    (
      "neobert.py",
      30_522 * 768 + 28 * (4 * 768**2 + 3 * 768 * 2_048 + 2 * 768) + 768,
      222e6,
    ),
    (
      "eurobert.py:210m",
      128_256 * 768 + 12 * (4 * 768**2 + 3 * 768 * 3_072 + 2 * 768) + 768,
      211e6,
    ),
    # 6 of 18 heads of 64 have keys and values: 384 of 1,152.
    (
      "eurobert.py:610m",
      128_256 * 1_152
      + 26 * (2 * 1_152 * (1_152 + 384) + 3 * 1_152 * 4_096 + 2 * 1_152)
      + 1_152,
      608e6,
    ),
    ("bert24h.py", _modern(32_768, 16, 768, 1_536), 120e6),
    # Norms of a scale and a bias: two a block, and the final one.
    (
      "esm2.py:650m",
      33 * 1_280 + 33 * (12 * 1_280**2 + 13 * 1_280) + 2 * 1_280,
      650e6,
    ),
  ],
)
def test_parameter_counts_of_later_models(name, by_hand, published):
  _, cfg = encoder_of(name)
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * cfg.embedding_size
  assert _count(cfg) - padding == by_hand
  assert by_hand == pytest.approx(published, rel=0.015)


# Of each phase: rows, tokens of a row, steps, and the rates where it begins and
# ends. Steps are tokens / (rows * row), rounded up:
# 1,669e9 / 4,718,592 is 353,707.1, and 250e9 / 4,718,592 is 52,981.9.
_BASE_ROWS = (1_152, 1_920, 2_688, 3_456, 4_224)
PHASES = {
  "bert.py:base": [
    (256, 128, 900_000, 0.0, 1e-5),
    (256, 512, 100_000, 1e-5, 0.0),
  ],
  "modernbert.py:base": [
    # 5 x 3,633 steps of 2,688 x 1,024 tokens on average: 50.0 billion.
    (1_152, 1_024, 3_633, 0.0, 8e-4),
    *((rows, 1_024, 3_633, 8e-4, 8e-4) for rows in _BASE_ROWS[1:]),
    (4_608, 1_024, 353_708, 8e-4, 8e-4),
    (576, 8_192, 52_982, 3e-4, 3e-4),
    (576, 8_192, 10_597, 3e-4, 3e-7),
  ],
  "ettin.py:150m": [
    (4_608, 1_024, 360_277, 0.0, 8e-4),
    (4_608, 7_999, 6_783, 8e-4, 4e-4),
    (4_608, 7_999, 1_357, 4e-4, 1.6e-5),
  ],
  "ettin.py:1b": [  # A third: 566.7, 83.3 and 16.7 billion tokens.
    (4_608, 1_024, 120_093, 0.0, 5e-4),
    (4_608, 7_999, 2_261, 5e-4, 2.5e-4),
    (4_608, 7_999, 453, 2.5e-4, 1e-5),
  ],
  "mmbert.py:base": [
    # 5 x 4,360 steps of 2,688 x 1,024 tokens on average: 60.0 billion.
    (1_152, 1_024, 4_360, 0.0, 8e-4),
    *((rows, 1_024, 4_360, 8e-4, 8e-4) for rows in _BASE_ROWS[1:]),
    (4_608, 1_024, 474_718, 8e-4, 8e-4),
    (4_608, 8_192, 15_895, 8e-4, 8e-4),
    (4_608, 8_192, 2_650, 8e-4, 1.6e-5),
  ],
  "neobert.py": [
    (2_048, 1_024, 900_000, 0.0, 6e-5),
    (2_048, 1_024, 100_000, 6e-5, 6e-5),
    (512, 4_096, 50_000, 6e-5, 6e-5),
  ],
  "eurobert.py:210m": [
    (4_608, 2_048, 508_627, 0.0, 1e-4),
    (1_152, 8_192, 21_193, 1e-4, 0.0),
  ],
  "esm2.py:3b": [
    (2_048, 1_024, 450_000, 0.0, 4e-5),
    (2_048, 1_024, 50_000, 4e-5, 4e-5),
  ],
  # 8.1 billion tokens in each part but the last, which has 5.4.
  "bert24h.py": [
    (1_024, 128, 61_799, 2.5e-4, 4e-4),
    (3_072, 128, 20_600, 4e-4, 5.5e-4),
    (5_120, 128, 12_360, 5.5e-4, 7e-4),
    (7_168, 128, 8_829, 7e-4, 8.5e-4),
    (8_192, 128, 7_725, 8.5e-4, 1e-3),
    (8_192, 128, 7_725, 1e-3, 4e-4),
    (2_048, 512, 5_150, 4e-4, 0.0),
  ],
}


@pytest.mark.parametrize("name", PHASES)
def test_phases_by_hand(name):
  config = overrides.load_config(f"{CONFIGS}/{name}")
  found = split(config)
  assert config.train.num_steps == sum(n for _, _, n, _, _ in PHASES[name])
  for phase, expected in zip(found, PHASES[name], strict=True):
    rows, length, steps, first, last = expected
    data, (begin, count) = phase.config.data, phase.rates
    assert (data.batch_size, data.length) == (rows, length)
    assert phase.end - phase.begin == steps
    rate = optimizer.make_schedule(phase.config.optimizer, count)
    assert rate(phase.begin - begin) == pytest.approx(first, rel=2e-4)
    end = phase.end - begin
    if end == phase.config.optimizer.warmup_steps:  # The last of the rise.
      end -= 1
    assert rate(end) == pytest.approx(last, rel=2e-3, abs=1e-9)
    # 8 devices divide each microbatch.
    assert rows % (8 * phase.config.train.accumulate) == 0 or "ettin" in name


@pytest.mark.parametrize(
  ("name", "decays"),
  [  # Composer's decay over the peak of its phase.
    ("modernbert.py:base", {1e-5 / 8e-4, 1e-5 / 3e-4}),
    ("modernbert.py:large", {0.02}),
    ("mmbert.py:small", {0.1}),
  ],
)
def test_weight_decay_is_relative_to_the_peak_of_a_phase(name, decays):
  config = overrides.load_config(f"{CONFIGS}/{name}")
  found = {p.config.optimizer.weight_decay for p in split(config)}
  assert sorted(found) == pytest.approx(sorted(decays))


def test_masks_and_wavelengths_change_as_published():
  def values(name, *options):
    found = split(overrides.load_config(f"{CONFIGS}/{name}"))
    rows = [
      tuple(getattr(getattr(phase.config, s), o) for s, o in options)
      for phase in found[-3:]
    ]
    return list(dict.fromkeys(rows))

  theta, local = ("model", "rope_theta"), ("model", "local_rope_theta")
  mask, alpha = ("objective", "mask_rate"), ("data", "alpha")
  assert values("modernbert.py:base", theta, local, mask) == [
    (10_000.0, 10_000.0, 0.3),
    (160_000.0, 10_000.0, 0.3),
  ]
  long = (160_000.0, 160_000.0)
  assert values("ettin.py:68m", theta, local, mask) == [
    (10_000.0, 10_000.0, 0.3),
    (*long, 0.3),
    (*long, 0.15),
  ]
  assert values("mmbert.py:small", theta, local, mask, alpha) == [
    (10_000.0, 10_000.0, 0.3, 0.7),
    (*long, 0.15, 0.5),
    (*long, 0.05, 0.3),
  ]
  assert values("eurobert.py:610m", theta, mask) == [
    (10_000.0, 0.5),
    (250_000.0, 0.1),
  ]
  assert values("neobert.py", theta, mask) == [(10_000.0, 0.2)]


def test_a_day_has_as_many_tokens_as_are_given():
  config = overrides.load_config(f"{CONFIGS}/bert24h.py:7")
  read = sum(
    (phase.end - phase.begin) * phasing.tokens_of_step(phase)
    for phase in split(config)
  )
  assert 7e9 <= read < 7.01e9  # Steps are whole.
  assert config.name == "bert24h_7"
  for wrong in ("0", "1.5", "base"):
    with pytest.raises(ConfigError, match=rf"bert24h.py:{wrong}: .*billions"):
      overrides.load_config(f"{CONFIGS}/bert24h.py:{wrong}")


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
  steps = usual.train.num_steps
  assert optimizer.warmup_steps(usual.optimizer, steps) == steps * 6 // 100
  assert optimizer.warmup_steps(usual.optimizer, 50) == 3
  own = [
    "--config.optimizer.warmup_steps=7",
    "--config.train.num_steps=50",
  ]
  assert overrides.load_config(path, own).optimizer.warmup_steps == 7
