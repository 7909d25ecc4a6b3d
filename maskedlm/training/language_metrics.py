"""Metrics by language, for a corpus of several languages.

On its held-out text, while pretraining: the language of each row is
`language_ids` of its batch. Read top-down: what is known of the languages ->
sums of each, on the device (step.py) -> lines for people (metrics.py,
pretrain.py). What the numbers mean: docs/guides/pretrain/multilingual.md.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp

from maskedlm.core.task import Array, Metrics
from maskedlm.runtime import console

BITS = "bits_per_character"
LOSSES = ("mlm_loss", "lm_loss")  # Nats a predicted token.


class Language(NamedTuple):
  """A part of the corpus, by its place in corpus.parts."""

  name: str
  tokens_per_character: float  # Of its held-out text.


def of_corpus(corpus) -> tuple[Language, ...]:
  """Returns the languages of a store.Corpus; () where it has no parts."""
  return tuple(
    Language(part["name"], count["tokens"] / max(count["characters"], 1))
    for part in corpus.domains
    for count in (part["heldout"],)
  )


def measure(
  languages: tuple[Language, ...], metrics: Metrics, language_ids: Array
) -> Metrics:
  """Returns the metrics of each row (Task.loss), in all and by language.

  Metric m of language x is "x/m"; of a loss a token there are bits a character
  as well. language_ids: [B], places in languages.
  """
  found = dict(metrics)
  for i, language in enumerate(languages):
    for name, (total, weight) in metrics.items():
      here = language_ids == i
      own = jnp.where(here, total, 0), jnp.where(here, weight, 0)
      found[f"{language.name}/{name}"] = own
      if name in LOSSES:
        bits = own[0] * language.tokens_per_character / math.log(2)
        found[f"{language.name}/{BITS}"] = bits, own[1]
  return found


def split(
  heldout: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
  """Splits values of `measure` into (overall, {language: values})."""
  whole: dict[str, float] = {}
  each: dict[str, dict[str, float]] = {}
  for name, value in heldout.items():
    language, _, metric = name.rpartition("/")
    (each.setdefault(language, {}) if language else whole)[metric] = value
  return whole, each


def line(each: Mapping[str, Mapping[str, float]]) -> str:
  """Returns bits per character by language, if any: "de 2.310, yo 3.142"."""
  return ", ".join(
    f"{name} {values[BITS]:.3f}"
    for name, values in each.items()
    if BITS in values
  )


# Column -> its format, and the metrics of which a language has at most one.
_COLUMNS = {
  "loss": ("{:.3f}", LOSSES),
  "bits/character": ("{:.3f}", (BITS,)),
  "accuracy": ("{:.1%}", ("mlm_accuracy", "lm_accuracy")),
}


def table(each: Mapping[str, Mapping[str, float]]) -> list[str]:
  """Returns a text table with a line for each language and one for the mean."""
  rows = {
    name: [
      next((values[m] for m in metrics if m in values), None)
      for _, metrics in _COLUMNS.values()
    ]
    for name, values in each.items()
  }
  known = [
    [value for value in column if value is not None]
    for column in zip(*rows.values(), strict=True)
  ]
  rows["mean"] = [sum(x) / len(x) if x else None for x in known]
  forms = [form for form, _ in _COLUMNS.values()]
  return console.table(
    ("", *_COLUMNS),
    (
      (
        name,
        *(
          None if value is None else form.format(value)
          for value, form in zip(values, forms, strict=True)
        ),
      )
      for name, values in rows.items()
    ),
  )
