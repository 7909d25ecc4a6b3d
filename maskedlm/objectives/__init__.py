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

from maskedlm.config import load_objective
from maskedlm.task import Task

# Packed rows are taken where they are at most so many of the others. A step of
# them takes 0 to 3% longer (docs/performance.md), and is not quite the paper's.
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
  any phase, and the attention that was asked for can serve packed rows; `log`
  is told. It follows from the corpus and the config alone, so a run that
  continues has the same rows. Raises what `make` raises.
  """
  if config.objective.get("pack", False) is not None:
    return config
  config = config.copy_and_resolve_references()
  rows = {}
  for pack in (True, False):
    config.objective.pack = pack
    rows[pack] = _make(config, corpus, (0, 1)).rows_per_epoch
  config.objective.pack = config.model.attention != "cudnn" and any(
    packed <= PAYS * alone
    for packed, alone in zip(rows[True], rows[False], strict=True)
  )
  if config.objective.pack:
    log(
      f"short texts share rows (objective.pack=True): {rows[True][0]:,} an "
      f"epoch instead of {rows[False][0]:,}"
    )
  return config


def _make(config: ConfigDict, corpus, shard: tuple[int, int]) -> Task:
  options = config.objective.to_dict()
  return load_objective(options.pop("name")).make(
    config, corpus, shard, **options
  )
