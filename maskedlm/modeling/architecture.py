"""EncoderConfig: the architecture of an encoder, and the options it comes from.

It is stored in every checkpoint, so that one can be read without a config.
encoder_config builds it from config.model and checks it; encoder.py implements
it.
"""

import dataclasses

from maskedlm.core import options, own_file
from maskedlm.core.errors import CheckpointError, ConfigError
from maskedlm.core.options import frozen_option
from maskedlm.modeling.attention import dispatch
from maskedlm.modeling.model_options import ModelOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderConfig(ModelOptions):
  """The architecture of an encoder; `restored` reads it from a checkpoint.

  The fields are no options of config.model: only an import of static vectors
  has no layers, the tokenizer and an objective set the next four, and the last
  four are conventions for using the encoder, in which imported models differ
  (interop/).
  """

  num_layers: int = frozen_option(
    12,
    "Number of blocks, N; 0 for static vectors, which are embeddings alone.",
    low=0,
    high=4_096,
  )
  vocab_size: int = frozen_option(
    dataclasses.MISSING,
    "Tokens of the tokenizer; arrays have padded_vocab_size rows.",
    low=1,
    high=16_777_216,
  )
  mask_id: int = frozen_option(
    -1, "The id of [MASK], for token_dropout; -1 if unused.", low=-1
  )
  family: str = frozen_option(
    "transformer",
    "Blocks of attention and MLP (transformer, encoder.py), or two LSTMs, one "
    "from each end (bilm, bilm.py).",
    choices=("transformer", "bilm"),
  )
  right_to_left: bool = frozen_option(
    False,
    "A causal encoder reads from the right: a token attends only to itself and "
    "those after it.",
  )
  shifted: bool = frozen_option(
    False,
    "The MLM head predicts a token at the position before it, whether it is "
    "masked or the next one (GPT-BERT).",
  )
  mask_decoder: bool = frozen_option(
    False,
    "A last block reads the vectors of the layers twice, by queries that know "
    "their absolute positions (DeBERTa's enhanced mask decoder).",
  )
  pooler: str = frozen_option(
    "tanh",
    "Function after the pooler's dense layer.",
    choices=("tanh", "gelu", "relu", "norm"),
  )
  row_pool: str = frozen_option(
    "cls",
    "Vector of a row: that of [CLS], the mean, or the mean of what the pooler "
    "makes of each token (late).",
    choices=("cls", "mean", "late"),
  )
  pair_separators: int = frozen_option(
    1,
    "[SEP] between the texts of a pair; 2 in RoBERTa, 0 in EuroBERT.",
    low=0,
    high=2,
  )
  pair_types: int = frozen_option(
    2, "Token types of a pair; 1 if both texts have type 0.", low=1, high=2
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
  chosen = vars(options.from_config(ModelOptions, model))
  cfg = EncoderConfig(vocab_size=vocab_size, **chosen)
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
  check_mlm_head(cfg)
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
    ConfigError: a layer is a file that is not there as it was in training.
  """
  try:
    cfg = EncoderConfig(**{"unroll": False, **fields, "attention": "auto"})
    options.check_options("encoder", EncoderConfig, cfg)
  except (TypeError, ConfigError) as error:
    raise CheckpointError(
      f"the checkpoint's architecture can't be used: {error}: was it written "
      "by a newer maskedlm, or edited?"
    ) from None
  if own_file.is_own(cfg.mlp):
    own_file.read("model.mlp", cfg.mlp)
  return cfg


def check_mlm_head(cfg: EncoderConfig) -> None:
  """Raises ConfigError if the embeddings can't be the head's output table."""
  if cfg.mlm_head == "dense" or not cfg.tied:
    return
  if not cfg.biases:
    raise ConfigError(
      "model.mlm_head='linear' with model.tied=True and model.biases=False has "
      "no parameters of its own; set model.tied=False."
    )
  if cfg.embedding_size != cfg.width:
    raise ConfigError(
      f"model.mlm_head='linear' multiplies vectors of {cfg.width} numbers by "
      f"the table of embeddings, which have {cfg.embedding_size}; set "
      "model.tied=False or model.mlm_head=dense."
    )


def check_attention(cfg: EncoderConfig, *, platform: str = "", **machine):
  """Raises ConfigError if cfg.attention cannot train the model.

  platform and capability are as in dispatch.Case.
  """
  case = attention_case(cfg, cfg.max_positions, platform=platform, **machine)
  dispatch.check_supported(cfg.attention, case)


def attention_case(cfg: EncoderConfig, length: int, **machine) -> dispatch.Case:
  """Returns the Case for which the attention of training is chosen.

  `machine` has its platform and capability.
  """
  return dispatch.Case(
    **machine,
    length=length,
    head_size=cfg.head_size,
    dtype=cfg.dtype,
    dropout=cfg.attention_dropout,
    alibi=cfg.position == "alibi",
    relative=cfg.position == "disentangled",
  )
