"""Task: the contract between the training loop and what is trained.

The loop (train.py) knows no objective's name. An objective or a fine-tuning
task is one module that builds a Task: a tuple of pure functions. Everything
that a step consumes is a function of (corpus, config, step), so nothing but
(step, params, optimizer state) ever needs saving.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Array = Any  # jax.Array or np.ndarray.
Batch = Mapping[str, Array]
Key = Any  # A typed jax PRNG key.
Params = Mapping[str, Any]
# name -> (sum, weight), of each row [B] or already of them all: a mean over
# microbatches, steps, hosts or a padded evaluation set is then exactly
# sum / weight, whatever was added up.
Metrics = Mapping[str, tuple[Array, Array]]


class Task(NamedTuple):
  """A training task as the loop sees it: pure functions and numbers.

  Shapes: a batch's arrays have the rows as leading dimension. `batch_at`
  returns this host's rows only; on the device the batch is global.
  """

  # (split, step) -> this host's numpy rows of that step's batch. Splits are
  # "train" and "heldout".
  batch_at: Callable[[str, int], Batch]
  # (split, step) -> ids of the global batch's rows, to name them in errors.
  row_ids: Callable[[str, int], Array]
  # Number of held-out batches; the last one may hold rows of weight 0.
  num_heldout_batches: int
  # key -> params: a dict with one subtree for each module.
  init: Callable[[Key], Params]
  # (batch, key) -> batch with what was hidden and what is to be predicted.
  # On the device, on the whole global batch, before any microbatching: masks
  # do not depend on the number of devices or of accumulation steps.
  corrupt: Callable[[Batch, Key], Batch]
  # (params, corrupted batch, key, train) -> (terms, metrics), of each row. The
  # training loss is the sum over terms of sum / weight; weights do not depend
  # on params. The key drives dropout and is unused when train is False.
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]]
  # step -> matmul FLOPs of that global training step
  # (docs/results/performance.md).
  flops: Callable[[int], float]
  # What a checkpoint of this task must carry to be used without its config:
  # JSON-able (the encoder's architecture, for one).
  describe: Mapping[str, Any]
  # Rows of the train split, an epoch, in each phase; () = not known.
  rows_per_epoch: tuple[int, ...] = ()
  # Of each phase, what each language is of an epoch: (name, its rows, how many
  # an epoch reads); data/batches/domain_mixture.py. () = one language.
  shares: tuple = ()
  # Held-out metrics are given of each of these languages.Language as well: a
  # batch's `language_ids` [B] are places in it. () = of all rows together.
  languages: tuple = ()
  # For metrics that are no means over rows (F1, exact match, MCC), both or
  # none: (params, held-out batch) -> what the host needs of its rows, and the
  # list of these, for all held-out batches in order, -> {metric: value}.
  outputs: Callable[[Params, Batch], Mapping[str, Array]] | None = None
  score: Callable[[list[Mapping[str, Array]]], Mapping[str, float]] | None = (
    None
  )
  # As `corrupt`, of held-out batches; None: `corrupt` itself.
  corrupt_heldout: Callable[[Batch, Key], Batch] | None = None
  # The metric of the best checkpoint, higher is better; "" = the lowest loss.
  best: str = ""
