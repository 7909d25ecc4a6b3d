"""Options: frozen dataclasses whose fields carry their documentation.

  @dataclasses.dataclass(frozen=True)
  class DataOptions:
    length: int = option(128, "Tokens in a row, specials included.", low=8)

A field has a default, a meaning, a range or choices, and whether it may change
when a run is resumed. The config, the checks, the list of frozen options and
docs/reference/options.md are derived from these, so each option is defined in
one place.
"""

import dataclasses
import functools
import math
import operator
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maskedlm.core import own_file
from maskedlm.core.errors import ConfigError, check_name

if TYPE_CHECKING:  # To import it takes a tenth of a second.
  from ml_collections import ConfigDict


def option(
  default: Any,
  doc: str,
  *,
  low: float | None = None,
  high: float | None = None,
  above: float | None = None,
  below: float | None = None,
  choices: Sequence[Any] | None = None,
  frozen: bool = False,
  phase: bool | str = False,
  needs: Mapping[str, Any] | None = None,
  machine: bool = False,
  own: bool = False,
) -> Any:
  """Returns a dataclass field with its documentation and checks.

  Args:
    default: an immutable value; subclasses may change it (changed_default).
    doc: what the option means and its unit; ends with a period.
    low, high: smallest and largest value allowed.
    above, below: the value must be larger, or smaller, than this.
    choices: the values allowed, if they can be listed.
    frozen: True if a resumed run must keep the value, because it determines
      the parameters or the rows and masks of a step.
    phase: whether a phase of a run may change it; "schedule" if a schedule of
      the learning rate begins anew where one does.
    needs: another option -> its values with which this one has an effect: a
      tuple of values, True or False for any that is true or false, or a
      function of the whole config. `unused` reads it.
    machine: True if it changes only speed or memory, not the result.
    own: whether a file of one's own, FILE.py, is a choice too (own_file.py).

  >>> @dataclasses.dataclass(frozen=True)
  ... class DataOptions:
  ...   length: int = option(128, "Tokens in a row.", low=8, frozen=True)
  >>> DataOptions()
  DataOptions(length=128)
  >>> check_options("data", DataOptions, DataOptions(length=4))
  Traceback (most recent call last):
  maskedlm.core.errors.ConfigError: data.length=4 is out of range: ...
  """
  metadata = {
    "doc": doc,
    "low": low,
    "high": high,
    "above": above,
    "below": below,
    "choices": None if choices is None else tuple(choices),
    "frozen": frozen,
    "phase": phase,
    "needs": needs or {},
    "machine": machine,
    "own": own,
  }
  return dataclasses.field(default=default, metadata=metadata)


def frozen_option(default: Any, doc: str, **how: Any) -> Any:
  """Returns an option that a resumed run must keep; arguments as `option`'s."""
  return option(default, doc, frozen=True, **how)


def changed_default(cls: type, name: str, default: Any) -> Any:
  """Returns a field of an options dataclass with a new, immutable default."""
  return dataclasses.field(default=default, metadata=_field(cls, name).metadata)


def copy_option(cls: type, name: str, **changes: Any) -> Any:
  """Returns a new field with the default and metadata of another dataclass's.

  `changes` are other values of its metadata, such as `needs`.
  """
  source = _field(cls, name)
  metadata = {**source.metadata, **changes}
  return dataclasses.field(default=source.default, metadata=metadata)


def _field(cls: type, name: str) -> dataclasses.Field:
  return {field.name: field for field in dataclasses.fields(cls)}[name]


def to_config(options: Any) -> "ConfigDict":
  """Returns a ConfigDict with the fields of an options dataclass.

  A field of type `T | None` whose value is None becomes a placeholder of type
  T, so that the command line can set it.

  Args:
    options: the dataclass, for its defaults, or an instance of it.
  """
  from ml_collections import ConfigDict, config_dict

  cls = options if isinstance(options, type) else type(options)
  values = options() if isinstance(options, type) else options
  hints = typing.get_type_hints(cls)
  config = ConfigDict()
  for field in dataclasses.fields(cls):
    value = getattr(values, field.name)
    if value is None:
      value = config_dict.placeholder(_not_none(hints[field.name]))
    config[field.name] = value
  return config


def from_config(cls: type, config: Any, **others: Any) -> Any:
  """Returns an instance of `cls` with the values of a config section.

  `others` are the values of the fields that the section lacks.
  """
  names = {field.name for field in dataclasses.fields(cls)} - others.keys()
  return cls(**{name: getattr(config, name) for name in names}, **others)


def typed(cls: type, config: Any, sections: Mapping[str, type]) -> Any:
  """Returns an instance of `cls` with the values of a whole config.

  Args:
    cls: a dataclass with a field for each section.
    sections: the options of each section; "" is the top level.
  """
  values = {
    name: from_config(section, config[name])
    for name, section in sections.items()
    if name
  }
  return from_config(cls, config, **values)


@functools.cache
def named(cls: Any, name: str) -> type:
  """Returns an objective's or a task's options with a required field `name`."""
  field = (name, str, dataclasses.field(kw_only=True))
  frozen = cls.__dataclass_params__.frozen
  return dataclasses.make_dataclass(
    cls.__name__, [field], bases=(cls,), frozen=frozen
  )


def changed(config: Any, changes: Mapping[str, Any]) -> Any:
  """Returns a config of dataclasses in which some options have other values.

  `changes` has them by name, such as {"data.length": 512}.
  """
  for name, value in changes.items():
    section, _, key = name.rpartition(".")
    if section:
      value = dataclasses.replace(getattr(config, section), **{key: value})
    config = dataclasses.replace(config, **{section or key: value})
  return config


def unused(config: Any, sections: Mapping[str, type]) -> dict[str, str]:
  """Returns the options without effect, and why: {option: "with OTHER=VALUE"}.

  Args:
    config: the whole config, validated.
    sections: the options of each section; "" is the top level.
  """
  reasons = {}
  for section, cls in sections.items():
    for field in dataclasses.fields(cls):
      for other, wanted in field.metadata.get("needs", {}).items():
        value = value_of(config, other)
        if value is not _ABSENT and not _is_met(wanted, value, config):
          name = f"{section}.{field.name}".lstrip(".")
          reasons[name] = f"with {other}={value!r}"
  return reasons


_ABSENT = object()


def value_of(config: Any, name: str) -> Any:
  """Returns an option's value; _ABSENT if this kind of config has none."""
  for part in name.split("."):
    config = getattr(config, part, _ABSENT)
  return config


def _is_met(wanted: Any, value: Any, config: Any) -> bool:
  """Returns whether an option's value is one that another option needs."""
  if callable(wanted):
    return bool(wanted(config))
  return value in wanted if isinstance(wanted, tuple) else bool(value) == wanted


def check_options(section: str, cls: type, values: Any) -> None:
  """Checks the type, the range and the choices of every option of a section.

  The section is "train", for example, or "" for the top level; `cls` is its
  dataclass, and `values` a ConfigDict or an instance of it.

  Raises:
    ConfigError: an option is wrong; the first one is named.
  """
  for field in dataclasses.fields(cls):
    if not field.metadata:
      continue
    name = f"{section}.{field.name}".lstrip(".")
    value = getattr(values, field.name)
    choices = field.metadata["choices"]
    if choices is not None and value is not None and not _is_own(field, value):
      check_name(name, value, choices)
    if wanted := expected(cls, field.name, value):
      raise ConfigError(f"{name}={value} is out of range: expected {wanted}.")


def expected(cls: type, name: str, value: Any) -> str:
  """Returns what an option's value should be, in words; "" if it is right.

  None is accepted for `T | None`.
  """
  field, hint = _field(cls, name), typing.get_type_hints(cls)[name]
  if value is None and isinstance(hint, types.UnionType):
    return ""
  if words := _other_type(value, _not_none(hint)):
    return words
  metadata = field.metadata
  # A NaN fails every comparison.
  if metadata["choices"] is not None and value not in metadata["choices"]:
    return "" if _is_own(field, value) else describe_range(field)
  if not all(
    within(value, metadata[bound])
    for bound, (within, _) in _BOUNDS.items()
    if metadata[bound] is not None
  ):
    return describe_range(field)
  if isinstance(value, int) and metadata["high"] is None and value > _MAX_INT:
    return f"at most {_MAX_INT}"
  if isinstance(value, float) and not math.isfinite(value):
    return "a finite number"
  return ""


def _is_own(field: dataclasses.Field, value: Any) -> bool:
  return field.metadata["own"] and own_file.is_own(value)


_MAX_INT = 2**31 - 1  # JAX counts steps, and indexes arrays, in 32 bits.


def _other_type(value: Any, kind: Any) -> str:
  """Returns the type in words if a value doesn't have it, else ""."""
  if typing.get_origin(kind) is tuple:
    inner = typing.get_args(kind)[0]
    is_list = isinstance(value, list | tuple)
    if not is_list or any(_other_type(x, inner) for x in value):
      return f"a list of values of type {inner.__name__}"
    return ""
  words = {bool: "True or False", str: "a text", dict: "a dict"}
  words |= {float: "a number", int: "an integer"}
  is_kind = isinstance(value, int | float if kind is float else kind)
  if isinstance(value, bool) and kind is not bool:
    is_kind = False
  return "" if is_kind else words[kind]


def all_frozen(sections: Mapping[str, type]) -> frozenset[str]:
  """Returns the full names of the frozen options of all sections."""
  return frozenset(
    name for section, cls in sections.items() for name in frozen(section, cls)
  )


def frozen(section: str, cls: type) -> Iterator[str]:
  """Yields the full names of the options that a resumed run must keep."""
  for field in dataclasses.fields(cls):
    if field.metadata.get("frozen"):
      yield f"{section}.{field.name}".lstrip(".")


def help_lines(section: str, cls: type, values: Any) -> Iterator[str]:
  """Yields the lines of --help for a section: each option's value and meaning.

  Arguments are those of `check_options`.
  """
  for field in dataclasses.fields(cls):
    name = f"{section}.{field.name}".lstrip(".")
    yield f"  --config.{name}={getattr(values, field.name)}"
    yield from textwrap.wrap(
      full_doc(field), 79, initial_indent=" " * 6, subsequent_indent=" " * 6
    )


def full_doc(field: dataclasses.Field) -> str:
  """Returns an option's meaning, its range, and whether it is fixed."""
  notes = [field.metadata["doc"]]
  if values := describe_range(field):
    notes.append(f"Values: {values}.")
  if field.metadata["frozen"]:
    notes.append("Fixed.")
  return " ".join(notes)


def describe_range(field: dataclasses.Field) -> str:
  """Returns the values that a field may have, in words; "" for any."""
  metadata = field.metadata
  if metadata["choices"] is not None:
    files = ["FILE.py"] if metadata["own"] else []
    return ", ".join([*(f"{c!r}" for c in metadata["choices"]), *files])
  if metadata["low"] is not None and metadata["high"] is not None:
    return f"{metadata['low']} to {metadata['high']}"
  return ", ".join(
    words.format(metadata[bound])
    for bound, (_, words) in _BOUNDS.items()
    if metadata[bound] is not None
  )


_BOUNDS = {
  "low": (operator.ge, "{} or more"),
  "above": (operator.gt, "above {}"),
  "high": (operator.le, "at most {}"),
  "below": (operator.lt, "below {}"),
}


def _not_none(hint: Any) -> type:
  """Returns T for the type `T | None`; other types as they are."""
  if isinstance(hint, types.UnionType):
    (hint,) = (arg for arg in hint.__args__ if arg is not type(None))
  return hint
