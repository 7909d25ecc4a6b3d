"""The same weights in transformers' BERT give the same numbers."""

import jax
import numpy as np
import pytest
import reference
from reference import SIZES, B, P, V

from maskedlm.modeling import heads, losses
from maskedlm.modeling.encoder import Encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def make_peer(params, cfg):
  """BertForPreTraining with our parameters, in eval mode."""
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
  # What is left out is tied to what was given, or a buffer of positions.
  tied = ("decoder.weight", "decoder.bias", "position_ids", "token_type_ids")
  assert all(name.endswith(tied) for name in missing)
  assert not unexpected
  peer.tie_weights()
  return peer.eval()


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_same_numbers_as_transformers(activation):
  cfg = reference.config(activation=activation)
  params, batch = reference.make_params(cfg), reference.make_batch()
  real = batch["segment_ids"] > 0
  rng = np.random.default_rng(6)
  # Any real position of each row, and any labels.
  positions = rng.integers(0, real.sum(1, keepdims=True), (B, P))
  labels, nsp_labels = rng.integers(0, V, (B, P)), rng.integers(0, 2, B)

  with torch.no_grad():
    theirs = make_peer(params, cfg)(
      input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
      token_type_ids=torch.tensor(batch["token_type_ids"], dtype=torch.long),
      attention_mask=torch.tensor(real),
      output_hidden_states=True,
    )

  @jax.jit
  def apply(params, batch):
    hidden = Encoder(cfg).apply(
      {"params": params["encoder"]},
      batch["input_ids"],
      batch["token_type_ids"],
      batch["segment_ids"],
      train=False,
    )
    pooled = heads.Pooler(cfg).apply({"params": params["pooler"]}, hidden)
    nsp = heads.NspHead(cfg).apply({"params": params["nsp_head"]}, pooled)
    return hidden, heads.mlm_logits(params, cfg, batch, positions), nsp

  hidden, mlm, nsp = apply(params, batch)
  close = {"atol": 1e-4, "rtol": 1e-4}
  np.testing.assert_allclose(
    hidden[real], theirs.hidden_states[-1].numpy()[real], **close
  )
  at = np.arange(B)[:, None], positions
  expected_mlm = theirs.prediction_logits[at]
  np.testing.assert_allclose(mlm, expected_mlm.numpy(), **close)
  expected_nsp = theirs.seq_relationship_logits
  np.testing.assert_allclose(nsp, expected_nsp.numpy(), **close)
  # Label 1 is "random" for both: the losses are the same too.
  for ours, logits, targets in (
    (mlm, expected_mlm.reshape(-1, V), labels),
    (nsp, expected_nsp, nsp_labels),
  ):
    total, weight = losses.cross_entropy(
      ours, targets, weights=np.ones(targets.shape)
    )
    loss = torch.nn.functional.cross_entropy(
      logits, torch.tensor(targets.reshape(-1))
    )
    mean = total.sum() / weight.sum()
    np.testing.assert_allclose(mean, loss.item(), rtol=1e-4)
