"""Decides whether short texts share rows if objective.pack is None."""

from collections.abc import Callable, Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm.core.options import option
from maskedlm.modeling import architecture
from maskedlm.modeling.attention import dispatch

# Pack if at most this share of the rows remains: a packed step is 0 to 3%
# slower on a CPU (docs/results/performance.md), and packing departs a little
# from the papers.
MAX_ROWS_RATIO = 0.9


def pack_option() -> Any:
  """Returns the option `pack` of an objective whose rows can be packed."""
  return option(
    None,
    "Put several short rows in one row, each attending only to itself; None: "
    "where that saves a tenth of the rows (auto_pack.py).",
    frozen=True,
  )


def decide(
  configs: Sequence[ConfigDict],
  rows_per_epoch: Callable[[bool], Sequence[int]],
  *,
  log: Callable[[str], None],
) -> bool:
  """Returns whether to pack rows if objective.pack is None.

  Rows are packed if that saves a tenth of them in any phase, unless a GPU would
  then lose its attention kernel (cudnn, which takes only rows of one text; the
  cost of that has not been measured). The answer depends on the corpus and the
  config, not on the machine, so a resumed run has the same rows.

  Args:
    configs: the whole config of each phase of the run.
    rows_per_epoch: whether rows are packed -> their number in each phase.
    log: called with one line if rows are packed.

  Raises:
    ConfigError: as architecture.encoder_config.
  """
  phases = list(zip(rows_per_epoch(True), rows_per_epoch(False), strict=True))
  if not any(packed <= MAX_ROWS_RATIO * alone for packed, alone in phases):
    return False
  for config in configs:
    if attention_of(config, config.data.length, platform="gpu") == "cudnn":
      return False
  counts = ", then ".join(
    dict.fromkeys(f"{p:,} instead of {a:,}" for p, a in phases)
  )
  log(f"short texts share rows (objective.pack=True): {counts} an epoch")
  return True


def attention_of(config: ConfigDict, length: int, **machine) -> str:
  """Returns the implementation of attention for rows of a length.

  If model.attention names one, it is returned unchecked, since the config may
  be for another machine.

  Args:
    config: the whole config; model, tokenizer and objective are read.
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
  several = ("pack", "isolate_documents")  # A row then has several texts.
  one_text = not any(config.objective.get(name) for name in several)
  case = architecture.attention_case(cfg, length, one_text=one_text, **machine)
  return dispatch.choose_implementation("auto", case)
