"""Pretraining objectives: one module each, found by its name.

Each makes its Task (task.py) by make(config, corpus, shard, *, ...) of

  config: the whole config (config.py);
  corpus: corpus.store.Corpus;
  shard: (index, count) of the equal part of each batch that this host reads;

and its options, which are those of config.objective. It raises ConfigError for
an option that is wrong, before anything is computed, and CorpusError for a
corpus that lacks what its rows are made of.
"""

from maskedlm.config import load_objective
from maskedlm.task import Task


def make(config, corpus, shard: tuple[int, int] = (0, 1)) -> Task:
  """The Task that config.objective asks for; one host's, if no shard is given.

  Raises:
    ConfigError, CorpusError: as above.
  """
  options = config.objective.to_dict()
  return load_objective(options.pop("name")).make(
    config, corpus, shard, **options
  )
