"""Phases: parts of a run, each with options of its own.

  config.phases = (
    {},
    {"share": 0.1, "data.length": 512},
  )

Each phase is the one before it with some options changed, and a length: steps,
tokens, or a share of train.num_steps; the phase without one gets the steps that
are left. Parameters and moments go on from phase to phase. A phase is an
ordinary config with a Task of its own, so objectives know nothing of phases,
and everything remains a function of the step. A phase may have another
objective, if that has the same parameters.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError, did_you_mean
from maskedlm.data.options import CorpusOptions, DataOptions
from maskedlm.modeling.model_options import ModelOptions
from maskedlm.training.optimizer_options import OptimizerOptions
from maskedlm.training.options import StepOptions

# Sections of which a phase may change some options. Those of the objective are
# not here, as they may be those of a file.
_SECTIONS: Mapping[str, type] = {
  "corpus": CorpusOptions,
  "model": ModelOptions,
  "data": DataOptions,
  "optimizer": OptimizerOptions,
  "train": StepOptions,
}
_LENGTHS = ("steps", "tokens", "share")
# (config.objective, name) -> that of the objective of this name.
Switch = Callable[[ConfigDict, str], ConfigDict]


class Phase(NamedTuple):
  """A part of a run."""

  config: Any  # The whole config in this phase; its own phases are ().
  changes: Mapping[str, Any]  # Options that differ from the phase before.
  begin: int  # First step.
  end: int  # The step after the last.
  # Step of the phase's own batches at which it begins: the earlier phases have
  # read as many tokens. So a phase goes on in the text where the one before
  # stopped, rather than read its beginning again.
  first_batch: int
  # First step, and number of steps, of the schedule of the learning rate. It
  # goes on over phases until one changes it.
  rates: tuple[int, int]


def split(config: ConfigDict, switch: Switch) -> list[Phase]:
  """Returns the phases of a run that have steps; one if none are configured.

  Args:
    switch: called for a phase with another objective.

  Raises:
    ConfigError: an option of a phase is unknown or may not change in a run, or
      the lengths don't add up to train.num_steps.
  """
  changes: Sequence[Mapping[str, Any]] = config.phases or ({},)
  configs = []
  current = config
  for i, change in enumerate(changes):
    current = _changed(current, change, f"phases[{i}]", switch)
    configs.append(current)
  counts = _count_steps(configs, changes, config.train.num_steps)
  phases: list[Phase] = []
  begin = tokens = schedule_begin = 0
  for current, change, count in zip(configs, changes, counts, strict=True):
    changed = {name: change[name] for name in _options(change)}
    if any(_phase_of(name) == "schedule" for name in changed):
      schedule_begin = begin
    phase = Phase(
      config=current,
      changes=changed,
      begin=begin,
      end=begin + count,
      first_batch=0,
      rates=(schedule_begin, 0),
    )
    first_batch = -(-tokens // tokens_of_step(phase))
    phases += [phase._replace(first_batch=first_batch)] * (count > 0)
    begin, tokens = begin + count, tokens + count * tokens_of_step(phase)
  ends = {phase.rates[0]: phase.end for phase in phases}  # The last one's.

  def rates(phase: Phase) -> tuple[int, int]:
    first, _ = phase.rates
    return first, ends[first] - first

  return [phase._replace(rates=rates(phase)) for phase in phases]


def single(config: Any) -> list[Phase]:
  """Returns the only phase of a run of fine-tuning, whose train has steps."""
  steps = config.train.num_steps
  return [Phase(config, {}, 0, steps, first_batch=0, rates=(0, steps))]


def ramp(
  option: str, values: Sequence[Any], **length: float
) -> tuple[dict[str, Any], ...]:
  """Returns a phase for each value of an option that grows or shrinks.

  Args:
    option: such as "data.batch_size".
    values: one for each phase; a few, as each is compiled.
    **length: steps, tokens or share of all of them together.

  Raises:
    ConfigError: it isn't one length.

  >>> ramp("data.batch_size", [64, 128], share=0.5)
  ({'share': 0.25, 'data.batch_size': 64},
   {'share': 0.25, 'data.batch_size': 128})
  """
  if len(length) != 1 or set(length) - set(_LENGTHS):
    raise ConfigError(
      f"ramp of {option}: expected one of {', '.join(_LENGTHS)}, not {length}."
    )
  ((kind, total),) = length.items()
  return tuple({kind: total / len(values), option: value} for value in values)


def total_steps(config: ConfigDict) -> int:
  """Returns the steps of all phases, for the config's train.num_steps.

  Args:
    config: a config whose phases all have steps or tokens.

  Raises:
    ConfigError: the length of a phase depends on train.num_steps, or a phase is
      wrong (see `split`).

  >>> config = maskedlm.config.default()
  >>> config.phases = ({"steps": 30}, {"steps": 12, "data.length": 512})
  >>> total_steps(config)
  42
  """
  total = 0
  for i, change in enumerate(config.phases):
    sizes = {k: x for k, x in change.items() if not k.startswith("objective.")}
    config = _changed(config, sizes, f"phases[{i}]", lambda section, _: section)
    kinds = [name for name in ("steps", "tokens") if name in change]
    if len(kinds) != 1:
      raise ConfigError(
        f"phases[{i}]: expected steps or tokens, as train.num_steps is made of "
        f"the phases; it has {[n for n in _LENGTHS if n in change]}."
      )
    total += _steps_of(kinds[0], change[kinds[0]], config, 0, i)
  return total


def phase_index(phases: Sequence[Phase], step: int) -> int:
  """Returns the index of the phase of a step; the last one's after the end."""
  return min(sum(phase.end <= step for phase in phases), len(phases) - 1)


def describe_phase(phases: Sequence[Phase], index: int) -> str:
  """Returns a line about a phase: its place, its steps and what it changes."""
  phase = phases[index]
  return (
    f"phase {index + 1} of {len(phases)}, to step {phase.end:,}: "
    f"{format_changes(phase) or 'no option changes'}"
  )


def format_changes(phase: Phase) -> str:
  """Returns what a phase changes, such as "data.length=512"; "" for nothing."""
  return " ".join(f"{name}={x!r}" for name, x in phase.changes.items())


def tokens_of_step(phase: Phase) -> int:
  """Returns the tokens of a step, padding included."""
  return phase.config.data.batch_size * phase.config.data.length


def _options(change: Mapping[str, Any]) -> list[str]:
  """Returns the options that a phase changes: all but its length."""
  return [name for name in change if name not in _LENGTHS]


def _phase_of(name: str) -> bool | str:
  """Returns whether a phase may change an option (`phase` of core/options)."""
  section, _, key = name.rpartition(".")
  fields = getattr(_SECTIONS.get(section), "__dataclass_fields__", {})
  allowed = key in fields and fields[key].metadata["phase"]
  return section == "objective" or allowed


def _changed(
  config: ConfigDict, change: Mapping[str, Any], where: str, switch: Switch
) -> ConfigDict:
  """Returns a copy of a config with the changes of a phase."""
  config = config.copy_and_resolve_references()
  with config.unlocked():
    config.phases = ()
    if "objective.name" in change:
      config.objective = switch(config.objective, change["objective.name"])
    for name in _options(change):
      section, _, key = name.rpartition(".")
      known = section in config and key in config[section]
      if not known and section == "objective":
        raise ConfigError(
          f"{where}: objective {config.objective.name!r} has no {name}; leave "
          'it out, or all phases by --config.phases="()".'
        )
      if not known:
        raise ConfigError(
          f"{where}: {name!r} is no option"
          f"{did_you_mean(name, (*_names(config), *_LENGTHS))}; expected a "
          "length (steps, tokens or share) and options such as 'data.length'."
        )
      if not _phase_of(name):
        raise ConfigError(
          f"{where}: {name} can't change within a run; leave it out, or set "
          f"--config.{name} for the whole run."
        )
      try:
        config[section][key] = change[name]
      except TypeError:
        raise ConfigError(
          f"{where}: {name}={change[name]!r} doesn't have the type of "
          f"{config[section][key]!r}."
        ) from None
  return config


def _names(config: ConfigDict) -> list[str]:
  """Returns the names of all options in sections, such as "data.length"."""
  return [
    f"{section}.{name}"
    for section, values in config.items()
    if isinstance(values, ConfigDict)
    for name in values
  ]


def _count_steps(
  configs: Sequence[ConfigDict],
  changes: Sequence[Mapping[str, Any]],
  num_steps: int,
) -> list[int]:
  """Returns the number of steps of each phase, of which shares may have none.

  Raises:
    ConfigError: a length is wrong, or they don't add up to num_steps.
  """
  counts: list[int | None] = []
  for i, (config, change) in enumerate(zip(configs, changes, strict=True)):
    kinds = [name for name in _LENGTHS if name in change]
    if len(kinds) > 1:
      raise ConfigError(
        f"phases[{i}] has {' and '.join(kinds)}: give one length."
      )
    counts.append(
      _steps_of(kinds[0], change[kinds[0]], config, num_steps, i)
      if kinds
      else None
    )
  num_open = counts.count(None)
  if num_open > 1:
    raise ConfigError(
      f"phases: {num_open} of {len(counts)} have no length; only one may have "
      "none, and gets the steps that are left. Add steps, tokens or share."
    )
  left = num_steps - sum(count or 0 for count in counts)
  if left < 0 or (left and not num_open):
    raise ConfigError(
      f"phases have {num_steps - left:,} steps, and train.num_steps="
      f"{num_steps}: set --config.train.num_steps={num_steps - left}, or leave "
      "out the length of one phase, which then gets what is left."
    )
  return [left if count is None else count for count in counts]


def _steps_of(
  kind: str, length: Any, config: ConfigDict, num_steps: int, i: int
) -> int:
  """Returns the steps of a phase whose length is given.

  Raises:
    ConfigError: the length is no number above 0, or a share above 1.
  """
  is_number = isinstance(length, int | float) and not isinstance(length, bool)
  wrong = not is_number or not 0 < length < math.inf
  if wrong or (kind == "share" and length > 1):
    most = ", at most 1" if kind == "share" else ""
    raise ConfigError(
      f"phases[{i}]: {kind}={length!r}: expected a number above 0{most}."
    )
  if kind == "share":
    return round(length * num_steps)
  if kind == "tokens":
    return math.ceil(length / (config.data.batch_size * config.data.length))
  return round(length)
