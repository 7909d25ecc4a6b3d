"""Scores of a fine-tuned checkpoint in other languages than its own.

This is the cross-lingual test of Conneau et al. (arXiv:1911.02116, section 5):
a checkpoint of any task is scored on a test file of each language with the
task's own metrics.
"""

import dataclasses
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console

NAME = r"[a-z]{2,3}([_-]\w+)*"  # A language: en, zh, zh_hant.
COLUMNS = 4  # Maximum number of metrics in the table; --json has all.


def parse_files(data: str) -> dict[str, str]:
  """Parses --data as {language: file}, in its order; {} if it names none.

  In earlier versions it was en:FILE,vi:FILE.

  Raises:
    ConfigError: of items with names of languages, one is not NAME=FILE or
      NAME,...,NAME=FILE, or a name occurs twice.
  """
  items = [*filter(None, map(str.strip, data.split(",")))]
  named = [item for item in items if re.match(rf"{NAME}[=:]", item)]
  if not named or pathlib.Path(data).exists():
    return {}
  files: dict[str, str] = {}
  names: list[str] = []  # Languages without a file so far.
  for item in items:
    name, *file = re.split("[=:]", item, maxsplit=1)
    if not re.fullmatch(NAME, name) or file == [""]:
      raise ConfigError(
        f"--data: {item!r}; expected a language's code, = and its file, such "
        "as en=en.conllu,vi=vi.conllu, or en,vi=xnli.test.tsv."
      )
    if name in files or name in names:
      raise ConfigError(f"--data: {name!r} is there twice; expected it once.")
    names.append(name)
    if file:
      files |= dict.fromkeys(names, file[0])
      names = []
  if names:
    raise ConfigError(
      f"--data={data!r} ends without a file; expected en=FILE,vi=FILE,..."
    )
  return files


def read_examples(model, name: str, file: str) -> list:
  """Returns the labelled examples of a language.

  Raises:
    DataError: the file is wrong, or has no labels.
  """
  from maskedlm.finetune import predict
  from maskedlm.finetune.config import make_task

  task, options = model.task, dataclasses.asdict(model.task.options)
  if "language" in options:  # The files may have several languages.
    task = make_task(model.kind, {**options, "language": name})
  return predict.read_labelled(task, model.app, file)


def compare_scores(
  scores: Mapping[str, Mapping[str, Any]], source: str, best: str
) -> dict[str, Any]:
  """Compares the scores of each language with the source language's.

  Args:
    scores: language -> file, examples and the task's metrics.
    source: the language to compare with.
    best: the metric to compare.

  Returns:
    "metric", "source", "languages" (scores with "difference", from the source's
    metric), and "average": the metric's mean over all languages but the source,
    or None if there is no other.
  """
  others = [values[best] for name, values in scores.items() if name != source]
  return {
    "metric": best,
    "source": source,
    "languages": {
      name: {**values, "difference": values[best] - scores[source][best]}
      for name, values in scores.items()
    },
    "average": sum(others) / len(others) if others else None,
  }


def format_scores(result: Mapping[str, Any]) -> list[str]:
  """Formats the result of `compare_scores`, a line for each language."""
  best, source, languages = (
    result[name] for name in ("metric", "source", "languages")
  )
  shown = ("file", "examples", "difference", best)
  more = [
    name
    for name, value in languages[source].items()
    if name not in shown and isinstance(value, float)
  ][: COLUMNS - 1]
  rows = []
  for name, values in languages.items():
    difference = "" if name == source else f"{values['difference']:+.4f}"
    metrics = (f"{values[metric]:.4f}" for metric in more)
    count, value = f"{values['examples']:,}", f"{values[best]:.4f}"
    rows.append((name, count, value, difference, *metrics))
  if result["average"] is not None:
    average = result["average"]
    change = average - languages[source][best]
    blank = [""] * len(more)
    rows.append(("others", "", f"{average:.4f}", f"{change:+.4f}", *blank))
  return console.table(("", "examples", best, f"from {source}", *more), rows)
