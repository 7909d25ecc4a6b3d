"""The same weights in transformers' ModernBERT and EuroBERT: same numbers."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import encoder_reference, model_logits
from helpers.encoder_reference import B, L, V
from helpers.encoders import encode, make_params
from maskedlm.modeling.encoder import Encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if not hasattr(transformers, "EuroBertModel"):
  pytest.skip("transformers lacks these models", allow_module_level=True)

BATCH = encoder_reference.make_batch()
REAL = BATCH["segment_ids"] > 0
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
  return loaded(peer, state, tied={"decoder.weight"})


def loaded(peer, state, tied=frozenset()):
  """Returns the model with these arrays, all of its own but the tied ones."""
  state = {k: torch.tensor(np.ascontiguousarray(x)) for k, x in state.items()}
  missing, unexpected = peer.load_state_dict(state, strict=False)
  assert set(missing) <= tied and not unexpected
  peer.tie_weights()
  return peer.eval()


def outputs_of(peer):
  """Returns the outputs for BATCH."""
  with torch.no_grad():
    return peer(
      input_ids=torch.tensor(BATCH["input_ids"], dtype=torch.long),
      attention_mask=torch.tensor(REAL),
      output_hidden_states=True,
    )


def test_modernberts_numbers():
  params = encoder_reference.make_params(CFG)
  theirs = outputs_of(make_peer(params))
  hidden = encode(CFG, params["encoder"], BATCH)
  every = np.broadcast_to(np.arange(L), (B, L))
  logits = model_logits.mlm_logits(params, CFG, BATCH, every)
  expected = theirs.hidden_states[-1].numpy()
  np.testing.assert_allclose(hidden[REAL], expected[REAL], atol=1e-4)
  np.testing.assert_allclose(
    logits[REAL], theirs.logits.numpy()[REAL], atol=1e-4
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


# 6 heads of 4 share 2 heads of keys and values.
EURO = encoder_reference.config(
  num_layers=3,
  num_heads=6,
  num_kv_heads=2,
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


def make_eurobert(params):
  """Returns EuroBertModel with these parameters."""
  peer = transformers.EuroBertModel(
    transformers.EuroBertConfig(
      vocab_size=V,
      hidden_size=D,
      intermediate_size=F,
      num_hidden_layers=EURO.num_layers,
      num_attention_heads=EURO.num_heads,
      num_key_value_heads=EURO.num_kv_heads,
      max_position_embeddings=64,
      rms_norm_eps=EURO.norm_epsilon,
      rope_parameters={"rope_type": "default", "rope_theta": EURO.rope_theta},
      pad_token_id=0,
      attn_implementation="eager",
    )
  )
  state = {
    "embed_tokens.weight": params["embeddings"]["token"]["embedding"][:V],
    "norm.weight": params["final_norm"]["scale"],
  }
  for n in range(EURO.num_layers):
    p, at = jax.tree.map(lambda x, n=n: x[n], params["layers"]), f"layers.{n}"
    attention, mlp = p["attention"], p["mlp"]
    shared = attention["group_key_value"]["kernel"]
    state |= {
      f"{at}.input_layernorm.weight": p["attention_norm"]["scale"],
      f"{at}.post_attention_layernorm.weight": p["mlp_norm"]["scale"],
      f"{at}.self_attn.q_proj.weight": attention["group_query"]["kernel"]
      .reshape(D, D)
      .T,
      f"{at}.self_attn.k_proj.weight": shared[:, 0].reshape(D, 8).T,
      f"{at}.self_attn.v_proj.weight": shared[:, 1].reshape(D, 8).T,
      f"{at}.self_attn.o_proj.weight": attention["group_out"]["kernel"]
      .reshape(D, D)
      .T,
      f"{at}.mlp.gate_proj.weight": mlp["gate_up"]["kernel"][:, 0].T,
      f"{at}.mlp.up_proj.weight": mlp["gate_up"]["kernel"][:, 1].T,
      f"{at}.mlp.down_proj.weight": mlp["down"]["kernel"].T,
    }
  return loaded(peer, state)


def test_euroberts_vectors():
  """Grouped-query attention, SwiGLU, RMSNorm and rotary positions."""
  params = make_params(EURO)
  expected = outputs_of(make_eurobert(params)).last_hidden_state.numpy()
  ours = encode(EURO, params, BATCH)
  np.testing.assert_allclose(ours[REAL], expected[REAL], atol=1e-4)
