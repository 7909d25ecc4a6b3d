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
  state = {}

  def norm(name, p):
    state[f"{name}.weight"], state[f"{name}.bias"] = p["scale"], p["bias"]

  def dense(name, kernel, bias, inputs):
    state[f"{name}.weight"] = kernel.reshape(inputs, -1).T
    state[f"{name}.bias"] = bias.reshape(-1)

  D = cfg.width
  tables = params["encoder"]["embeddings"]
  for ours, theirs in (
    ("token", "word"),
    ("position", "position"),
    ("token_type", "token_type"),
  ):
    table = tables[ours]["embedding"]
    state[f"bert.embeddings.{theirs}_embeddings.weight"] = (
      table[:V] if ours == "token" else table
    )
  norm("bert.embeddings.LayerNorm", tables["norm"])
  for n in range(cfg.num_layers):
    p = jax.tree.map(lambda x, n=n: x[n], params["encoder"]["layers"])
    at = f"bert.encoder.layer.{n}"
    qkv = p["attention"]["qkv"]
    for i, name in enumerate(("query", "key", "value")):
      kernel, bias = qkv["kernel"][:, i], qkv["bias"][i]
      dense(f"{at}.attention.self.{name}", kernel, bias, D)
    out, up, down = p["attention"]["out"], p["mlp"]["up"], p["mlp"]["down"]
    dense(f"{at}.attention.output.dense", out["kernel"], out["bias"], D)
    norm(f"{at}.attention.output.LayerNorm", p["attention_norm"])
    dense(f"{at}.intermediate.dense", up["kernel"], up["bias"], D)
    dense(f"{at}.output.dense", down["kernel"], down["bias"], cfg.mlp_width)
    norm(f"{at}.output.LayerNorm", p["mlp_norm"])
  pooler, head = params["pooler"]["dense"], params["mlm_head"]
  dense("bert.pooler.dense", pooler["kernel"], pooler["bias"], D)
  transform, nsp = head["transform"], params["nsp_head"]["dense"]
  at = "cls.predictions"
  dense(f"{at}.transform.dense", transform["kernel"], transform["bias"], D)
  norm(f"{at}.transform.LayerNorm", head["norm"])
  state[f"{at}.bias"] = head["bias"][:V]
  dense("cls.seq_relationship", nsp["kernel"], nsp["bias"], D)

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


def run_peer(params, cfg, batch):
  """Returns the outputs of that model for a batch, with all hidden states."""
  import torch

  feed = {
    name: torch.tensor(batch[name], dtype=torch.long)
    for name in ("input_ids", "token_type_ids")
  }
  with torch.no_grad():
    return make_peer(params, cfg)(
      **feed,
      attention_mask=torch.tensor(batch["segment_ids"] > 0),
      output_hidden_states=True,
    )
