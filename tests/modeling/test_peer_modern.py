"""The same weights in transformers' ModernBERT give the same numbers."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import B, L, V
from maskedlm.modeling import heads
from maskedlm.modeling.encoder import Encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if not hasattr(transformers, "ModernBertForMaskedLM"):
  pytest.skip("transformers has no ModernBERT", allow_module_level=True)

D, H, F, N = 24, 3, 20, 5
CFG = encoder_reference.config(
  num_layers=N,
  mlp_width=F,
  norm_epsilon=1e-5,
  type_vocab_size=0,
  position="rope",
  rope_theta=160.0,
  local_rope_theta=10.0,
  local_window=4,
  global_every=3,
  norm_order="pre",
  skip_first_norm=True,
  mlp="gated",
  biases=False,
)


def make_params():
  ids = jax.ShapeDtypeStruct((B, L), np.int32)

  def init(key, ids):
    hidden = jax.numpy.zeros((B, L, D))
    table = jax.numpy.zeros((CFG.padded_vocab_size, D))
    return {
      "encoder": Encoder(CFG).init(key, ids, ids, ids, train=False)["params"],
      "mlm_head": heads.MlmHead(CFG).init(key, hidden, table)["params"],
    }

  return encoder_reference.randomise(
    jax.eval_shape(init, jax.random.key(0), ids)
  )


def make_peer(params):
  """Returns ModernBertForMaskedLM with these parameters."""
  peer = transformers.ModernBertForMaskedLM(
    transformers.ModernBertConfig(
      vocab_size=V,
      hidden_size=D,
      intermediate_size=F,
      num_hidden_layers=N,
      num_attention_heads=H,
      max_position_embeddings=64,
      global_attn_every_n_layers=CFG.global_every,
      local_attention=CFG.local_window,
      global_rope_theta=CFG.rope_theta,
      local_rope_theta=CFG.local_rope_theta,
      pad_token_id=0,
      attn_implementation="eager",
    )
  )
  tables, layers = params["encoder"]["embeddings"], params["encoder"]["layers"]
  head = params["mlm_head"]
  state = {
    "model.embeddings.tok_embeddings.weight": tables["token"]["embedding"][:V],
    "model.embeddings.norm.weight": tables["norm"]["scale"],
    "model.final_norm.weight": params["encoder"]["final_norm"]["scale"],
    "head.dense.weight": head["transform"]["kernel"].T,
    "head.norm.weight": head["norm"]["scale"],
    "decoder.bias": head["bias"][:V],
  }
  for n in range(N):
    p = jax.tree.map(lambda x, n=n: x[n], layers)
    at = f"model.layers.{n}"
    attention, mlp = p["attention"], p["mlp"]
    state |= {
      f"{at}.attn.Wqkv.weight": attention["qkv"]["kernel"].reshape(D, 3 * D).T,
      f"{at}.attn.Wo.weight": attention["out"]["kernel"].reshape(D, D).T,
      f"{at}.mlp_norm.weight": p["mlp_norm"]["scale"],
      f"{at}.mlp.Wi.weight": mlp["gate_up"]["kernel"].reshape(D, 2 * F).T,
      f"{at}.mlp.Wo.weight": mlp["down"]["kernel"].T,
    }
    if n:  # The first is skipped and not a parameter there.
      state[f"{at}.attn_norm.weight"] = p["attention_norm"]["scale"]
  state = {k: torch.tensor(np.ascontiguousarray(x)) for k, x in state.items()}
  missing, unexpected = peer.load_state_dict(state, strict=False)
  assert set(missing) <= {"decoder.weight"}  # Tied.
  assert not unexpected
  peer.tie_weights()
  return peer.eval()


def test_same_numbers_as_transformers():
  params, batch = make_params(), encoder_reference.make_batch()
  real = batch["segment_ids"] > 0
  with torch.no_grad():
    theirs = make_peer(params)(
      input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
      attention_mask=torch.tensor(real),
      output_hidden_states=True,
    )

  @jax.jit
  def apply(params, batch):
    arrays = (batch[k] for k in ("input_ids", "token_type_ids", "segment_ids"))
    hidden = Encoder(CFG).apply(
      {"params": params["encoder"]}, *arrays, train=False
    )
    every = np.broadcast_to(np.arange(L), (B, L))
    return hidden, heads.mlm_logits(params, CFG, batch, every)

  hidden, logits = apply(params, batch)
  expected = theirs.hidden_states[-1].numpy()
  np.testing.assert_allclose(hidden[real], expected[real], atol=1e-4)
  np.testing.assert_allclose(
    logits[real], theirs.logits.numpy()[real], atol=1e-4
  )


def test_published_size():
  with torch.device("meta"):  # Shapes only.
    peer = transformers.ModernBertModel(transformers.ModernBertConfig())
  published = sum(p.numel() for p in peer.parameters())
  fields = dataclasses.asdict(CFG) | {
    "vocab_size": 50_368,
    "num_layers": 22,
    "width": 768,
    "num_heads": 12,
    "mlp_width": 1_152,
  }
  cfg = type(CFG)(**fields)
  ids = jax.ShapeDtypeStruct((B, L), np.int32)
  made = jax.eval_shape(
    lambda key, ids: Encoder(cfg).init(key, ids, ids, ids, train=False),
    jax.random.key(0),
    ids,
  )
  count = sum(x.size for x in jax.tree.leaves(made["params"]))
  padding = (cfg.padded_vocab_size - cfg.vocab_size) * 768
  # The first block's norm is a parameter here, although it is skipped.
  assert count - padding - 768 == published == 149_014_272
