"""Makes the weights of a larger model from those of a smaller one.

As ModernBERT-large began with the weights of base (Warner et al. 2024,
arXiv:2412.13663, section 2.2): a width is filled with copies of the smaller
one, of which a whole one is in the middle (Javaheripi et al. 2023, Phi-2), and
the depth by repeating layers (Rae et al. 2021, arXiv:2112.11446, appendix
G.3.3). What the larger model computes is another function, but a better start
than random weights.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params

# What may be larger than init_from's; the rest of the architecture is the same.
SIZES = (
  *("num_layers", "width", "num_heads", "num_kv_heads", "mlp_width"),
  "embedding_width",
)


def check_sizes(model: Any, old: Any, method: str = "tile") -> None:
  """Raises ConfigError, before text is prepared, if a size doesn't fit.

  `model` is config.model of the new model, `old` that of init_from.
  """
  if method == "pick":
    if model.num_layers > old.num_layers:
      raise ConfigError(
        f"grow='pick': model.num_layers={model.num_layers} of the "
        f"{old.num_layers} of init_from; set fewer, or grow=tile."
      )
    return
  if bool(model.num_kv_heads) != bool(old.num_kv_heads):
    raise ConfigError(
      f"grow: model.num_kv_heads={model.num_kv_heads}, and init_from has "
      f"{old.num_kv_heads}: the kernels of shared keys differ from those of a "
      "head's own (0); set both or neither."
    )
  for name in SIZES:
    new, least = getattr(model, name), getattr(old, name)
    if new and new < least:  # An embedding_width of 0 is the width.
      raise ConfigError(
        f"grow: model.{name}={new} is less than the {least} of init_from; set "
        f"--config.model.{name}={least} or more."
      )


def tile(old: Params, fresh: Params) -> Params:
  """Returns the subtrees of `old` in the shapes of `fresh`, a larger model's.

  Index i of a larger axis of n is taken from index (i - (n - m) // 2) mod m of
  the smaller one of m; of the layers, from round(i * m / n). Whole heads, and
  whole groups of heads, are copied. Subtrees and arrays that `fresh` lacks are
  left as they are.

  Raises:
    ConfigError: an array of `fresh` is smaller, or one of the embeddings has
      another number of rows.
  """
  return {name: _grow(x, fresh.get(name), name) for name, x in old.items()}


def pick(old: Params, fresh: Params) -> Params:
  """Returns `old` with only as many layers of its encoder as `fresh` has.

  Of m layers, n are those that end each n-th part: 2 and 4 of 4, from 1, as
  DistilBERT took one of two (arXiv:1910.01108, section 3).
  """
  n = jax.tree.leaves(fresh["encoder"]["layers"])[0].shape[0]
  m = jax.tree.leaves(old["encoder"]["layers"])[0].shape[0]
  places = np.array([round((i + 1) * m / n) - 1 for i in range(n)])
  picked = jax.tree.map(lambda x: x[places], old["encoder"]["layers"])
  return {**old, "encoder": {**old["encoder"], "layers": picked}}


METHODS: dict[str, Callable[[Params, Params], Params]] = {
  "": lambda old, fresh: old,
  "tile": tile,
  "pick": pick,
}


def _grow(old: Any, fresh: Any, path: str):
  if isinstance(old, dict) and isinstance(fresh, dict):
    return {
      name: _grow(x, fresh.get(name), f"{path}/{name}")
      for name, x in old.items()
    }
  if isinstance(old, dict) or isinstance(fresh, dict) or fresh is None:
    return old  # init_from.compare names what differs.
  if len(old.shape) != len(fresh.shape):
    return old
  for axis, (m, n) in enumerate(zip(old.shape, fresh.shape, strict=True)):
    rows_differ = path.endswith("/embedding") and axis == 0 and m != n
    if n < m or rows_differ:
      raise ConfigError(
        f"grow=tile: {path} is {list(old.shape)} in init_from and "
        f"{list(fresh.shape)} here; expected sizes that are equal or larger, "
        "and as many tokens and positions."
      )
    if m != n:
      places = (np.arange(n) - (n - m) // 2) % m
      if "/layers/" in path and axis == 0:
        places = np.array([min(round(i * m / n), m - 1) for i in range(n)])
      old = old[(slice(None),) * axis + (places,)]
  return old
