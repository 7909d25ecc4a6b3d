"""The options of config.model: the architecture, and how it is computed."""

import dataclasses

from maskedlm.core.options import option
from maskedlm.modeling.attention import dispatch

# Options that LSTMs, of the objective bilm, don't have.
_ATTENDS = {"objective.name": lambda config: config.objective.name != "bilm"}
_MASKS = {
  "objective.name": lambda config: (
    config.objective.name not in ("causal", "bilm")
  )
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
  """Options of config.model; the defaults are those of BERT-base."""

  num_layers: int = option(
    12, "Number of blocks, N.", low=1, high=4_096, frozen=True
  )
  width: int = option(
    768, "Width of the hidden states, D.", low=1, high=65_536, frozen=True
  )
  num_heads: int = option(
    12,
    "Attention heads, H.",
    low=1,
    high=65_536,
    frozen=True,
    needs=_ATTENDS,
  )
  num_kv_heads: int = option(
    0,
    "Heads of keys and values, G, each of which H / G heads of queries share "
    "(grouped-query attention); 0 for H.",
    low=0,
    high=65_536,
    frozen=True,
    needs=_ATTENDS,
  )
  mlp_width: int = option(
    3072,
    "Width of the hidden layer of the MLP, F.",
    low=1,
    high=1_048_576,
    frozen=True,
  )
  max_positions: int = option(
    512, "Tokens in the longest row.", low=1, high=1_048_576, frozen=True
  )
  activation: str = option(
    "gelu",
    "Activation of the MLP: gelu (erf), gelu_tanh as in Google's BERT, or silu "
    "(x sigmoid(x)).",
    choices=("gelu", "gelu_tanh", "silu"),
    frozen=True,
    needs=_ATTENDS,
  )
  dropout: float = option(
    0.1,
    "Dropout after the embeddings, attention and the MLP.",
    low=0,
    below=1,
    phase=True,
  )
  attention_dropout: float = option(
    0.1,
    "Dropout of the attention probabilities.",
    low=0,
    below=1,
    phase=True,
    needs=_ATTENDS,
  )
  norm_epsilon: float = option(
    1e-12, "Added to the variance in norms.", low=0, high=1, frozen=True
  )
  init_stddev: float = option(
    0.02,
    "Deviation of the truncated normal that parameters are drawn from.",
    low=0,
    high=100,
  )
  dtype: str = option(
    "float32", "Type of activations.", choices=("float32", "bfloat16")
  )
  remat: str = option(
    "none",
    "Results that the backward pass recomputes: none, dots (all but those of "
    "matmuls) or full (all).",
    choices=("none", "dots", "full"),
    phase=True,
  )
  unroll: bool = option(
    True,
    "Unroll the loop over layers in training, except on CPUs with "
    "model.remat. A loop copies what each layer keeps for the backward pass; "
    "many unrolled layers take longer to compile.",
    phase=True,
  )
  attention: str = option(
    "auto",
    "The implementation of attention in training.",
    choices=dispatch.IMPLEMENTATIONS,
    phase=True,
    needs=_ATTENDS,
  )
  vocab_block: int = option(
    65_536,
    "Compute the logits of a larger vocabulary in blocks of about this many "
    "tokens, and again in the backward pass, to save memory. The loss is the "
    "same.",
    low=1,
  )
  type_vocab_size: int = option(
    2,
    "Token types (segments A and B); 0 for none.",
    low=0,
    high=1_024,
    frozen=True,
  )
  embedding_width: int = option(
    0,
    "Width of the embeddings, which are projected to model.width (as in "
    "ELECTRA-small); 0 for model.width.",
    low=0,
    high=65_536,
    frozen=True,
  )
  token_dropout: bool = option(
    False,
    "The vector of [MASK] is 0, and those of a text's other tokens are scaled "
    "by 0.88 / (1 - its share of [MASK]), as in ESM-2.",
    frozen=True,
    needs=_MASKS,
  )
  embedding_norm: bool = option(True, "Normalize the embeddings.", frozen=True)
  position: str = option(
    "learned",
    "Encoding of positions.",
    choices=("learned", "rope", "alibi"),
    frozen=True,
    needs=_ATTENDS,
  )
  rope_theta: float = option(
    10_000.0,
    "Base of RoPE's wavelengths.",
    low=1,
    frozen=True,
    phase=True,
    needs={"model.position": ("rope",), **_ATTENDS},
  )
  local_rope_theta: float = option(
    10_000.0,
    "Base of RoPE's wavelengths in layers with a window.",
    low=1,
    frozen=True,
    phase=True,
    needs={"model.local_window": True, "model.position": ("rope",), **_ATTENDS},
  )
  local_window: int = option(
    0,
    "Tokens that a token attends to in local layers, both sides together; 0 "
    "for all.",
    low=0,
    frozen=True,
    phase=True,
    needs=_ATTENDS,
  )
  global_every: int = option(
    3,
    "With a window, layers 0, k, 2k, ... attend to the whole row.",
    low=1,
    frozen=True,
    phase=True,
    needs={"model.local_window": True, **_ATTENDS},
  )
  causal: bool = option(
    False,
    "Attend only to the token itself and those before it.",
    frozen=True,
    needs=_MASKS,
  )
  norm_order: str = option(
    "post",
    "Norms after each residual sum (post) or before each sublayer (pre).",
    choices=("post", "pre"),
    frozen=True,
    needs=_ATTENDS,
  )
  norm_kind: str = option(
    "layer", "LayerNorm or RMSNorm.", choices=("layer", "rms"), frozen=True
  )
  skip_first_norm: bool = option(
    False,
    "No norm before the first attention; needs norm_order=pre.",
    frozen=True,
    needs=_ATTENDS,
  )
  mlp: str = option(
    "plain",
    "Two dense layers (plain), or a third that gates the first (gated): GeGLU "
    "with gelu, SwiGLU with silu; or your own (docs/design/own-files.md).",
    choices=("plain", "gated"),
    own=True,
    frozen=True,
    needs=_ATTENDS,
  )
  biases: bool = option(True, "Biases in dense layers and norms.", frozen=True)
  mlm_head: str = option(
    "dense",
    "Layers of the MLM head before its output table: a dense layer, activation "
    "and norm, as BERT's; or none (linear), with a bias only if model.biases.",
    choices=("dense", "linear"),
    frozen=True,
    needs=_ATTENDS,
  )
  tied: bool = option(
    True,
    "The MLM head's output table is that of the embeddings; False for a table "
    "of its own.",
    frozen=True,
    needs=_ATTENDS,
  )
  scaled_init: bool = option(
    False,
    "Draw the output layers with init_stddev / sqrt(2 num_layers).",
    needs=_ATTENDS,
  )
