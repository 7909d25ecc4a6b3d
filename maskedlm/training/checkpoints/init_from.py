"""Pretraining that starts from another model: a domain, a longer context.

config.init_from names a run or an import (`maskedlm import`). Its architecture
and its tokenizer become the config's before anything is prepared (`adopt`);
its weights are what a fresh run begins with (`weights`). Gururangan et al.
2020, "Don't stop pretraining" (https://arxiv.org/abs/2004.10964).
"""

import dataclasses
from collections.abc import Callable, Collection

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params


def copy_architecture(config: ConfigDict, given: Collection[str] = ()) -> None:
  """Copies the architecture and the tokenizer of init_from into a config.

  Args:
    config: the config of pretraining, changed in place; without init_from it
      stays as it is.
    given: options of the command line, such as "model.rope_theta", which keep
      their values.

  Raises:
    CheckpointError, ConfigError: init_from can't be opened or has no encoder,
      or tokenizer.path is another tokenizer.
    CorpusError: that tokenizer can't be read.
  """
  if not config.init_from:
    return
  from maskedlm.data.tokenizers import tokenizer
  from maskedlm.training.checkpoints import load

  start = load.describe(config.init_from)
  with config.unlocked():
    for field in dataclasses.fields(start.cfg):
      # Not vocab_size, which is the tokenizer's, nor options of how it is
      # trained: these stay the config's own.
      is_frozen = field.metadata.get("frozen")
      if is_frozen and f"model.{field.name}" not in given:
        config.model[field.name] = getattr(start.cfg, field.name)
  if "tokenizer.path" not in given or not config.tokenizer.path:
    config.tokenizer.path = str(load.tokenizer_dir(config.init_from))
  elif (
    tokenizer.load_tokenizer(config.tokenizer.path).sha256
    != start.tokenizer.sha256
  ):
    raise ConfigError(
      f"tokenizer.path={config.tokenizer.path} is not the tokenizer of "
      f"init_from={config.init_from}: leave it out; or give the model that one "
      "by `maskedlm retokenize`, and start from what it makes."
    )
  config.tokenizer.kind = start.tokenizer.kind
  config.tokenizer.vocab_size = start.tokenizer.vocab_size


def initial_weights(
  path: str, *, log: Callable[[str], None]
) -> Callable[[Params], Params]:
  """Returns fresh parameters -> those to start from (loop.run start_from).

  Parts that both have, such as the encoder and the MLM head, are taken over,
  but for an MLM head that is a generator's (ELECTRA) on one side only; the
  others start anew; log gets a line that says which.

  Raises (when called):
    ConfigError: a part has another shape there than here.
  """

  def begin(fresh: Params) -> Params:
    from maskedlm.runtime import multihost
    from maskedlm.training.checkpoints import load

    old = multihost.run_on_all_hosts(
      lambda: load.open_checkpoint(path), facts=load.facts
    ).params
    if ("generator" in old) != ("generator" in fresh):
      # Its MLM head reads the generator, without one it reads the encoder.
      old = {name: old[name] for name in old if name != "mlm_head"}
    taken = [name for name in fresh if name in old]
    anew = [name for name in fresh if name not in old]
    wrong = [
      problem
      for name in taken
      for problem in _differences(name, old[name], fresh[name])
    ]
    if wrong:
      raise ConfigError(
        f"init_from={path} doesn't fit this config: {'; '.join(wrong)}. "
        f"{_remedy(wrong)}"
      )
    log(
      f"weights of {path}: {', '.join(taken)}"
      + (f"; starting anew: {', '.join(anew)}" if anew else "")
    )
    return {name: old.get(name, fresh[name]) for name in fresh}

  return begin


def _remedy(wrong: list[str]) -> str:
  if any(problem.startswith("generator/") for problem in wrong):
    return (
      "Leave out the options that change the architecture, and give "
      "objective.generator_size and objective.generator_layers as they were "
      "there."
    )
  return "Leave out the options that change the architecture."


def _differences(path: str, old, new) -> list[str]:
  """ "encoder/...: [5, 4] there, [6, 4] here" for each array that differs."""
  if not (isinstance(old, dict) and isinstance(new, dict)):
    there, here = (
      "absent"
      if x is None
      else "a part"
      if isinstance(x, dict)
      else str(list(np.shape(x)))
      for x in (old, new)
    )
    return [] if there == here else [f"{path}: {there} there, {here} here"]
  return [
    problem
    for name in sorted(old.keys() | new.keys())
    for problem in _differences(f"{path}/{name}", old.get(name), new.get(name))
  ]
