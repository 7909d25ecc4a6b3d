"""EncoderConfig: the architecture of an encoder, and the options it comes from.

It is stored in every checkpoint, so that one can be read without a config.
encoder_config builds it from config.model and checks it; encoder.py implements
it.
"""

import dataclasses

from maskedlm.core import options
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.core.options import option
from maskedlm.modeling.attention import dispatch


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
    12, "Attention heads, H.", low=1, high=65_536, frozen=True
  )
  num_kv_heads: int = option(
    0,
    "Heads of keys and values, G, each of which H / G heads of queries share "
    "(grouped-query attention); 0 for H.",
    low=0,
    high=65_536,
    frozen=True,
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
  )
  dropout: float = option(
    0.1,
    "Dropout after the embeddings, attention and the MLP.",
    low=0,
    below=1,
  )
  attention_dropout: float = option(
    0.1, "Dropout of the attention probabilities.", low=0, below=1
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
  )
  unroll: bool = option(
    True,
    "Unroll the loop over layers in training, except on CPUs with "
    "model.remat. A loop copies what each layer keeps for the backward pass; "
    "many unrolled layers take longer to compile.",
  )
  attention: str = option(
    "auto",
    "The implementation of attention in training.",
    choices=dispatch.IMPLEMENTATIONS,
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
  embedding_norm: bool = option(True, "Normalize the embeddings.", frozen=True)
  position: str = option(
    "learned",
    "Encoding of positions.",
    choices=("learned", "rope", "alibi"),
    frozen=True,
  )
  rope_theta: float = option(
    10_000.0, "Base of RoPE's wavelengths.", low=1, frozen=True
  )
  local_rope_theta: float = option(
    10_000.0,
    "Base of RoPE's wavelengths in layers with a window.",
    low=1,
    frozen=True,
  )
  local_window: int = option(
    0,
    "Tokens that a token attends to in local layers, both sides together; 0 "
    "for all.",
    low=0,
    frozen=True,
  )
  global_every: int = option(
    3,
    "With a window, layers 0, k, 2k, ... attend to the whole row.",
    low=1,
    frozen=True,
  )
  causal: bool = option(
    False, "Attend only to the token itself and those before it.", frozen=True
  )
  norm_order: str = option(
    "post",
    "Norms after each residual sum (post) or before each sublayer (pre).",
    choices=("post", "pre"),
    frozen=True,
  )
  norm_kind: str = option(
    "layer", "LayerNorm or RMSNorm.", choices=("layer", "rms"), frozen=True
  )
  skip_first_norm: bool = option(
    False,
    "No norm before the first attention; needs norm_order=pre.",
    frozen=True,
  )
  mlp: str = option(
    "plain",
    "Two dense layers (plain), or a third that gates the first (gated): GeGLU "
    "with gelu, SwiGLU with silu.",
    choices=("plain", "gated"),
    frozen=True,
  )
  biases: bool = option(True, "Biases in dense layers and norms.", frozen=True)
  scaled_init: bool = option(
    False,
    "Draw the output layers with init_stddev / sqrt(2 num_layers).",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelOptions):
  """The architecture of an encoder; `restored` reads it from a checkpoint.

  The fields are no options of config.model: only an import of static vectors
  has no layers, an objective sets family and right_to_left, and the last four
  are conventions for using the encoder, in which imported models differ
  (interop/).
  """

  num_layers: int = option(
    12,
    "Number of blocks, N; 0 for static vectors, which are embeddings alone.",
    low=0,
    high=4_096,
    frozen=True,
  )
  vocab_size: int = option(
    dataclasses.MISSING,
    "Tokens of the tokenizer; arrays have padded_vocab_size rows.",
    low=1,
    high=16_777_216,
    frozen=True,
  )
  family: str = option(
    "transformer",
    "Blocks of attention and MLP (transformer, encoder.py), or two LSTMs, one "
    "from each end (bilm, bilm.py).",
    choices=("transformer", "bilm"),
    frozen=True,
  )
  right_to_left: bool = option(
    False,
    "A causal encoder reads from the right: a token attends only to itself and "
    "those after it.",
    frozen=True,
  )
  pooler: str = option(
    "tanh",
    "Function after the pooler's dense layer.",
    choices=("tanh", "gelu", "relu", "norm"),
    frozen=True,
  )
  row_pool: str = option(
    "cls",
    "Vector of a row: that of [CLS], or the mean.",
    choices=("cls", "mean"),
    frozen=True,
  )
  pair_separators: int = option(
    1,
    "[SEP] between the texts of a pair; 2 in RoBERTa.",
    low=1,
    high=2,
    frozen=True,
  )
  pair_types: int = option(
    2,
    "Token types of a pair; 1 if both texts have type 0.",
    low=1,
    high=2,
    frozen=True,
  )

  @property
  def padded_vocab_size(self) -> int:
    """Rows of arrays, V: a multiple of 128, to split evenly and fill tiles."""
    return -(-self.vocab_size // 128) * 128

  @property
  def head_size(self) -> int:
    """Width of a head, K."""
    return self.width // self.num_heads

  @property
  def key_value_heads(self) -> int:
    """Heads of keys and values, G: as many as of queries unless grouped."""
    return self.num_kv_heads or self.num_heads

  @property
  def embedding_size(self) -> int:
    """Width of the embeddings, E: D unless they are projected to it."""
    return self.embedding_width or self.width

  @property
  def num_types(self) -> int:
    """Number of token types in a pair that the encoder distinguishes."""
    return min(self.pair_types, self.type_vocab_size)

  @property
  def reads(self) -> str:
    """The side of a token on which the encoder reads.

    It is left, right, both, or apart: the first half of a vector has read the
    left side, and the second half the right side.
    """
    if self.family == "bilm":
      return "apart"
    if not self.causal:
      return "both"
    return "right" if self.right_to_left else "left"

  @property
  def output_stddev(self) -> float:
    """Initial deviation of layers that add to the residual stream."""
    depth = 2 * self.num_layers if self.scaled_init else 1
    return self.init_stddev / depth**0.5

  @property
  def global_layers(self) -> tuple[bool, ...]:
    """Whether each layer attends to the whole segment: 0, k, 2k, ... do."""
    every = self.global_every if self.local_window else 1
    return tuple(n % every == 0 for n in range(self.num_layers))


def encoder_config(model, vocab_size: int, max_length: int) -> EncoderConfig:
  """Returns the EncoderConfig of config.model.

  Args:
    model: config.model.
    vocab_size: the tokenizer's.
    max_length: tokens in the longest row.

  Raises:
    ConfigError: a name is unknown, a value is out of range, a size is not
      divisible, or rows are longer than model.max_positions.
  """
  cfg = EncoderConfig(vocab_size=vocab_size, **model)
  options.check_options("model", ModelOptions, cfg)
  if cfg.width % cfg.num_heads:
    raise ConfigError(
      f"model.width={cfg.width} must be divisible by model.num_heads="
      f"{cfg.num_heads}; set model.width="
      f"{-(-cfg.width // cfg.num_heads) * cfg.num_heads} or change the heads."
    )
  if cfg.num_heads % cfg.key_value_heads:
    raise ConfigError(
      f"model.num_kv_heads={cfg.num_kv_heads} must divide model.num_heads="
      f"{cfg.num_heads}, as each is shared by equally many; 0 is as many."
    )
  if cfg.num_kv_heads == cfg.num_heads:  # The same model, the same arrays.
    cfg = dataclasses.replace(cfg, num_kv_heads=0)
  if cfg.position == "rope" and cfg.head_size % 2:
    raise ConfigError(
      f"model.position='rope' rotates pairs, so the head size must be even: "
      f"model.width={cfg.width} / model.num_heads={cfg.num_heads} is "
      f"{cfg.head_size}; change either."
    )
  if cfg.local_window % 2:
    raise ConfigError(
      f"model.local_window={cfg.local_window} counts both sides together: it "
      f"must be even; set it to {cfg.local_window + 1}."
    )
  check_attention(cfg)
  if cfg.skip_first_norm and cfg.norm_order == "post":
    raise ConfigError(
      "model.skip_first_norm=True needs model.norm_order='pre', as norms of "
      "'post' follow the layers; set it to False."
    )
  if max_length > cfg.max_positions:
    raise ConfigError(
      f"rows of data.length={max_length} tokens do not fit "
      f"model.max_positions={cfg.max_positions}; set model.max_positions="
      f"{max_length} or shorten the rows."
    )
  return cfg


def restored(fields) -> EncoderConfig:
  """Returns the EncoderConfig of a checkpoint, from its stored fields.

  The implementation of attention is chosen anew for this machine. Checkpoints
  older than model.unroll looped over the layers.

  Raises:
    CheckpointError: the fields are not those of an encoder.
  """
  try:
    cfg = EncoderConfig(**{"unroll": False, **fields, "attention": "auto"})
    options.check_options("encoder", EncoderConfig, cfg)
  except (TypeError, ConfigError) as error:
    raise CheckpointError(
      f"the checkpoint's architecture can't be used: {error}: was it written "
      "by a newer maskedlm, or edited?"
    ) from None
  return cfg


def check_attention(cfg: EncoderConfig, *, platform: str = "", **machine):
  """Raises ConfigError if cfg.attention cannot train the model.

  Args:
    cfg: the architecture.
    platform: as in dispatch.Case; "" for any.
    machine: capability, as in dispatch.Case.
  """
  case = attention_case(cfg, cfg.max_positions, platform=platform, **machine)
  dispatch.check_supported(cfg.attention, case)


def attention_case(cfg: EncoderConfig, length: int, **machine) -> dispatch.Case:
  """Returns the Case for which the attention of training is chosen.

  Args:
    cfg: the architecture.
    length: L.
    machine: platform and capability, as in dispatch.Case.
  """
  return dispatch.Case(
    **machine,
    length=length,
    head_size=cfg.head_size,
    dtype=cfg.dtype,
    dropout=cfg.attention_dropout,
    alibi=cfg.position == "alibi",
  )
