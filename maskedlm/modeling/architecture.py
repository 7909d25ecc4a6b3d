"""EncoderConfig: the one description of an encoder's architecture.

It is written into every checkpoint, so nothing that reads one repeats a size.
encoder_config makes it from config.model and checks it; encoder.py builds it.
"""

import dataclasses

from maskedlm.core.errors import ConfigError, check_known
from maskedlm.modeling.attention import dispatch

# The names that options choose from; encoder.py says what they stand for.
CHOICES = {
  "activation": ("gelu", "gelu_tanh"),
  "dtype": ("float32", "bfloat16"),
  "remat": ("none", "dots", "full"),
  "attention": dispatch.KNOWN,
  "position": ("learned", "rope", "alibi"),
  "norm_order": ("post", "pre"),
  "norm_kind": ("layer", "rms"),
  "mlp": ("plain", "gated"),
  "pooler": ("tanh", "gelu", "relu", "norm"),
  "row_pool": ("cls", "mean"),
}


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
  """The architecture. `EncoderConfig(**json.loads(...))` makes it again.

  config.py explains the fields. The defaults are BERT's: what a checkpoint
  of before has is what it means.
  """

  vocab_size: int  # The tokenizer's; arrays have padded_vocab_size rows.
  num_layers: int
  width: int
  num_heads: int
  mlp_width: int
  max_positions: int
  activation: str  # This and the other names: see CHOICES.
  dropout: float
  attention_dropout: float
  norm_epsilon: float
  init_stddev: float
  dtype: str  # Of activations.
  remat: str
  unroll: bool = False
  vocab_block: int = 65_536
  attention: str = "auto"
  type_vocab_size: int = 2
  embedding_width: int = 0
  embedding_norm: bool = True
  position: str = "learned"
  rope_theta: float = 10_000.0
  local_rope_theta: float = 10_000.0
  local_window: int = 0
  global_every: int = 3
  causal: bool = False
  norm_order: str = "post"
  norm_kind: str = "layer"
  skip_first_norm: bool = False
  mlp: str = "plain"
  biases: bool = True
  scaled_init: bool = False
  # How it is read, which imported encoders differ in (interop/).
  pooler: str = "tanh"  # What follows the pooler's dense layer.
  row_pool: str = "cls"  # What a row's label is told by: [CLS], or the mean.
  pair_separators: int = 1  # [SEP] between the texts of a pair; RoBERTa's 2.
  pair_types: int = 2  # Types of its texts: 1 where the second has type 0 too.

  @property
  def padded_vocab_size(self) -> int:
    """V of arrays: a multiple of 128, to split evenly and to fill tiles."""
    return -(-self.vocab_size // 128) * 128

  @property
  def head_size(self) -> int:
    """K."""
    return self.width // self.num_heads

  @property
  def embedding_size(self) -> int:
    """E, of the embeddings: D unless they are projected to it."""
    return self.embedding_width or self.width

  @property
  def num_types(self) -> int:
    """Of the tokens of a pair: those that the encoder and its rows have."""
    return min(self.pair_types, self.type_vocab_size)

  @property
  def output_stddev(self) -> float:
    """Initial standard deviation of what is added to the residual stream."""
    depth = 2 * self.num_layers if self.scaled_init else 1
    return self.init_stddev / depth**0.5

  @property
  def global_layers(self) -> tuple[bool, ...]:
    """For each layer, whether it sees the whole segment: 0, k, 2k, ... do."""
    every = self.global_every if self.local_window else 1
    return tuple(n % every == 0 for n in range(self.num_layers))


def encoder_config(model, vocab_size: int, max_length: int) -> EncoderConfig:
  """The EncoderConfig of config.model, for rows of up to max_length tokens.

  Raises:
    ConfigError: an unknown name, a size that is out of range or does not
      divide, a dropout outside of [0, 1), rows longer than model.max_positions.
  """
  cfg = EncoderConfig(vocab_size=vocab_size, **model)
  check_known("model", cfg, CHOICES)
  for name, least in _LEAST.items():
    if not getattr(cfg, name) >= least:
      raise ConfigError(
        f"model.{name}={getattr(cfg, name)} must be {least} or more."
      )
  for name in ("dropout", "attention_dropout"):
    if not 0 <= getattr(cfg, name) < 1:
      raise ConfigError(
        f"model.{name}={getattr(cfg, name)} must be at least 0 and below 1."
      )
  if cfg.width % cfg.num_heads:
    raise ConfigError(
      f"model.width={cfg.width} must be divisible by model.num_heads="
      f"{cfg.num_heads}; set model.width="
      f"{-(-cfg.width // cfg.num_heads) * cfg.num_heads} or change the heads."
    )
  if cfg.position == "rope" and cfg.head_size % 2:
    raise ConfigError(
      f"model.position='rope' turns pairs, so a head must be of even size: "
      f"model.width={cfg.width} / model.num_heads={cfg.num_heads} is "
      f"{cfg.head_size}; change either."
    )
  if cfg.local_window % 2:
    raise ConfigError(
      f"model.local_window={cfg.local_window} is of both sides together: it "
      f"must be even; set it to {cfg.local_window + 1}."
    )
  check_attention(cfg)
  if cfg.skip_first_norm and cfg.norm_order == "post":
    raise ConfigError(
      "model.skip_first_norm=True goes with model.norm_order='pre': the norms "
      "of 'post' stand after the layers; set it to False."
    )
  if max_length > cfg.max_positions:
    raise ConfigError(
      f"rows of {max_length} tokens (data.length, data.long_length) do not fit "
      f"model.max_positions={cfg.max_positions}; set model.max_positions="
      f"{max_length} or shorten the rows."
    )
  return cfg


def restored(fields) -> EncoderConfig:
  """The EncoderConfig of a checkpoint, on whatever machine it is opened.

  Which attention computes it is of the machine, and chosen anew.
  """
  return EncoderConfig(**{**fields, "attention": "auto"})


def check_attention(cfg: EncoderConfig, *, platform: str = "", **machine):
  """Raises ConfigError if cfg.attention can't train it, there or anywhere."""
  case = attention_case(cfg, cfg.max_positions, platform=platform, **machine)
  dispatch.check(cfg.attention, case)


def attention_case(
  cfg: EncoderConfig, length: int, *, one_text: bool = True, **machine
) -> dispatch.Case:
  """What the attention of training is chosen for.

  Args:
    cfg: the architecture.
    length: L.
    one_text: rows are one text, then padding; by default they may be.
    machine: Case's platform and capability.
  """
  return dispatch.Case(
    **machine,
    length=length,
    head_size=cfg.head_size,
    dtype=cfg.dtype,
    dropout=cfg.attention_dropout,
    alibi=cfg.position == "alibi",
    windows=bool(cfg.local_window),
    one_text=one_text,
  )


# Field -> its lowest value.
_LEAST = {
  "vocab_block": 1,
  "num_layers": 1,
  "width": 1,
  "num_heads": 1,
  "mlp_width": 1,
  "global_every": 1,
  "rope_theta": 1,
  "local_rope_theta": 1,
  "embedding_width": 0,
  "local_window": 0,
  "type_vocab_size": 0,
}
