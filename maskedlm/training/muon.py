"""Muon: orthogonalizes the momentum of each matrix of the layers.

Jordan et al. 2024 (kellerjordan.github.io/posts/muon), scaled to suit Adam's
rate and weight decay, as in Liu et al. (arXiv:2502.16982, section 2.2).
Embeddings, heads, norms and biases use Adam. optimizer.py calls it.

The matrices are independent of each other, so each is computed by one device.
Relative to the FLOPs of the layers in a step of T tokens over all devices, this
takes 4.2 D / T (F = 4 D).
"""

import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import PartitionSpec

from maskedlm.training.sharding import path_of

# Coefficients of x, x x^T x and (x x^T)^2 x in an iteration: Jordan's, which
# make small singular values grow fast.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5
# Smallest norm to divide by: if squares underflow, quotients must stay far
# below 1.
_SMALLEST = 1e-12
_RMS = 0.2  # RMS of an update, about Adam's (arXiv:2502.16982, section 2.2).

# Kernels of layers -> axes of the rows (inputs) and of the columns (outputs) of
# their matrices; the other axes number the matrices.
_Axes = tuple[int, ...]
_MATRICES: tuple[tuple[str, _Axes, _Axes], ...] = (
  (r"layers/.*qkv/kernel$", (1,), (3, 4)),  # [N, D, 3, H, K]
  (r"layers/.*attention/out/kernel$", (1, 2), (3,)),  # [N, H, K, D]
  (r"layers/.*group_query/kernel$", (1,), (2, 3, 4)),  # [N, D, G, H/G, K]
  (r"layers/.*group_key_value/kernel$", (1,), (3, 4)),  # [N, D, 2, G, K]
  (r"layers/.*group_out/kernel$", (1, 2, 3), (4,)),  # [N, G, H/G, K, D]
  (r"layers/.*mlp/gate_up/kernel$", (1,), (3,)),  # [N, D, 2, F]
  (r"layers/.*mlp/(up|down)/kernel$", (1,), (2,)),  # [N, D, F], [N, F, D]
  (r"layers/lstm/\w+_kernel$", (2,), (3,)),  # [N, 2, ...], bilm.py.
)


def scale_by_muon(
  adam: optax.GradientTransformation, b1: float, params: Any
) -> optax.GradientTransformation:
  """Returns Muon for the matrices of the layers, `adam` for the rest.

  With m <- b1 * m + (1 - b1) * g, the update of a matrix [R, C] is
    0.2 * sqrt(max(R, C)) * orthogonal(b1 * m + (1 - b1) * g).
  The state is only m, half of Adam's.

  Args:
    adam: the transformation of all other parameters.
    b1: decay of the momentum, which looks ahead as Nesterov's does.
    params: the parameters, or their ShapeDtypeStructs.
  """

  def update(grads, momentum, params=None):
    del params
    momentum = optax.tree.update_moment(grads, momentum, b1, 1)
    ahead = optax.tree.update_moment(grads, momentum, b1, 1)
    return jax.tree.map_with_path(_update_kernel, ahead), momentum

  muon = optax.GradientTransformation(optax.tree.zeros_like, update)
  rules = jax.tree.map_with_path(
    lambda path, _: "adam" if _axes(path_of(path)) is None else "muon", params
  )
  return optax.partition({"adam": adam, "muon": muon}, rules)


def orthogonal(x: jax.Array) -> jax.Array:
  """Returns approximately U V^T for x [..., R, C] = U S V^T; tiny x stays tiny.

  No decomposition is needed: S, divided by its norm, goes through an odd
  polynomial five times, which maps values above 0.005 into [0.68, 1.16].
  """
  if x.shape[-2] > x.shape[-1]:  # x x^T is smaller on the shorter side.
    return orthogonal(x.mT).mT
  norm = jnp.sqrt(jnp.sum(jnp.square(x), axis=(-2, -1), keepdims=True))
  x = x / jnp.maximum(norm, _SMALLEST)
  a, b, c = _COEFFICIENTS
  for _ in range(_STEPS):
    gram = x @ x.mT
    x = a * x + (b * gram + c * (gram @ gram)) @ x
  return x


def _axes(path: str) -> tuple[_Axes, _Axes] | None:
  """Returns the axes of a kernel's rows and columns; None if not for Muon."""
  for regex, rows, columns in _MATRICES:
    if re.search(regex, path):
      return rows, columns
  return None


def _update_kernel(path, x: jax.Array) -> jax.Array:
  """Returns the update of a kernel from its momentum x, in the shape of x."""
  axes = _axes(path_of(path))
  assert axes  # Else it is Adam's.
  rows, columns = axes
  others = [axis for axis in range(x.ndim) if axis not in (*rows, *columns)]
  order = (*others, *rows, *columns)
  moved = x.transpose(order)
  size = math.prod(x.shape[a] for a in rows)
  width = math.prod(x.shape[a] for a in columns)
  matrices = moved.reshape(-1, size, width)
  update = _orthogonal_over_mesh(matrices) * (_RMS * max(size, width) ** 0.5)
  return update.reshape(moved.shape).transpose(np.argsort(order))


def _orthogonal_over_mesh(matrices: jax.Array) -> jax.Array:
  """Returns orthogonal(matrices [n, R, C]), each computed by one device.

  The mesh is set by jax.set_mesh; without one, a single device is used.
  """
  mesh = jax.sharding.get_abstract_mesh()
  if mesh.empty or mesh.size == 1:
    return orthogonal(matrices)
  n = len(matrices)
  # Padded with zeros so that the number of devices divides them.
  filled = jnp.pad(matrices, ((0, -n % mesh.size), (0, 0), (0, 0)))
  spec = PartitionSpec(mesh.axis_names)
  filled = jax.lax.with_sharding_constraint(filled, spec)
  return orthogonal(filled)[:n]
