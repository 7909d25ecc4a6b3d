"""Gold labels: which values are none, and which labels are the same.

Files mark examples without a gold label: SNLI with -, TFDS and the Hub with -1
or -100, others leave the field empty. Such examples are left out of training
and scoring, and counted. Where a mark is the name of a class, task.labels says
so.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.fields import NO_LABEL
from maskedlm.finetune.contract import Example
from maskedlm.runtime.console import log

# So do these, beside NO_LABEL, if the labels are otherwise numbers from 0 on.
NO_NUMBER = ("-1", "-1.0", "-100", "-100.0")
_MAYBE_NONE = ("none", "null", "na", "n/a", "#n/a", "\\n", "nil")
# How programs write several labels, or a number, as a text.
_REPR = re.compile(
  r"\[\s*(['\"\d-].*)?\]|\(\s*(['\"\d-].*)?\)|\{\s*(['\"].*)?\}"
  r"|((np|numpy|torch|tf)\.\w+|tensor|array)\(.*\)",
  re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.0*)?")


def without_mark(label: str, labels: Sequence[str]) -> str | None:
  """Returns the label, or None if it means none and is not in `labels`."""
  is_mark = label in (*NO_LABEL, *NO_NUMBER) and label not in labels
  return None if is_mark else label


def labelled(examples: Sequence[Example], field: str = "label") -> list:
  """Returns the examples with a label; all of them if none has one."""
  found = [e for e in examples if getattr(e, field) is not None]
  return found or list(examples)


def keep_labelled(
  examples: Sequence[Example], has_label: Callable[[Example], bool], name: str
) -> list:
  """Returns the examples with a gold label, and reports how many have none.

  If none has one, all are returned; Application.require_labels then raises.

  Args:
    examples: the examples.
    has_label: Application.has_label.
    name: the set's name, for the report.
  """
  kept = [example for example in examples if has_label(example)]
  if kept and len(kept) < len(examples):
    first = next(e for e in examples if not has_label(e))
    lost = len(examples) - len(kept)
    log(
      f"{name}: {lost:,} of {counted(len(examples), 'example')} "
      f"{'has' if lost == 1 else 'have'} no gold label, left out, such as "
      f"{first.where}"
    )
  return kept or list(examples)


def find_classes(labels: Sequence[str], where: str) -> list[str]:
  """Returns the classes of a training set, sorted.

  -1 is none if the others are the numbers from 0 to 2 or more, and a class if
  there is a single other label, or one that is not a number from 0 on. -100,
  which transformers ignores, is none beside numbers from 0 on.

  Raises:
    DataError: two classes are the same number (1 and 1.0) or truth value, or
      -1 may be a class or mean that there is no gold label.
  """
  found = sorted(set(labels))
  check_distinct(found, where)
  rest = [label for label in found if label not in NO_NUMBER]
  is_count = all(re.fullmatch(r"\d+(\.0*)?", label) for label in rest)
  if len(rest) == len(found) or len(rest) < 2 or not is_count:
    return found
  marks = [label for label in found if label in NO_NUMBER]
  is_ignored = all(canonical(label) == "-100" for label in marks)
  numbers = {*map(canonical, rest)}
  if is_ignored or (len(rest) > 2 and numbers == {*map(str, range(len(rest)))}):
    return rest
  mark = marks[0]
  lists = [",".join(map(repr, x)) for x in (rest, found)]
  raise DataError(
    f"{where}: the label {mark!r} may be a class, or mean no gold label; say "
    f'which: --config.task.labels="({lists[0]})" leaves its examples out, '
    f'--config.task.labels="({lists[1]})" makes it a class.'
  )


def check_distinct(labels: Sequence[str], where: str) -> None:
  """Checks that no two labels mean the same; reports those that may.

  Raises:
    DataError: two are the same number (1 and 1.0) or truth value, or one is a
      list, an object or a number as Python writes it.
  """
  seen: dict[str, str] = {}
  folded: dict[str, str] = {}
  for label in labels:
    if _REPR.fullmatch(label):
      raise DataError(
        f"{where}: the label {label[:60]!r} is written as a list, an object or "
        "a number of a program; expected the name of one class; several labels "
        "of a text are learnt by `finetune multi_label`."
      )
    if label.casefold() in _MAYBE_NONE:
      log(
        f"{where}: the label {label!r} is taken as a class; if it means that "
        "there is no gold label, leave the field empty"
      )
    other = seen.setdefault(canonical(label), label)
    if other != label:
      raise DataError(
        f"{where}: the labels {other!r} and {label!r} are the same; expected "
        "one of them: write each label in one way."
      )
    form = unicodedata.normalize("NFKC", label).casefold()
    other = folded.setdefault(form, label)
    if other != label:
      log(
        f"{where}: the labels {other!r} and {label!r} differ in case only, or "
        "in the form of a character; they are two classes"
      )


def canonical(label: str) -> str:
  """Returns "1" for 1, 1.0, +1 and True; other labels as they are."""
  if _NUMBER.fullmatch(label):
    return str(int(float(label)))
  return {"true": "1", "false": "0"}.get(label.casefold(), label)


def gold_labels(
  examples: Sequence[Example], field: str, expected: str
) -> list[Any]:
  """Returns a field of each example.

  Args:
    examples: NamedTuples with the field and `where`.
    field: the name of the field, such as "label".
    expected: where the label should be; ends the error message.

  Raises:
    DataError: the field of an example is None.
  """
  for example in examples:
    if getattr(example, field) is None:
      where = example.where or "input"
      raise DataError(f"{where}: no {field}; expected {expected}.")
  return [getattr(example, field) for example in examples]


def require_two_labels(
  examples: Sequence[Example], labels: Sequence[Any], name: str
) -> None:
  """Checks that a training set has different labels.

  Args:
    examples: the training set; the error names the first example's file.
    labels: a label for each example.
    name: the kind of label, such as "relation".

  Raises:
    DataError: all labels are the same.
  """
  if len(set(labels)) < 2:
    who = f"all {len(examples):,} examples for training have"
    if len(examples) == 1:
      who = "the only example for training has"
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: {who} the {name} "
      f"{labels[0]!r}; expected at least two."
    )
