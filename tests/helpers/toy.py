"""A task small enough to work by hand: two weighted least-squares terms."""

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.task import Task

ROWS = 12


def make_task(*, bad_steps=(), num_heldout_batches=2):
  """Returns a Task whose rows are numbers: step s reads rows 12 s .. 12 s + 11.

  params w [3]; row r: x = (1, r % 5, r % 7), target r % 3. Term "a" weighs row
  r by r % 6 (some rows by 0), term "b" by 1; steps in bad_steps have an
  infinite target.
  """

  def batch_at(split, step):
    r = row_ids(split, step)
    x = np.stack([np.ones(ROWS), r % 5, r % 7], 1).astype(np.float32)
    y = (r % 3).astype(np.float32)
    if split == "train" and step in bad_steps:
      y[5] = np.inf
    segment_ids = np.ones((ROWS, 2), np.int32)
    segment_ids[:, 1] = r % 2
    return {
      "x": x,
      "y": y,
      "weights": (r % 6).astype(np.float32),
      "segment_ids": segment_ids,
    }

  def row_ids(split, step):
    del split
    return np.arange(ROWS) + ROWS * step

  def init(key):
    kernel = 0.1 * jax.random.normal(key, (3, 1))
    return {"dense": {"kernel": kernel}}

  def corrupt(batch, key):
    return {**batch, "noise": jax.random.normal(key, (ROWS,))}

  def loss(params, batch, key, train):
    del key, train
    out = batch["x"] @ params["dense"]["kernel"][:, 0]
    error = (out - batch["y"]) ** 2
    weight = batch["weights"]
    b = 0.5 * error + 0.01 * batch["noise"] * out
    terms = {
      "a": (error * weight, weight),
      "b": (b, jnp.ones_like(b)),
    }
    return terms, {"error": (error, jnp.ones_like(error))}

  return Task(
    batch_at=batch_at,
    row_ids=row_ids,
    num_heldout_batches=num_heldout_batches,
    init=init,
    corrupt=corrupt,
    loss=loss,
    flops=lambda step: 1.0,
    describe={"objective": "toy"},
  )
