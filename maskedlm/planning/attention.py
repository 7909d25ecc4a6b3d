"""The implementation of attention that a config trains with."""

from maskedlm.modeling import architecture
from maskedlm.modeling.attention import dispatch
from maskedlm.pretraining.config import PretrainConfig


def attention_of(config: PretrainConfig, length: int, **machine) -> str:
  """Returns the implementation of attention in training, for rows of a length.

  If model.attention names one, it is returned unchecked, since the config may
  be for another machine.

  Args:
    config: the whole config; model, objective and tokenizer are read.
    length: L.
    machine: platform and capability, as in attention.dispatch.Case.

  Raises:
    ConfigError: as architecture.encoder_config.
  """
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, length
  )
  if cfg.attention != "auto":
    return cfg.attention
  case = architecture.attention_case(cfg, length, **machine)
  # An objective with rows of both kinds (gptbert.py).
  case = case._replace(mixed=hasattr(config.objective, "masked_share"))
  return dispatch.choose_implementation("auto", case)
