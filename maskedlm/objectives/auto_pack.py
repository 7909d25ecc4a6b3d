"""Decides whether short texts share rows, where objective.pack is None."""

from collections.abc import Callable

from ml_collections import ConfigDict

from maskedlm.data.batches import batching
from maskedlm.modeling import architecture
from maskedlm.modeling.attention import dispatch

# Pack if at most this share of the rows is left. A packed step is 0 to 3%
# slower on a CPU (docs/results/performance.md), and departs a little from the
# paper.
MAX_ROWS_RATIO = 0.9


def resolve(
  config: ConfigDict,
  rows_per_epoch: Callable[[ConfigDict], tuple[int, ...]],
  *,
  log: Callable,
) -> ConfigDict:
  """Returns the config with objective.pack set, if it was left at None.

  Rows are packed if that saves a tenth of them in any phase, unless a GPU would
  then lose its kernel (cudnn, which serves rows of one text; the cost of that
  is not measured). The answer depends on the corpus and the config, not on the
  machine, so a resumed run has the same rows; if a longer run gets a second
  phase and another answer, checkpoints/resume.py refuses it.

  Args:
    config: the whole config.
    rows_per_epoch: config with objective.pack set -> rows of each phase.
    log: called with one line if rows are packed.
  """
  if config.objective.get("pack", False) is not None:
    return config
  config = config.copy_and_resolve_references()
  rows = {}
  for pack in (True, False):
    config.objective.pack = pack
    rows[pack] = rows_per_epoch(config)
  unpacked_kernels = {
    attention_of(config, length, platform="gpu")
    for length in batching.row_lengths(config.data)
  }
  phases = list(zip(rows[True], rows[False], strict=True))
  saves = any(packed <= MAX_ROWS_RATIO * alone for packed, alone in phases)
  config.objective.pack = saves and "cudnn" not in unpacked_kernels
  if config.objective.pack:
    counts = ", then ".join(f"{p:,} instead of {a:,}" for p, a in phases)
    log(f"short texts share rows (objective.pack=True): {counts} an epoch")
  return config


def attention_of(config: ConfigDict, length: int, **machine) -> str:
  """Returns the implementation of attention for rows of a length.

  One that is asked for by name is not checked: the config may be another
  machine's.

  Args:
    config: the whole config.
    length: L.
    machine: platform and capability of an attention.dispatch.Case.
  """
  cfg = architecture.encoder_config(
    config.model, config.tokenizer.vocab_size, length
  )
  if cfg.attention != "auto":
    return cfg.attention
  several = ("pack", "isolate_documents")  # Options that make several texts.
  one_text = not any(config.objective.get(name) for name in several)
  case = architecture.attention_case(cfg, length, one_text=one_text, **machine)
  return dispatch.choose_implementation("auto", case)
