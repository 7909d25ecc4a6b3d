"""Flags: the fields of verbs, with their documentation and their checks.

core.options.option() with what a command line has besides: files to read and to
write, and flags that need or exclude each other. frame.py obeys it.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskedlm.core.options import describe_range, option

REQUIRED = dataclasses.MISSING
ANY = ("",)  # A file that may have any suffix.
STDIN = "-"


def flag(
  default: Any,
  doc: str,
  *,
  metavar: str = "",
  needs: str | Mapping[str, Sequence[Any]] = "",
  not_beside: Sequence[str] = (),
  reads: bool = False,
  writes: Sequence[str] = (),
  old: Sequence[str] = (),
  prefix: str = "",
  nargs: str | int = "+",
  **limits,
) -> Any:
  """Returns a field that --NAME sets.

  Args:
    default: its value if it is not given; REQUIRED = it must be.
    doc: what it means; ends with a period.
    metavar: what stands for the value in --help.
    needs: the flag beside which it has an effect, or {flag: its values}.
    not_beside: flags beside which it has no effect.
    reads: whether it names files, which must exist; - is stdin.
    writes: suffixes of the file that it names, or ANY.
    old: names that it had in earlier versions, such as "--top".
    prefix: if it collects all arguments that begin so, such as "--beam.".
    nargs: of a tuple, how many values may follow it; it may be given again.
    **limits: the range or choices of the value, as of core.options.option.
  """
  base = option(default, doc, **limits)
  extra = {
    "metavar": metavar,
    "needs": {needs: ()} if isinstance(needs, str) and needs else needs or {},
    "not_beside": tuple(not_beside),
    "reads": reads,
    "writes": tuple(writes),
    "old": tuple(old),
    "prefix": prefix,
    "nargs": nargs,
    "is_argument": False,
  }
  return dataclasses.field(
    default=default, kw_only=True, metadata={**base.metadata, **extra}
  )


def argument(default: Any, doc: str, *, metavar: str = "", **limits) -> Any:
  """Returns a field that is set by its place on the command line."""
  base = flag(default, doc, metavar=metavar, **limits)
  return dataclasses.field(
    default=default, kw_only=True, metadata={**base.metadata, "is_argument": 1}
  )


def config_flag(
  *,
  example: str = "configs/bert.py:base",
  instead: str = "",
  fits_corpus: bool = False,
  folder: str = "",
) -> Any:
  """Returns the field of a config: --config=FILE --config.a.b=...

  Args:
    example: a config, for the reference.
    instead: a flag that can be given in its place; the value is then None.
    fits_corpus: whether the verb may read a corpus, which decides options.
    folder: the flag of the folder that the verb makes; if it is there, the
      command continues what was started.
  """
  doc = (
    f"Config file, such as {example}; any option of it can be "
    "overridden: --config.data.length=64; with --help, lists them."
  )
  base = flag(None, doc, metavar="FILE")
  reading = {"instead": instead, "fits_corpus": fits_corpus, "folder": folder}
  return dataclasses.field(
    default=None, kw_only=True, metadata={**base.metadata, "config": reading}
  )


class Flag(NamedTuple):
  """A flag of a verb, or an argument without a name."""

  name: str
  kind: type  # str, int, float, bool; of a tuple, that of its items.
  is_many: bool
  cls: Any  # The dataclass that has it.
  about: Mapping[str, Any]  # The metadata of its field.
  default: Any

  @property
  def spelling(self) -> str:
    """How it is written: --top_k, or TEXT."""
    if self.about["is_argument"]:
      return self.about["metavar"] or self.name.upper()
    if self.about["prefix"]:
      return self.about["metavar"]
    return spell(self.name)

  @property
  def doc(self) -> str:
    """Its meaning, its values, its default, and what it needs."""
    text = self.about["doc"]
    if self.about["choices"]:
      text += f" Values: {' | '.join(map(str, self.about['choices']))}."
    elif values := describe_range(self.cls.__dataclass_fields__[self.name]):
      text += f" Values: {values}."
    for other, wanted in self.about["needs"].items():
      values = f"={' or '.join(wanted)}" if wanted else ""
      text += f" Only with {spell(other)}{values}."
    if self.default is REQUIRED:
      return text if self.about["is_argument"] else f"{text} Required."
    if isinstance(self.default, int | float) and self.kind is not bool:
      return f"{text} Default: {self.default:,}."
    is_said = self.default in (None, False, "", (), STDIN, (STDIN,))
    return text if is_said else f"{text} Default: {self.default}."


def spell(name: str) -> str:
  """Returns how the flag of a field is written; from_ is a field's name."""
  return f"--{name.removesuffix('_')}"


def flags_of(cls: type) -> Iterator[Flag]:
  """Yields the flags of a verb, in the order of its fields."""
  hints = typing.get_type_hints(cls)
  for field in dataclasses.fields(cls):
    hint = hints[field.name]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
      yield from flags_of(hint)
    if not field.metadata:
      continue
    is_many = typing.get_origin(hint) is tuple
    if is_many or isinstance(hint, types.UnionType):
      hint = typing.get_args(hint)[0]
    yield Flag(field.name, hint, is_many, cls, field.metadata, field.default)
