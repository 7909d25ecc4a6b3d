"""Starts pretraining from another model, for a new domain or longer rows.

config.init_from names a run or an import (`maskedlm import`). Its architecture
and its tokenizer become the config's before anything is prepared
(`copy_architecture`); a fresh run starts from its weights (`initial_weights`).
See Gururangan et al. 2020, "Don't stop pretraining"
(https://arxiv.org/abs/2004.10964).
"""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.pretraining.initial import grow

# Options that name another model, whose tokenizer a run then has.
SOURCES = ("init_from", "continue_from", "teacher")


def copy_architecture(config: ConfigDict, given: Collection[str] = ()) -> None:
  """Copies the architecture and the tokenizer of another model into a config.

  The config is changed in place if it has init_from or continue_from; if it has
  only a teacher, the tokenizer alone is copied. The options `given` on the
  command line, such as "model.rope_theta", keep their values.

  Raises:
    CheckpointError, ConfigError: the model can't be opened or has no encoder,
      or tokenizer.path is another tokenizer.
    CorpusError: a tokenizer can't be read.
  """
  option = next((n for n in SOURCES if config[n]), "")
  if not option:
    return
  path = config[option]
  from maskedlm.data.tokenizers.tokenizer import load_tokenizer
  from maskedlm.training.checkpoints import load

  start = load.describe_checkpoint(path)
  if config.grow:
    grow.check_sizes(config.model, start.cfg, config.grow)
  with config.unlocked():
    resized = {"tile": grow.SIZES, "pick": ["num_layers"]}.get(config.grow, ())
    copied = architecture(start.cfg, config.model)
    for name, value in copied.items() if option != "teacher" else ():
      if f"model.{name}" not in given and name not in resized:
        config.model[name] = value
  for name in ("kind", "vocab_size"):
    if f"tokenizer.{name}" not in given:  # Else existing.py compares them.
      config.tokenizer[name] = getattr(start.tokenizer, name)
  if "tokenizer.path" not in given or not config.tokenizer.path:
    config.tokenizer.path = str(load.tokenizer_dir(path))
    return
  lowercase = (
    config.tokenizer.lowercase if "tokenizer.lowercase" in given else None
  )
  tokenizer = load_tokenizer(config.tokenizer.path, lowercase=lowercase)
  if tokenizer.sha256 != start.tokenizer.sha256:
    raise ConfigError(
      f"tokenizer.path={config.tokenizer.path} is not the tokenizer of "
      f"{option}={path}: leave it out, or give the model that "
      "tokenizer with `maskedlm tokenizer replace` and start from the result."
    )


def architecture(cfg: Any, model: Collection[str]) -> dict[str, Any]:
  """Returns the architecture `cfg` as options of config.model.

  Those that `model` has, without vocab_size, which is the tokenizer's, options
  of training, and the direction, which is the objective's.
  """
  return {
    field.name: getattr(cfg, field.name)
    for field in dataclasses.fields(cfg)
    if field.metadata.get("frozen")
    and field.name in model
    and field.name != "causal"
  }


def initial_weights(
  path: str, *, log: Callable[[str], None], method: str = ""
) -> Callable[[Params], Params]:
  """Returns start_from of loop.run: fresh parameters -> those to start from.

  Subtrees that both models have, such as the encoder and the MLM head, are
  copied, unless the MLM head is a generator's (ELECTRA) in only one of them;
  the others stay fresh. A log line names them (see `compare`).

  `path` is config.init_from, `method` config.grow.

  Raises (when the result is called):
    CheckpointError, ConfigError: as load.open_checkpoint, or a subtree has
      different shapes in the two models.
  """

  def begin(fresh: Params) -> Params:
    from maskedlm.runtime import multihost
    from maskedlm.training.checkpoints import load

    source = multihost.run_on_all_hosts(
      lambda: load.open_checkpoint(path), facts=load.facts
    )
    old = grow.METHODS[method](source.params, fresh)
    parts = compare(path, old, fresh)
    new = f"; initialized: {', '.join(parts.new)}" if parts.new else ""
    log(f"weights of {path}: {', '.join(parts.taken)}{new}")
    if source.cfg.causal:
      log(
        f"{path} is a causal model; here the objective and model.causal decide "
        "what a token attends to"
      )
    return {
      name: old[name] if name in parts.taken else fresh[name] for name in fresh
    }

  return begin


class Parts(NamedTuple):
  """Names of subtrees of parameters, such as "mlm_head"."""

  taken: list[str]  # Copied from init_from.
  new: list[str]  # Initialised: init_from lacks them.
  unused: list[str]  # Only init_from has them; `inspect` tells.


def compare(path: str, old: Params, fresh: Params) -> Parts:
  """Returns which subtrees, of arrays or shapes, a run takes from init_from.

  Raises:
    ConfigError: a subtree of both has different shapes.
  """
  # One MLM head reads the generator's vectors, the other the encoder's.
  other_head = ("generator" in old) != ("generator" in fresh)
  usable = [n for n in old if not (other_head and n == "mlm_head")]
  parts = Parts(
    taken=[name for name in fresh if name in usable],
    new=[name for name in fresh if name not in usable],
    unused=[name for name in old if name not in usable or name not in fresh],
  )
  wrong = [
    problem
    for name in parts.taken
    for problem in _differences(name, old[name], fresh[name])
  ]
  if wrong:
    remedy = "Leave out the options that change the architecture"
    if any(problem.startswith("generator/") for problem in wrong):
      remedy += (
        ", and give objective.generator_size and objective.generator_layers as "
        "they were there"
      )
    raise ConfigError(
      f"init_from={path} doesn't fit this config: {'; '.join(wrong)}. {remedy}."
    )
  return parts


def _differences(path: str, old, new) -> list[str]:
  """Returns "encoder/...: [5, 4] there, [6, 4] here" for each difference."""
  if not (isinstance(old, dict) and isinstance(new, dict)):
    kinds = {type(None): "absent", dict: "a subtree"}
    there, here = (kinds.get(type(x)) or [*np.shape(x)] for x in (old, new))
    return [] if there == here else [f"{path}: {there} there, {here} here"]
  return [
    problem
    for name in sorted(old.keys() | new.keys())
    for problem in _differences(f"{path}/{name}", old.get(name), new.get(name))
  ]
