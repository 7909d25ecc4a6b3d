"""A corpus of several languages, measured language by language.

On its held-out text, while pretraining: the language of each row is
`language_ids` of its batch. Read top-down: what is known of the languages ->
sums of each, on the device (step.py) -> lines for people (metrics.py,
pretrain.py). What the numbers mean: docs/multilingual.md.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.task import Array, Batch, Key, Metrics, Params

BITS = "bits_per_character"
LOSSES = ("mlm_loss", "lm_loss")  # Nats a predicted token.


class Language(NamedTuple):
  """A part of the corpus, by its place in corpus.parts."""

  name: str
  tokens_per_character: float  # Of its held-out text.


def of_corpus(corpus) -> tuple[Language, ...]:
  """The languages of a store.Corpus; () where it has no parts."""
  return tuple(
    Language(part["name"], count["tokens"] / max(count["characters"], 1))
    for part in corpus.parts
    for count in (part["heldout"],)
  )


def measure(
  languages: tuple[Language, ...],
  loss: Callable[..., tuple[Metrics, Metrics]],
  params: Params,
  batch: Batch,
  key: Key,
) -> tuple[Metrics, Metrics]:
  """As Task.loss without dropout, with each language's metrics beside.

  Metric m of language x is "x/m"; of a loss a token there are bits a character
  as well. As a loss is a sum over rows, whatever it is (step.gradient_of
  builds on that, too), each row is taken for itself and added where it belongs.
  """

  def of_row(row):
    return loss(params, jax.tree.map(lambda x: x[None], row), key, False)

  terms, stats = jax.vmap(of_row)(dict(batch))
  metrics = _sums(stats, True)
  for i, language in enumerate(languages):
    for name, pair in _sums(stats, batch["language_ids"] == i).items():
      metrics[f"{language.name}/{name}"] = pair
      if name in LOSSES:
        bits = pair[0] * language.tokens_per_character / math.log(2)
        metrics[f"{language.name}/{BITS}"] = bits, pair[1]
  return _sums(terms, True), metrics


def _sums(pairs: Metrics, here) -> dict[str, tuple[Array, Array]]:
  """name -> (sum, weight) of the rows [B] that are here."""
  return jax.tree.map(lambda x: jnp.sum(jnp.where(here, x, 0)), dict(pairs))


def split(
  heldout: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
  """Values of `measure` -> (those of all, language -> its own)."""
  whole: dict[str, float] = {}
  each: dict[str, dict[str, float]] = {}
  for name, value in heldout.items():
    language, _, metric = name.rpartition("/")
    (each.setdefault(language, {}) if language else whole)[metric] = value
  return whole, each


def line(each: Mapping[str, Mapping[str, float]]) -> str:
  """Bits a character of each language that has them: "de 2.310, yo 3.142"."""
  return ", ".join(
    f"{name} {values[BITS]:.3f}"
    for name, values in each.items()
    if BITS in values
  )


# Of the table: title, width, form, and the metrics, of which a language has
# one at most.
_COLUMNS = (
  ("loss", 8, "{:.3f}", LOSSES),
  ("bits/character", 15, "{:.3f}", (BITS,)),
  ("accuracy", 9, "{:.1%}", ("mlm_accuracy", "lm_accuracy")),
)


def table(each: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
  """A line for each language, and one for their mean."""
  rows = {
    name: [
      next((values[m] for m in metrics if m in values), None)
      for *_, metrics in _COLUMNS
    ]
    for name, values in each.items()
  }
  known = [
    [value for value in column if value is not None]
    for column in zip(*rows.values(), strict=True)
  ]
  rows["mean"] = [sum(x) / len(x) if x else None for x in known]
  width = max(map(len, rows))
  yield " " * width + "".join(f"{c[0]:>{c[1]}}" for c in _COLUMNS)
  for name, values in rows.items():
    cells = [
      f"{'-' if value is None else form.format(value):>{size}}"
      for value, (_, size, form, _) in zip(values, _COLUMNS, strict=True)
    ]
    yield f"{name:<{width}}{''.join(cells)}"
