"""Compares outputs with those of transformers' ELECTRA, given equal weights."""

import functools
import types

import jax
import numpy as np
import pytest

from helpers import bert_peer, model_logits
from maskedlm.config import defaults as config_lib
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.pretraining.objectives import electra

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

B, L, V, D, E, F = 5, 13, 131, 24, 10, 40


def make_config():
  model = config_lib.default("electra").model
  model.update(
    num_layers=2,
    width=D,
    num_heads=3,
    mlp_width=F,
    max_positions=17,
    embedding_width=E,
  )
  return EncoderConfig(vocab_size=V, **model)


def make_params(cfg, small):
  rng = np.random.default_rng(1)
  shapes = jax.eval_shape(
    lambda key: electra.init(cfg, small, key), jax.random.key(0)
  )
  return jax.tree.map(
    lambda x: np.float32(0.3 * rng.standard_normal(x.shape)), shapes
  )


def encoder_state(params, cfg):
  """Returns the encoder's parameters under transformers' names."""
  state = bert_peer.encoder_state(params, cfg, "electra")
  kernel, bias = params["project"]["kernel"], params["project"]["bias"]
  bert_peer.dense(state, "electra.embeddings_project", kernel, bias, E)
  return state


def peer_logits(kind, cfg, state, batch):
  peer = kind(
    transformers.ElectraConfig(
      vocab_size=V,
      embedding_size=E,
      hidden_size=cfg.width,
      num_hidden_layers=cfg.num_layers,
      num_attention_heads=cfg.num_heads,
      intermediate_size=cfg.mlp_width,
      max_position_embeddings=cfg.max_positions,
      layer_norm_eps=cfg.norm_epsilon,
    )
  )
  state = {k: torch.tensor(np.ascontiguousarray(x)) for k, x in state.items()}
  missing, unexpected = peer.load_state_dict(state, strict=False)
  assert not unexpected
  assert all(
    name.endswith(("position_ids", "lm_head.weight")) for name in missing
  )
  peer.tie_weights()
  with torch.no_grad():
    return (
      peer.eval()(
        input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
        token_type_ids=torch.tensor(batch["token_type_ids"], dtype=torch.long),
        attention_mask=torch.tensor(batch["segment_ids"]),
      )
      .logits.float()
      .numpy()
    )


@pytest.fixture(scope="module")
def models():
  cfg = make_config()
  small = electra.generator_config(cfg, size=2 / 3, layers=1.0)
  assert (small.width, small.num_heads) == (16, 2)
  rng = np.random.default_rng(0)
  real = np.arange(L) < np.array([13, 12, 7, 3, 1])[:, None]
  batch = {
    "input_ids": np.where(real, rng.integers(1, V, (B, L)), 0),
    "token_type_ids": np.where(real, rng.integers(0, 2, (B, L)), 0),
    "segment_ids": real.astype(np.int32),
  }
  return types.SimpleNamespace(
    cfg=cfg, small=small, params=make_params(cfg, small), batch=batch, real=real
  )


def test_discriminator(models):
  cfg, params, batch = models.cfg, models.params, models.batch
  head = params["discriminator_head"]
  at = "discriminator_predictions"
  theirs = peer_logits(
    transformers.ElectraForPreTraining,
    cfg,
    {
      **encoder_state(params["encoder"], cfg),
      f"{at}.dense.weight": head["transform"]["kernel"].T,
      f"{at}.dense.bias": head["transform"]["bias"],
      f"{at}.dense_prediction.weight": head["dense"]["kernel"].T,
      f"{at}.dense_prediction.bias": head["dense"]["bias"],
    },
    batch,
  )
  hidden = jax.jit(functools.partial(Encoder(cfg).apply, train=False))(
    {"params": params["encoder"]}, *batch.values()
  )
  apply = jax.jit(electra.DiscriminatorHead(cfg).apply)
  ours = apply({"params": head}, hidden)
  np.testing.assert_allclose(ours[models.real], theirs[models.real], atol=1e-4)


def test_generator(models):
  small, batch = models.small, models.batch
  generator = masked_lm.with_generator(models.params)
  head = generator["mlm_head"]
  at = "generator_predictions"
  theirs = peer_logits(
    transformers.ElectraForMaskedLM,
    small,
    {
      **encoder_state(generator["encoder"], small),
      f"{at}.dense.weight": head["transform"]["kernel"].T,
      f"{at}.dense.bias": head["transform"]["bias"],
      f"{at}.LayerNorm.weight": head["norm"]["scale"],
      f"{at}.LayerNorm.bias": head["norm"]["bias"],
      "generator_lm_head.bias": head["bias"][:V],
    },
    batch,
  )
  every = np.broadcast_to(np.arange(L), (B, L))
  ours = model_logits.mlm_logits(generator, small, batch, every)
  np.testing.assert_allclose(ours[models.real], theirs[models.real], atol=1e-4)
