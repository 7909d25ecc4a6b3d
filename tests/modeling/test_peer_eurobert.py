"""The same weights in transformers' EuroBERT give the same vectors.

It has grouped-query attention, SwiGLU, RMSNorm and rotary positions.
"""

import jax
import numpy as np
import pytest

from helpers import encoder_reference
from helpers.encoder_reference import V
from helpers.encoders import encode, make_params

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if not hasattr(transformers, "EuroBertModel"):
  pytest.skip("transformers has no EuroBERT", allow_module_level=True)

D, H, G, F, N = 24, 6, 2, 20, 3
K = D // H
CFG = encoder_reference.config(
  num_layers=N,
  num_heads=H,
  num_kv_heads=G,
  mlp_width=F,
  activation="silu",
  norm_epsilon=1e-5,
  type_vocab_size=0,
  embedding_norm=False,
  position="rope",
  rope_theta=160.0,
  norm_order="pre",
  norm_kind="rms",
  mlp="gated",
  biases=False,
)


def make_peer(params):
  """Returns EuroBertModel with these parameters."""
  peer = transformers.EuroBertModel(
    transformers.EuroBertConfig(
      vocab_size=V,
      hidden_size=D,
      intermediate_size=F,
      num_hidden_layers=N,
      num_attention_heads=H,
      num_key_value_heads=G,
      max_position_embeddings=64,
      rms_norm_eps=CFG.norm_epsilon,
      rope_parameters={"rope_type": "default", "rope_theta": CFG.rope_theta},
      pad_token_id=0,
      attn_implementation="eager",
    )
  )
  state = {
    "embed_tokens.weight": params["embeddings"]["token"]["embedding"][:V],
    "norm.weight": params["final_norm"]["scale"],
  }
  for n in range(N):
    p, at = jax.tree.map(lambda x, n=n: x[n], params["layers"]), f"layers.{n}"
    heads, mlp = p["attention"], p["mlp"]
    shared = heads["group_key_value"]["kernel"]
    state |= {
      f"{at}.input_layernorm.weight": p["attention_norm"]["scale"],
      f"{at}.post_attention_layernorm.weight": p["mlp_norm"]["scale"],
      f"{at}.self_attn.q_proj.weight": heads["group_query"]["kernel"]
      .reshape(D, H * K)
      .T,
      f"{at}.self_attn.k_proj.weight": shared[:, 0].reshape(D, G * K).T,
      f"{at}.self_attn.v_proj.weight": shared[:, 1].reshape(D, G * K).T,
      f"{at}.self_attn.o_proj.weight": heads["group_out"]["kernel"]
      .reshape(H * K, D)
      .T,
      f"{at}.mlp.gate_proj.weight": mlp["gate_up"]["kernel"][:, 0].T,
      f"{at}.mlp.up_proj.weight": mlp["gate_up"]["kernel"][:, 1].T,
      f"{at}.mlp.down_proj.weight": mlp["down"]["kernel"].T,
    }
  state = {k: torch.tensor(np.ascontiguousarray(x)) for k, x in state.items()}
  missing, unexpected = peer.load_state_dict(state, strict=False)
  assert not missing and not unexpected
  return peer.eval()


def test_same_vectors_as_transformers():
  params, batch = make_params(CFG), encoder_reference.make_batch()
  real = batch["segment_ids"] > 0
  with torch.no_grad():
    theirs = make_peer(params)(
      input_ids=torch.tensor(batch["input_ids"], dtype=torch.long),
      attention_mask=torch.tensor(real),
    )
  ours = encode(CFG, params, batch)
  expected = theirs.last_hidden_state.numpy()
  np.testing.assert_allclose(ours[real], expected[real], atol=1e-4)
