"""The options of config.model: the architecture, and how it is computed."""

import dataclasses
import functools

from maskedlm.core.options import frozen_option, option
from maskedlm.modeling.attention import dispatch

# Options that LSTMs, of the objective bilm, don't have.
_ATTENDS = {"objective.name": lambda config: config.objective.name != "bilm"}
_of_attention = functools.partial(frozen_option, needs=_ATTENDS)
_MASKS = {
  "objective.name": lambda config: (
    config.objective.name not in ("causal", "bilm")
  )
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
  """Options of config.model; the defaults are those of BERT-base."""

  num_layers: int = frozen_option(12, "Number of blocks, N.", low=1, high=4_096)
  width: int = frozen_option(
    768, "Width of the hidden states, D.", low=1, high=65_536
  )
  num_heads: int = _of_attention(12, "Attention heads, H.", low=1, high=65_536)
  num_kv_heads: int = _of_attention(
    0,
    "Heads of keys and values, G, each of which H / G heads of queries share "
    "(grouped-query attention); 0 for H.",
    low=0,
    high=65_536,
  )
  mlp_width: int = frozen_option(
    3072, "Width of the hidden layer of the MLP, F.", low=1, high=1_048_576
  )
  max_positions: int = frozen_option(
    512, "Tokens in the longest row.", low=1, high=1_048_576
  )
  activation: str = _of_attention(
    "gelu",
    "Activation of the MLP: gelu (erf), gelu_tanh as in Google's BERT, or silu "
    "(x sigmoid(x)).",
    choices=("gelu", "gelu_tanh", "silu"),
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
  norm_epsilon: float = frozen_option(
    1e-12, "Added to the variance in norms.", low=0, high=1
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
  type_vocab_size: int = frozen_option(
    2, "Token types (segments A and B); 0 for none.", low=0, high=1_024
  )
  embedding_width: int = frozen_option(
    0,
    "Width of the embeddings, which are projected to model.width (as in "
    "ELECTRA-small); 0 for model.width.",
    low=0,
    high=65_536,
  )
  token_dropout: bool = frozen_option(
    False,
    "The vector of [MASK] is 0, and those of a text's other tokens are scaled "
    "by 0.88 / (1 - its share of [MASK]), as in ESM-2.",
    needs=_MASKS,
  )
  embedding_norm: bool = frozen_option(True, "Normalize the embeddings.")
  position: str = _of_attention(
    "learned",
    "Encoding of positions. With disentangled (DeBERTa), the scores have terms "
    "of a token and its distance from the other.",
    choices=("learned", "rope", "alibi", "disentangled"),
  )
  rope_theta: float = frozen_option(
    10_000.0,
    "Base of RoPE's wavelengths.",
    low=1,
    phase=True,
    needs={"model.position": ("rope",), **_ATTENDS},
  )
  local_rope_theta: float = frozen_option(
    10_000.0,
    "Base of RoPE's wavelengths in layers with a window.",
    low=1,
    phase=True,
    needs={"model.local_window": True, "model.position": ("rope",), **_ATTENDS},
  )
  local_window: int = _of_attention(
    0,
    "Tokens that a token attends to in local layers, both sides together; 0 "
    "for all.",
    low=0,
    phase=True,
  )
  global_every: int = frozen_option(
    3,
    "With a window, layers 0, k, 2k, ... attend to the whole row.",
    low=1,
    phase=True,
    needs={"model.local_window": True, **_ATTENDS},
  )
  causal: bool = frozen_option(
    False, "Attend only to the token itself and those before it.", needs=_MASKS
  )
  norm_order: str = _of_attention(
    "post",
    "Norms after each residual sum (post) or before each sublayer (pre).",
    choices=("post", "pre"),
  )
  norm_kind: str = frozen_option(
    "layer", "LayerNorm or RMSNorm.", choices=("layer", "rms")
  )
  skip_first_norm: bool = _of_attention(
    False, "No norm before the first attention; needs norm_order=pre."
  )
  mlp: str = _of_attention(
    "plain",
    "Two dense layers (plain), or a third that gates the first (gated): GeGLU "
    "with gelu, SwiGLU with silu; or your own (docs/design/own-files.md).",
    choices=("plain", "gated"),
    own=True,
  )
  biases: bool = frozen_option(True, "Biases in dense layers and norms.")
  mlm_head: str = _of_attention(
    "dense",
    "Layers of the MLM head before its output table: a dense layer, activation "
    "and norm, as BERT's; or none (linear), with a bias only if model.biases.",
    choices=("dense", "linear"),
  )
  tied: bool = _of_attention(
    True,
    "The MLM head's output table is that of the embeddings; False for a table "
    "of its own.",
  )
  scaled_init: bool = option(
    False,
    "Draw the output layers with init_stddev / sqrt(2 num_layers).",
    needs=_ATTENDS,
  )
