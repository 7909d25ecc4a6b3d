"""transformers' BERT with the parameters of a maskedlm model."""

import jax
import numpy as np
import pytest

from helpers.encoder_reference import SIZES, V


def make_peer(params, cfg):
  """Returns a BertForPreTraining with these parameters, in eval mode."""
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  peer = transformers.BertForPreTraining(
    transformers.BertConfig(
      vocab_size=V,
      num_hidden_layers=SIZES["num_layers"],
      hidden_size=SIZES["width"],
      num_attention_heads=SIZES["num_heads"],
      intermediate_size=SIZES["mlp_width"],
      max_position_embeddings=SIZES["max_positions"],
      hidden_act={"gelu": "gelu", "gelu_tanh": "gelu_new"}[cfg.activation],
      layer_norm_eps=cfg.norm_epsilon,
    )
  )
  state = encoder_state(params["encoder"], cfg, "bert")
  D = cfg.width
  pooler, head = params["pooler"]["dense"], params["mlm_head"]
  dense(state, "bert.pooler.dense", pooler["kernel"], pooler["bias"], D)
  transform, nsp = head["transform"], params["nsp_head"]["dense"]
  at = "cls.predictions"
  kernel, bias = transform["kernel"], transform["bias"]
  dense(state, f"{at}.transform.dense", kernel, bias, D)
  norm(state, f"{at}.transform.LayerNorm", head["norm"])
  state[f"{at}.bias"] = head["bias"][:V]
  dense(state, "cls.seq_relationship", nsp["kernel"], nsp["bias"], D)

  state = {
    name: torch.tensor(np.ascontiguousarray(x)) for name, x in state.items()
  }
  missing, unexpected = peer.load_state_dict(state, strict=False)
  # The missing keys are tied to others, or a buffer of positions.
  tied = ("decoder.weight", "decoder.bias", "position_ids", "token_type_ids")
  assert all(name.endswith(tied) for name in missing)
  assert not unexpected
  peer.tie_weights()
  return peer.eval()


def encoder_state(params, cfg, prefix):
  """Returns an encoder's parameters under transformers' names of BERT.

  Args:
    params: of the encoder.
    cfg: its architecture.
    prefix: of the names, such as "bert".
  """
  state = {}
  at, tables = f"{prefix}.embeddings", params["embeddings"]
  tokens = tables["token"]["embedding"][: cfg.vocab_size]
  state[f"{at}.word_embeddings.weight"] = tokens
  for name in ("position", "token_type"):
    state[f"{at}.{name}_embeddings.weight"] = tables[name]["embedding"]
  norm(state, f"{at}.LayerNorm", tables["norm"])
  for n in range(cfg.num_layers):
    p = jax.tree.map(lambda x, n=n: x[n], params["layers"])
    at, qkv = f"{prefix}.encoder.layer.{n}", p["attention"]["qkv"]
    for i, name in enumerate(("query", "key", "value")):
      kernel, bias = qkv["kernel"][:, i], qkv["bias"][i]
      dense(state, f"{at}.attention.self.{name}", kernel, bias, cfg.width)
    for name, module, inputs in (
      ("attention.output", p["attention"]["out"], cfg.width),
      ("intermediate", p["mlp"]["up"], cfg.width),
      ("output", p["mlp"]["down"], cfg.mlp_width),
    ):
      kernel, bias = module["kernel"], module["bias"]
      dense(state, f"{at}.{name}.dense", kernel, bias, inputs)
    norm(state, f"{at}.attention.output.LayerNorm", p["attention_norm"])
    norm(state, f"{at}.output.LayerNorm", p["mlp_norm"])
  return state


def norm(state, name, p):
  state[f"{name}.weight"], state[f"{name}.bias"] = p["scale"], p["bias"]


def dense(state, name, kernel, bias, inputs):
  state[f"{name}.weight"] = kernel.reshape(inputs, -1).T
  state[f"{name}.bias"] = bias.reshape(-1)
