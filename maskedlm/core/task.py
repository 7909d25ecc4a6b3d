"""Task: the contract between the training loop and what is trained.

The loop (training/loop.py) does not depend on any objective. An objective or a
fine-tuning task is a module that builds a Task: a tuple of pure functions. The
input of a step is a function of (corpus, config, step), so only (step, params,
optimizer state) must be saved.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

Array = Any  # jax.Array or np.ndarray.
Batch = Mapping[str, Array]
Key = Any  # A typed jax PRNG key.
Params = Mapping[str, Any]
# name -> (sum, weight), per row, [B], or summed over rows. Pairs are added over
# microbatches, steps, hosts or a padded evaluation set, so sum / weight is the
# exact mean of the whole.
Metrics = Mapping[str, tuple[Array, Array]]


class Carried(NamedTuple):
  """State that steps of training pass on beside the parameters.

  It is saved with them. The metrics of Task.loss in training have OBSERVED, a
  tree of arrays, which is added over microbatches and goes to `update`.
  """

  init: Callable[[], Any]  # -> the arrays before the first step.
  # (arrays, batch, key) -> batch, for Task.corrupt in training; None for that.
  corrupt: Callable[[Any, Batch, Key], Batch] | None
  # (arrays, what the step observed, steps done with this one) -> arrays.
  update: Callable[[Any, Any, Array], Any]


class Fixed(NamedTuple):
  """Subtrees of parameters that training reads and never changes.

  They are on the devices, sharded as parameters, and in no checkpoint.
  """

  shapes: Any  # A tree like Params of jax.ShapeDtypeStructs; () for none.
  load: Callable[[], Any]


OBSERVED = "observed"
NOTHING = Carried(lambda: (), None, lambda arrays, observed, step: arrays)


class Task(NamedTuple):
  """The functions and numbers that define a training task for the loop.

  The leading dimension of a batch's arrays is rows. `batch_at` returns the rows
  of this host; on the device, batches are global.

  >>> def loss(params, batch, key, train):
  ...   error = (batch["x"] - params["mean"]) ** 2
  ...   return {"square": (error, jnp.ones(2))}, {}
  >>> task = Task(
  ...   batch_at=lambda split, step: {"x": np.float32([step, 4])},
  ...   row_ids=lambda split, step: np.arange(2),
  ...   num_heldout_batches=0,
  ...   init=lambda key: {"mean": jnp.float32(3)},
  ...   corrupt=lambda batch, key: batch,
  ...   loss=loss,
  ...   flops=lambda step: 0.0,
  ...   describe={},
  ... )
  >>> params, batch = task.init(None), task.batch_at("train", 1)
  >>> terms, metrics = task.loss(params, batch, None, True)
  >>> terms["square"][0].tolist()  # The loss of the batch is their mean, 2.5.
  [4.0, 1.0]
  """

  # (split, step) -> this host's numpy rows of that step's batch. Splits are
  # "train" and "heldout".
  batch_at: Callable[[str, int], Batch]
  # (split, step) -> ids of the global batch's rows, for error messages.
  row_ids: Callable[[str, int], Array]
  # Number of held-out batches; the last one may have rows of weight 0.
  num_heldout_batches: int
  # key -> params: a dict with a subtree for each module.
  init: Callable[[Key], Params]
  # (batch, key) -> batch with its tokens masked and the labels to predict. It
  # runs on the device, on the global batch, before the split into microbatches:
  # masks do not depend on the number of devices or microbatches.
  corrupt: Callable[[Batch, Key], Batch]
  # (params, corrupted batch, key, train) -> (terms, metrics) of each row. The
  # training loss is the sum over terms of sum / weight; weights do not depend
  # on params. The key is for dropout, unused if train is False.
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]]
  # step -> FLOPs of the matmuls of that global training step
  # (docs/results/performance.md).
  flops: Callable[[int], float]
  # Stored in checkpoints, so that they can be used without the config, such as
  # the encoder's architecture; JSON-serializable.
  describe: Mapping[str, Any]
  rows_per_epoch: int = 0  # Train rows; 0 if unknown.
  # The DomainShares of an epoch (data/batches/row_source.py); () if the corpus
  # is one domain.
  shares: tuple = ()
  # language_metrics.Languages whose held-out metrics are also reported
  # separately; a batch's `language_ids` [B] are indices into it. () for none.
  languages: tuple = ()
  # [V]: how often each token is in the training text, for accuracies by
  # frequency (training/watching.py); None if unknown.
  token_counts: Array | None = None
  # For metrics that are not means over rows (F1, exact match, MCC), both or
  # neither: outputs(params, held-out batch) -> arrays for the host, and
  # score(list of these, for all held-out batches in order) -> {metric: value}.
  outputs: Callable[[Params, Batch], Mapping[str, Array]] | None = None
  score: Callable[[list[Mapping[str, Array]]], Mapping[str, float]] | None = (
    None
  )
  # params -> further metrics of the weights, logged with the held-out ones; for
  # an objective of one's own. It is called on every host.
  evaluate: Callable[[Params], Mapping[str, float]] | None = None
  # Pairs of `corrupt` and `loss` by which each held-out batch is measured; () =
  # those of training. Their terms and metrics have different names.
  heldout: tuple[tuple[Callable, Callable], ...] = ()
  # State of training beside the parameters.
  carried: Carried = NOTHING
  # Further subtrees of the parameters that `loss` gets if train is True.
  fixed: Fixed = Fixed((), tuple)
  # Subtrees of the parameters that are networks of their own, if any: each
  # one's gradient is clipped by its own norm. They have all subtrees.
  networks: tuple[tuple[str, ...], ...] = ()
  # Path of a parameter -> path of another of its shape: what the optimizer
  # trains of the first is its difference from the second, which it follows.
  follows: Mapping[str, str] = MappingProxyType({})
  # The metric that selects the best checkpoint, higher is better; "" for the
  # lowest loss.
  best: str = ""
  # For a loss that compares all rows of a batch, both or neither: vectors(
  # params, batch, key, train) -> arrays [B, ...], and loss_of_vectors(vectors,
  # batch) -> what `loss` returns. Microbatches then only divide the work of
  # `vectors` (training/gradient_cache.py).
  vectors: Callable[[Params, Batch, Key, bool], Any] | None = None
  loss_of_vectors: Callable[[Any, Batch], tuple[Metrics, Metrics]] | None = None

  @property
  def measured(self) -> tuple[tuple[Callable, Callable], ...]:
    """The pairs of `corrupt` and `loss` for held-out batches."""
    return self.heldout or ((self.corrupt, self.loss),)

  def reading(self, fixed: Params) -> "Task":
    """Returns the task whose loss also gets these arrays of Task.fixed."""
    return self._replace(
      loss=lambda params, *args: self.loss({**params, **fixed}, *args)
    )

  def corrupt_with(self, arrays: Any, batch: Batch, key: Key) -> Batch:
    """Returns the corrupted batch of a step that carries these arrays."""
    if self.carried.corrupt:
      return self.carried.corrupt(arrays, batch, key)
    return self.corrupt(batch, key)
