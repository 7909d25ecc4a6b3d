"""Every config: its shape as published, and two real steps of it, shrunk."""

import json
import pathlib

import jax
import numpy as np
import pytest

from maskedlm import config as base
from maskedlm import flags, pretrain
from maskedlm.modeling import encoder

CONFIGS = sorted(
  (pathlib.Path(__file__).parent.parent / "configs").glob("*.py")
)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_two_steps_of_a_shrunk_config(path, tiny, tmp_path):
  config = flags.load_config(str(path))
  _, corpus = tiny
  config.corpus.path = str(corpus)
  # The corpus's own options, so that it is taken as it is.
  for section in ("corpus", "tokenizer"):
    made = flags.load_config(str(tiny[0]))[section].to_dict()
    made.pop("path", None)
    config[section].update(made)
  config.model.update(
    num_layers=2, width=24, num_heads=4, mlp_width=40, max_positions=48
  )
  config.data.update(length=40, batch_size=8, long_length=48, long_batch_size=8)
  config.optimizer.warmup_steps = 1
  config.train.update(
    num_steps=2, log_every=1, eval_rows=8, checkpoint_every=2, eval_every=2
  )
  base.validate(config)
  assert pretrain.pretrain(config, tmp_path) == 0
  result = json.loads((tmp_path / "result.json").read_text())
  assert result["steps"] == 2
  assert np.isfinite(result["heldout_mlm_loss"])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_a_config_says_what_it_is(path):
  text = path.read_text()
  assert text.startswith('"""')
  docstring = text.split('"""')[1]
  assert f"--config=configs/{path.name}" in docstring
  assert "arxiv" in docstring.lower()


@pytest.mark.parametrize(
  ("name", "published"),
  [("bert_base", 109_482_240), ("bert_large", 335_141_888)],
)
def test_published_parameter_counts(name, published):
  """Encoder and pooler of the released models; the padding is not counted."""
  path = next(p for p in CONFIGS if p.stem == name)
  config = flags.load_config(str(path))
  cfg = encoder.encoder_config(config.model, config.tokenizer.vocab_size, 512)
  count = _count(cfg)
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * cfg.width
  pooler = cfg.width**2 + cfg.width
  assert count - padding + pooler == published


def _count(cfg):
  ids = jax.ShapeDtypeStruct((1, 7), np.int32)
  made = jax.eval_shape(
    lambda key, ids: encoder.Encoder(cfg).init(key, ids, ids, ids, train=False),
    jax.random.key(0),
    ids,
  )
  return sum(x.size for x in jax.tree.leaves(made["params"]))
