"""Measures held-out metrics of pretraining by language, if there are several.

A batch's `language_ids` give the language of each row. Read top-down: the
languages -> sums of each on the device (step.py) -> text (metrics.py, and
run.py of pretraining). docs/guides/pretrain/multilingual.md explains the
numbers.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp

from maskedlm.core.task import Array, Metrics
from maskedlm.runtime import console

BITS = "bits_per_character"
LOSSES = ("mlm_loss", "lm_loss")  # In nats per predicted token.


class Language(NamedTuple):
  """A domain of the corpus (corpus.parts), in its order."""

  name: str
  tokens_per_character: float  # In its held-out split.


def of_corpus(corpus) -> tuple[Language, ...]:
  """Returns the languages of a store.Corpus; () if it has no domains."""
  counts = {part["name"]: part["heldout"] for part in corpus.domains}
  return tuple(
    Language(name, count["tokens"] / max(count["characters"], 1))
    for name, count in counts.items()
  )


def measure_by_language(
  languages: tuple[Language, ...], metrics: Metrics, language_ids: Array
) -> Metrics:
  """Adds the metrics of each language to those of all rows.

  Args:
    languages: the corpus's.
    metrics: name -> (sum, weight), [B] each (Task.loss).
    language_ids: [B], indices into languages.

  Returns:
    The metrics, with "x/m" for metric m of language x, and
    "x/bits_per_character" if m is a loss per token.
  """
  measured = dict(metrics)
  for i, language in enumerate(languages):
    for name, (total, weight) in metrics.items():
      here = language_ids == i
      pair = jnp.where(here, total, 0), jnp.where(here, weight, 0)
      measured[f"{language.name}/{name}"] = pair
      if name in LOSSES:
        bits = pair[0] * language.tokens_per_character / math.log(2)
        measured[f"{language.name}/{BITS}"] = bits, pair[1]
  return measured


def split_by_language(
  heldout: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
  """Splits `measure_by_language` values into (overall, {language: values})."""
  whole: dict[str, float] = {}
  languages: dict[str, dict[str, float]] = {}
  for name, value in heldout.items():
    language, _, metric = name.rpartition("/")
    (languages.setdefault(language, {}) if language else whole)[metric] = value
  return whole, languages


def format_line(each: Mapping[str, Mapping[str, float]]) -> str:
  """Returns bits per character by language, if any: "de 2.310, yo 3.142"."""
  return ", ".join(
    f"{name} {values[BITS]:.3f}"
    for name, values in each.items()
    if BITS in values
  )


# Column -> (format, metrics). A language has at most one of the metrics.
_COLUMNS = {
  "loss": ("{:.3f}", LOSSES),
  "bits/character": ("{:.3f}", (BITS,)),
  "accuracy": ("{:.1%}", ("mlm_accuracy", "lm_accuracy")),
}


def format_table(each: Mapping[str, Mapping[str, float]]) -> list[str]:
  """Returns a text table with a line for each language and one for the mean."""
  columns = []
  for form, metrics in _COLUMNS.values():
    numbers = [
      next((x[m] for m in metrics if m in x), None) for x in each.values()
    ]
    known = [value for value in numbers if value is not None]
    numbers.append(sum(known) / len(known) if known else None)
    columns.append([None if x is None else form.format(x) for x in numbers])
  return console.table(
    ("", *_COLUMNS), zip([*each, "mean"], *columns, strict=True)
  )
