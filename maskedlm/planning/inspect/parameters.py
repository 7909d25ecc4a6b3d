"""Lists a model's parameters, and which of them come from init_from."""

import math
from typing import Any

import jax

from maskedlm.core.task import Params
from maskedlm.planning import memory
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.pretraining.initial import grow, init_from
from maskedlm.training.checkpoints import load


def parameter_figures(config: PretrainConfig, params: Params) -> dict[str, Any]:
  """Returns the numbers of parameters of the blocks of a model.

  Returns:
    parameters, the total; blocks, {"encoder/embeddings": ...}; and, with
    config.init_from, init_from: its path, and the names of the subtrees that
    are taken, new and unused (init_from.compare).

  Raises:
    CheckpointError, ConfigError: init_from can't be read, or doesn't fit.
  """
  blocks: dict[str, int] = {}
  for path, x in memory.by_path(params).items():
    block = "/".join(path.split("/")[:2])
    blocks[block] = blocks.get(block, 0) + math.prod(x.shape)
  figures = {"parameters": sum(blocks.values()), "blocks": blocks}
  if config.init_from:
    path = config.init_from
    old = jax.eval_shape(
      lambda old: grow.METHODS[config.grow](old, params),
      load.param_shapes(path),
    )
    parts = init_from.compare(path, old, params)
    figures["init_from"] = {"path": path, **parts._asdict()}
  return figures


def format_parameters(figures: dict[str, Any]) -> tuple[str, list[str]]:
  """Returns (title, lines) of the result of `parameter_figures`."""
  blocks, start = figures["blocks"], figures.get("init_from")
  title = f"Parameters: {figures['parameters']:,}"
  if not start:
    return title, [f"{size:>13,}  {block}" for block, size in blocks.items()]
  new = {name: name.split("/")[0] in start["new"] for name in blocks}
  taken = sum(size for name, size in blocks.items() if not new[name])
  lines = [
    f"{size:>13,}  {name}  {'new' if new[name] else 'from init_from'}"
    for name, size in blocks.items()
  ]
  if start["unused"]:
    unused = ", ".join(start["unused"])
    lines.append(f"not used of init_from: {unused}")
  return f"{title}, of which {taken:,} are from {start['path']}", lines
