"""Small training states to save, and checks of saved ones."""

import contextlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from maskedlm.training.checkpoints.manager import open_checkpoints

META = {"config": {"seed": 3, "name": "tiny"}, "tokenizer": "ab12"}


OPTIMIZER = optax.chain(
  optax.scale_by_adam(),
  optax.masked(
    optax.add_decayed_weights(0.1), {"encoder": True, "head": False}
  ),
)


class State(NamedTuple):
  step: Any
  params: Any
  opt_state: Any
  skipped: Any


def make_state(step: int, devices: int = 8) -> State:
  """Returns a state in which every value is a function of the step."""
  mesh = jax.make_mesh(
    (devices,), ("data",), axis_types=(AxisType.Auto,),
    devices=jax.devices()[:devices],
  )  # fmt: skip
  kernel = np.arange(3 * 16, dtype=np.float32).reshape(3, 16) + step
  params = {
    "encoder": {
      "kernel": jax.device_put(
        kernel, NamedSharding(mesh, PartitionSpec(None, "data"))
      ),
      "scale": np.full(13, 1.5 + step, jnp.bfloat16),
    },
    "head": {"bias": np.array([step, 2**32 - 1, 7], np.uint32)},
  }
  whole = NamedSharding(mesh, PartitionSpec())
  state = State(
    np.int32(step), params, OPTIMIZER.init(params), np.uint32(2**31 + 5)
  )
  return jax.tree.map(
    lambda x: x if isinstance(x, jax.Array) and len(x.sharding.device_set) > 1
    else jax.device_put(x, whole),
    state,
  )  # fmt: skip


def like(state: State) -> State:
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state
  )


def assert_same(actual, expected):
  """Checks that trees have the same structure, dtypes, shardings and bits."""
  assert jax.tree.structure(actual) == jax.tree.structure(expected)
  for a, b in zip(
    jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
  ):
    assert a.dtype == b.dtype
    assert a.sharding.is_equivalent_to(b.sharding, a.ndim)
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@contextlib.contextmanager
def opened(workdir, *, keep_last=9, keep_best=0, log=None):
  """Yields open checkpoints; `log` collects their lines, if expected."""
  lines = [] if log is None else log
  checkpoints = open_checkpoints(
    workdir, keep_last=keep_last, keep_best=keep_best, log=lines.append
  )
  try:
    yield checkpoints
  finally:
    checkpoints.close()
  assert log is not None or not lines


def save_steps(workdir, *numbers, **options):
  with opened(workdir, **options) as checkpoints:
    for number in numbers:
      checkpoints.save(number, make_state(number), META, metric=None)


def files_of(workdir, step):
  """Returns the paths of a step's files, but for Orbax's empty marker."""
  path = workdir / "checkpoints" / str(step)
  files = (p for p in path.rglob("*") if p.is_file())
  return sorted(p for p in files if p.name != "orbax.checkpoint")


def flip(path):
  """Flips a bit of a file."""
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)


def truncate(path):
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
  path.write_bytes(b"")
