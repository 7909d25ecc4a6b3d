"""Labels in files: which values are no gold label, and which are the same.

Files mark examples without a gold label: SNLI with -, TFDS and the Hub with -1
or -100, others leave the field empty. Where a mark is the name of a class,
task.labels says so.
"""

import re
import unicodedata
from collections.abc import Sequence

from maskedlm.core.errors import DataError
from maskedlm.runtime.console import log

# Values that mean that there is no gold label.
NO_LABEL = ("", "-", "--", "?", "nan", "NaN", "<NA>")
# So do these, if the labels are otherwise numbers from 0 on.
NO_NUMBER = ("-1", "-1.0", "-100", "-100.0")
# Texts that mean true or false.
TRUTHS = {"1": True, "1.0": True, "true": True}
TRUTHS |= {"0": False, "0.0": False, "false": False}
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


def find_classes(labels: Sequence[str], where: str) -> list[str]:
  """Returns the classes of a training set, sorted.

  -1 means no gold label if the others are the numbers from 0 to 2 or more. It
  is a class if there is a single other label, or one that is not a number from
  0 on. -100, which transformers ignores, means none beside numbers from 0 on.

  Raises:
    DataError: two classes are the same number (1 and 1.0) or truth value, or
      -1 may be a class or mean that there is no gold label.
  """
  classes = sorted(set(labels))
  check_distinct(classes, where)
  rest = [label for label in classes if label not in NO_NUMBER]
  is_count = all(re.fullmatch(r"\d+(\.0*)?", label) for label in rest)
  if len(rest) == len(classes) or len(rest) < 2 or not is_count:
    return classes
  marks = [label for label in classes if label in NO_NUMBER]
  is_ignored = all(canonical(label) == "-100" for label in marks)
  numbers = {*map(canonical, rest)}
  if is_ignored or (len(rest) > 2 and numbers == {*map(str, range(len(rest)))}):
    return rest
  lists = [",".join(map(repr, x)) for x in (rest, classes)]
  raise DataError(
    f"{where}: the label {marks[0]!r} may be a class, or mean no gold label; "
    f'say which: --config.task.labels="({lists[0]})" leaves its examples out, '
    f'--config.task.labels="({lists[1]})" makes it a class.'
  )


def check_distinct(labels: Sequence[str], where: str) -> None:
  """Checks that no two labels mean the same.

  Raises:
    DataError: two are the same number (1 and 1.0) or truth value, or one is a
      list, an object or a number as Python writes it.
  """
  by_value: dict[str, str] = {}
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
    other = by_value.setdefault(canonical(label), label)
    if other != label:
      raise DataError(
        f"{where}: the labels {other!r} and {label!r} are the same; expected "
        "one of them: write each label in one way."
      )


def report_alike(labels: Sequence[str], where: str) -> None:
  """Reports the labels that look the same, or nearly."""
  by_form: dict[str, str] = {}
  for label in labels:
    other = by_form.setdefault(_form(label), label)
    if other != label:
      log(
        f"{where}: the labels {other!a} and {label!a} differ in "
        "case only, or in the form of a character; they are two classes"
      )


def _form(label: str) -> str:
  """Returns a label without case, invisible characters and kinds of dashes."""
  text = unicodedata.normalize("NFKC", label).casefold().replace("\u2212", "-")
  kinds = ((c, unicodedata.category(c)) for c in text)
  return "".join(
    "-" if kind == "Pd" else c for c, kind in kinds if kind != "Cf"
  )


def canonical(label: str) -> str:
  """Returns "1" for 1, 1.0, +1 and True; other labels as they are."""
  if _NUMBER.fullmatch(label):
    return str(int(float(label)))
  return {"true": "1", "false": "0"}.get(label.casefold(), label)
