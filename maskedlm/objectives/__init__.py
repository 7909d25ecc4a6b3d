"""Pretraining objectives: one module each, found by its name.

Each makes its Task (task.py) by make(config, corpus, shard, *, ...) of

  config: the whole config (config.py);
  corpus: corpus.store.Corpus;
  shard: (index, count) of the equal part of each batch that this host reads;

and its options, which are those of config.objective. It raises ConfigError for
an option that is wrong, before anything is computed, and CorpusError for a
corpus that lacks what its rows are made of.
"""

from collections.abc import Callable

from ml_collections import ConfigDict

from maskedlm import footprint
from maskedlm.config import load_objective
from maskedlm.corpus import epochs
from maskedlm.task import Task

# Rows are packed where at most this share of them is left. A step is 0 to 3%
# longer then on a CPU (docs/performance.md), and not quite the paper's.
PAYS = 0.9


def make(config, corpus, shard: tuple[int, int] = (0, 1)) -> Task:
  """The Task that config.objective asks for; one host's, if no shard is given.

  Raises:
    ConfigError, CorpusError: as above.
  """
  return _make(settle(config, corpus), corpus, shard)


def settle(
  config: ConfigDict, corpus, *, log: Callable = lambda line: None
) -> ConfigDict:
  """The config, with objective.pack decided if it was left to the corpus.

  That is so where it is None: rows are packed if that saves a tenth of them, in
  any phase, unless a GPU would then lose its kernel (cudnn, which serves rows
  of one text; what that costs isn't measured). `log` is told. It follows from
  the corpus and the config, not from the machine, so a run that continues has
  the same rows; should a longer one get a second phase and another answer,
  resume.py refuses it. Raises what `make` raises.
  """
  if config.objective.get("pack", False) is not None:
    return config
  config = config.copy_and_resolve_references()
  rows = {}
  for pack in (True, False):
    config.objective.pack = pack
    rows[pack] = _make(config, corpus, (0, 1)).rows_per_epoch
  kernels = {  # Of rows that are not packed.
    footprint.attention_of(config, length, platform="gpu")
    for length in epochs.row_lengths(config.data)
  }
  phases = list(zip(rows[True], rows[False], strict=True))
  pays = any(packed <= PAYS * alone for packed, alone in phases)
  config.objective.pack = pays and "cudnn" not in kernels
  if config.objective.pack:
    counts = ", then ".join(f"{p:,} instead of {a:,}" for p, a in phases)
    log(f"short texts share rows (objective.pack=True): {counts} an epoch")
  return config


def _make(config: ConfigDict, corpus, shard: tuple[int, int]) -> Task:
  options = config.objective.to_dict()
  return load_objective(options.pop("name")).make(
    config, corpus, shard, **options
  )
