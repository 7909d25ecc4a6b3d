"""The device mesh, and the sharding of every array on it.

A table gives the PartitionSpec of each parameter by its path. Specs are aligned
to the trailing dimensions, so a kernel, the same kernel stacked by the scan
over layers, and its two Adam moments all match the same line.

Mesh axes: `data` (rows), `fsdp` (rows, and the parameters split with them),
`tensor` (heads, MLP width, vocabulary).
"""

import re
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from maskedlm.core.errors import ConfigError

AXES = ("data", "fsdp", "tensor")
ROWS = ("data", "fsdp")  # The axes that the rows of a batch are split over.

# Path regex -> spec of the trailing dimensions. The first match wins.
RULES = (
  (r"(token|(mlm|lm)_head)/embedding$", ("tensor", "fsdp")),  # [V, E]
  (r"qkv/kernel$", ("fsdp", None, "tensor", None)),  # [D, 3, H, K]
  (r"qkv/bias$", (None, "tensor", None)),  # [3, H, K]
  (r"attention/out/kernel$", ("tensor", None, "fsdp")),  # [H, K, D]
  # [D, G, H/G, K], [D, 2, G, K], [G, H/G, K, D]
  (r"group_query/kernel$", ("fsdp", "tensor", None, None)),
  (r"group_query/bias$", ("tensor", None, None)),
  (r"group_key_value/kernel$", ("fsdp", None, "tensor", None)),
  (r"group_key_value/bias$", (None, "tensor", None)),
  (r"group_out/kernel$", ("tensor", None, None, "fsdp")),
  (r"mlp/up/kernel$", ("fsdp", "tensor")),  # [D, F]
  (r"mlp/up/bias$", ("tensor",)),  # [F]
  (r"mlp/gate_up/kernel$", ("fsdp", None, "tensor")),  # [D, 2, F]
  (r"mlp/down/kernel$", ("tensor", "fsdp")),  # [F, D]
  (r"(mlm|sbo|lm)_head/bias$", ("tensor",)),  # [V]
  (r"(transform|project|pooler/dense)/kernel$", ("fsdp", None)),  # [D|E, D|E]
  # Small: replicated.
  (r"(position|token_type|place)/embedding$", ()),
  (r"norm/(scale|bias)$", ()),
  (r"(out|down|dense|transform|project)/bias$", ()),
  (r"dense/kernel$", ()),
  (r"crf/(start|transitions|end)$", ()),
  # [2, W, 4 C], [2, W, 4 C], [2, C, W]
  (r"/lstm/(input|recurrent|projection)_kernel$", ("fsdp", None)),
  (r"lstm/bias$", ()),
  (r"recurrent_kernel$", ()),  # [2, W, 4 W], of a head.
  (r"layers/mlp/", ()),  # Of model.mlp=FILE.py.
)


def mesh_sizes(mesh, num_devices: int) -> dict[str, int]:
  """Returns {axis: size} of config.mesh; a size of -1 takes what remains.

  Raises:
    ConfigError: the axes do not multiply to the number of devices.
  """
  sizes = [getattr(mesh, axis) for axis in AXES]
  known = int(np.prod([size for size in sizes if size != -1]))
  described = ", ".join(
    f"mesh.{a}={s}" for a, s in zip(AXES, sizes, strict=True)
  )
  rest = num_devices // known if known > 0 else 0
  takes = rest if -1 in sizes else 1  # Of what remains.
  if sizes.count(-1) > 1 or min(sizes) < -1 or known * takes != num_devices:
    raise ConfigError(
      f"{described} does not fit {num_devices} devices: the axes must "
      "multiply to that number; leave one of them -1 to take what remains."
    )
  return {
    axis: rest if size == -1 else size
    for axis, size in zip(AXES, sizes, strict=True)
  }


def make_mesh(mesh, devices=None) -> Mesh:
  """Returns the Mesh of config.mesh over the devices, by default all.

  Raises:
    ConfigError: the axes do not multiply to the number of devices, or these
      are several TPU slices.
  """
  devices = jax.devices() if devices is None else devices
  sizes = list(mesh_sizes(mesh, len(devices)).values())
  slices = {getattr(device, "slice_index", 0) for device in devices}
  if len(slices) > 1:
    raise ConfigError(
      f"the devices are {len(slices)} TPU slices, but a run uses one, as its "
      "mesh knows no slower network between slices: start it on the hosts of a "
      "single, larger slice."
    )
  # jax.make_mesh refuses some meshes of v4 and v5p.
  devices = mesh_utils.create_device_mesh(
    sizes, devices, allow_split_physical_axes=True
  )
  # With Explicit axes, gathers raise.
  return Mesh(devices, AXES, axis_types=(AxisType.Auto,) * 3)


def path_of(key_path) -> str:
  """Returns a pytree key path as "encoder/layers/mlp/up/kernel"."""
  return jax.tree_util.keystr(key_path, simple=True, separator="/")


def by_path(tree) -> dict[str, Any]:
  """Returns {path: leaf} of a tree, in its order."""
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return {path_of(path): x for path, x in leaves}


def spec_of(path: str, shape: tuple[int, ...], mesh: Mesh) -> PartitionSpec:
  """Returns the PartitionSpec of one array, from RULES.

  Raises:
    ConfigError: no rule matches, or an axis doesn't divide its dimension.
  """
  if not shape:
    return PartitionSpec()
  matches = (spec for pattern, spec in RULES if re.search(pattern, path))
  trailing = next(matches, None)
  if trailing is None and not re.search(r"(^|/)encoder/", path):
    trailing = ()  # A head of one's own: small, so it is replicated.
  if trailing is None:
    raise ConfigError(
      f"no sharding rule matches the parameter {path} {shape}; add a line for "
      "it to RULES in maskedlm/training/sharding.py."
    )
  if len(trailing) > len(shape):  # An update rule keeps less of it.
    trailing = ()
  spec = (None,) * (len(shape) - len(trailing)) + tuple(trailing)
  for size, axis in zip(shape, spec, strict=True):
    if axis and size % mesh.shape[axis]:
      raise ConfigError(
        f"{path} {shape}: {size} does not divide by mesh.{axis}="
        f"{mesh.shape[axis]}; choose a mesh.{axis} that divides it."
      )
  return PartitionSpec(*spec)


def tree_shardings(tree, mesh: Mesh):
  """Returns a NamedSharding for each array of an (abstract) tree."""
  return jax.tree_util.tree_map_with_path(
    lambda path, x: NamedSharding(
      mesh, spec_of(path_of(path), tuple(x.shape), mesh)
    ),
    tree,
  )


def gather(params, mesh: Mesh):
  """Returns the parameters, with those outside the layers gathered over `fsdp`.

  Those of the layers are gathered one layer at a time, within the scan. The
  token embedding can't stay split by width: the gradient of a lookup would go
  from rows split over devices to a width split over them, for which XLA makes a
  full copy.
  """

  def whole(path, x):
    path = path_of(path)
    if re.search(r"(^|/)layers/", path):
      return x
    spec = spec_of(path, x.shape, mesh)
    spec = PartitionSpec(*(None if axis == "fsdp" else axis for axis in spec))
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

  return jax.tree_util.tree_map_with_path(whole, params)


def abstract(shapes, mesh: Mesh):
  """Returns a tree of shapes as ShapeDtypeStructs with shardings."""
  return jax.tree.map(
    lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s),
    shapes,
    tree_shardings(shapes, mesh),
  )


def describe_parameters(params, mesh: Mesh) -> str:
  """Returns text with a line for each parameter: path, shape, spec."""
  return "".join(
    f"{path} {tuple(x.shape)} {tuple(spec_of(path, tuple(x.shape), mesh))}\n"
    for path, x in by_path(params).items()
  )


def rows(mesh: Mesh) -> NamedSharding:
  """Returns the sharding of rows over data and fsdp, other dimensions whole."""
  return NamedSharding(mesh, PartitionSpec(ROWS))


def replicated(mesh: Mesh) -> NamedSharding:
  """Returns the sharding with a copy on every device."""
  return NamedSharding(mesh, PartitionSpec())


def check_batch(batch_size: int, accumulate: int, mesh) -> None:
  """Raises ConfigError unless devices and microbatches divide the rows."""
  divisor = mesh.shape["data"] * mesh.shape["fsdp"] * accumulate
  if batch_size % divisor or batch_size < divisor:
    below = max(batch_size // divisor, 0) * divisor
    nearest = f"{below} or {below + divisor}" if below else str(divisor)
    raise ConfigError(
      f"a batch of {batch_size} rows must be divisible by mesh.data * "
      f"mesh.fsdp * train.accumulate = {mesh.shape['data']} * "
      f"{mesh.shape['fsdp']} * {accumulate}; take {nearest}, or change the "
      "mesh."
    )


def data_shard(mesh: Mesh) -> tuple[int | tuple[int, ...], int]:
  """Returns (index, count): which of `count` parts of a batch this host reads.

  If the mesh follows the chips' wiring, as on a TPU pod, a host's devices may
  not be neighbours in it; index is then a tuple, in increasing order. Hosts
  that differ only along `tensor` read the same rows.

  Raises:
    ConfigError: two hosts share some of their rows but not all.
  """
  blocks = mesh.devices.reshape(-1, mesh.shape["tensor"])
  of_host: dict[int, list[int]] = {}
  for i, devices in enumerate(blocks):
    for host in {device.process_index for device in devices}:
      of_host.setdefault(host, []).append(i)
  if len(blocks) != sum(map(len, {tuple(x) for x in of_host.values()})):
    raise ConfigError(
      f"mesh.tensor={mesh.shape['tensor']}: hosts would share some of their "
      "rows but not all; choose a divisor or a multiple of the number of "
      "devices of a host."
    )
  mine = of_host[jax.process_index()]
  index, count = mine[0] // len(mine), len(blocks) // len(mine)
  if mine == list(range(index * len(mine), (index + 1) * len(mine))):
    return index, count
  return tuple(mine), len(blocks)


def put_on_devices(params, like):
  """Returns numpy or jax arrays as jax arrays, sharded as those of `like`.

  Numpy arrays must be equal on all hosts. device_put is not used for them, as
  it would gather the arrays of all hosts to compare them.
  """

  def put(x, like):
    if isinstance(x, jax.Array):
      return jax.device_put(x, like.sharding)
    return jax.make_array_from_callback(x.shape, like.sharding, lambda i: x[i])

  return jax.tree.map(put, params, like)


def place(batch, mesh: Mesh):
  """Transfers this host's rows of a batch to its devices, as global arrays."""
  sharding = rows(mesh)
  return jax.tree.map(
    lambda x: jax.make_array_from_process_local_data(sharding, x), dict(batch)
  )
