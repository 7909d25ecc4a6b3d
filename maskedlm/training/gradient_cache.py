"""Losses that compare the rows of a whole batch, in the memory of a part of it.

A task whose loss needs the vectors of all rows, such as in-batch negatives, has
Task.vectors and Task.loss_of_vectors. Its microbatches only divide the work of
the encoder (GradCache, Gao et al. 2021, arXiv:2101.06983): the vectors are
computed part by part, the loss of all of them at once, and each part a second
time for its gradient. In JAX this is rematerialisation: a map over the parts,
each of which is checkpointed as a whole.

Each device along `data` goes through its own parts, and the gradient is summed
over devices once, after the last part. Over a mesh with `fsdp`, XLA divides the
work instead: there, each part gathers the parameters anyway.
"""

import jax
from jax.sharding import PartitionSpec

from maskedlm.core.task import Batch, Key, Params, Task
from maskedlm.training.microbatches import join_batch, split_batch

AXIS = "data"


def divide(task: Task, count: int) -> tuple[Task, int]:
  """Returns the task, and how many microbatches its steps have.

  They are `count`, unless the loss is one of whole batches: then the task
  itself computes vectors and outputs in `count` parts. The loss and gradient
  are those of the undivided batch; as with microbatches, dropout depends on the
  division.

  Args:
    count: a number that divides the rows of a device.
  """
  if task.vectors is None or task.loss_of_vectors is None or count == 1:
    return task, count
  vectors, loss_of_vectors = task.vectors, task.loss_of_vectors

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    def of_part(params, part, key):
      return vectors(params, part, key, train)

    all_vectors = _in_parts(jax.checkpoint(of_part), params, batch, key, count)
    return loss_of_vectors(all_vectors, batch)

  def outputs(params: Params, batch: Batch):
    def of_part(part):
      return task.outputs(params, part) if task.outputs else {}

    return join_batch(jax.lax.map(of_part, split_batch(batch, count)))

  return task._replace(loss=loss, outputs=outputs), 1


def _in_parts(function, params: Params, batch: Batch, key: Key, count: int):
  """Returns function(params, part, key) of all parts, joined.

  The mesh is set by jax.set_mesh; without one, a single device is used.
  """

  def of_device(params, batch, keys):
    parts = split_batch(batch, count), jax.random.split(keys[0], count)
    return join_batch(jax.lax.map(lambda xs: function(params, *xs), parts))

  mesh = jax.sharding.get_abstract_mesh().shape
  size = mesh.get(AXIS, 1) if mesh.get("fsdp", 1) == 1 else 1
  keys = jax.random.split(key, size)
  if size == 1:
    return of_device(params, batch, keys)
  by_rows = PartitionSpec(AXIS)
  return jax.shard_map(
    of_device,
    in_specs=(PartitionSpec(), by_rows, by_rows),
    out_specs=by_rows,
    axis_names={AXIS},
    check_vma=False,
  )(params, dict(batch), keys)
