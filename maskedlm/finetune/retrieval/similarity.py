"""Similarity: vectors whose cosines order pairs of texts as their grades do.

Grades are any numbers, such as 0 to 5 in STS-B. With c the cosines of a batch's
pairs and g their grades, the loss is

  cosent  log(1 + sum over pairs i, j with g_i > g_j of exp((c_j - c_i) / T))
          (CoSENT, Huang et al. 2024, doi:10.1109/TASLP.2024.3402087)
  cosine  (c - g)^2 of each pair, of grades from -1 to 1

The vectors are retrieval's. Dimensions: B pairs, 2 texts in each, D numbers.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.core.options import copy_option
from maskedlm.core.task import Batch, Metrics
from maskedlm.data.labelled.formats import texts
from maskedlm.data.labelled.formats.passages import Example as Passages
from maskedlm.finetune.common import label_metrics
from maskedlm.finetune.common.labels import Gold
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Setup,
  task_option,
)
from maskedlm.finetune.retrieval import retrieval
from maskedlm.finetune.retrieval.contrastive import normalise
from maskedlm.modeling import losses

GOLD = Gold("label", "a number, in the column of the grades")


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task: the columns of the files, the vectors and the loss."""

  text: str = task_option(
    "", "Column of a text; '' for a usual name, as sentence1.", overridable=True
  )
  text_b: str = task_option(
    "", "Column of the other; '' for a usual name.", overridable=True
  )
  label: str = task_option(
    "", "Column of the grade; '' for label or score.", overridable=True
  )
  header: tuple[str, ...] = copy_option(Shared, "header")
  pool: str = copy_option(retrieval.Options, "pool")
  loss: str = task_option(
    "cosent",
    "cosent: the order of the grades; cosine: the grades, from -1 to 1, are "
    "the cosines.",
    choices=("cosent", "cosine"),
  )
  temperature: float = copy_option(
    retrieval.Options, "temperature", needs={"task.loss": ("cosent",)}
  )


def describe_labels(examples: Sequence[texts.Example], options: Options):
  """Returns {}; raises DataError if a grade can't be a cosine, but should."""
  for example in GOLD.labelled(examples):
    if options.loss == "cosine" and not -1 <= GOLD.of([example])[0] <= 1:
      raise DataError(
        f"{example.where}: the grade is {example.label:g}; expected -1 to 1 "
        "for task.loss=cosine: divide them, or take task.loss=cosent, which "
        "needs their order alone."
      )
  return {}


def loss_and_metrics(
  kind: str, x, batch: Batch, *, temperature: float
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) as Task.loss, of vectors [B, 2, D]."""
  unit, g, weights = normalise(x), batch["grades"], batch["example_weights"]
  c = jnp.einsum("BD,BD->B", unit[:, 0], unit[:, 1], precision="highest")
  value = (c - g) ** 2
  if kind == "cosent":
    is_pair = (g[:, None] > g) & (weights[:, None] * weights > 0)
    worse = jnp.where(is_pair, (c - c[:, None]) / temperature, -jnp.inf)
    # Of the whole batch: each row has it, so it is the mean.
    value = jnp.full_like(c, jax.nn.logsumexp(jnp.append(worse, 0.0)))
    weights = weights * jnp.any(is_pair)
  return {kind: losses.weighted_sum(value, weights)}, {}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application: retrieval's vectors, with another loss."""
  app = retrieval.make_application(setup, retrieval.Options(pool=options.pool))
  vectors = app.vectors
  assert vectors is not None  # Retrieval trains vectors.
  loss_of_vectors = functools.partial(
    loss_and_metrics, options.loss, temperature=options.temperature
  )

  def rows_of(examples):
    pairs = [Passages(e.text, (e.text_b,), is_gold=False) for e in examples]
    rows = app.make_rows(pairs)
    grades = np.float32([e.label or 0.0 for e in examples])
    return rows._replace(values={**rows.values, "grades": grades}, texts=())

  def decode(examples, rows, outputs, tuned) -> list[dict[str, Any]]:
    x = np.stack(outputs["vectors"]) if examples else np.zeros((0, 2, 1))
    cosines = np.einsum("nd,nd->n", x[:, 0], x[:, 1])
    return [{"cosine": float(cosine)} for cosine in cosines]

  return app._replace(
    make_rows=rows_of,
    loss=lambda params, batch, key, train: loss_of_vectors(
      vectors(params, batch, key, train), batch
    ),
    loss_of_vectors=loss_of_vectors,
    decode=decode,
    score=score,
    best="spearman",
    has_label=GOLD.has,
    require_labels=GOLD.of,
  )


def score(examples, predictions) -> dict[str, float]:
  """Returns Spearman's correlation of the cosines with the grades."""
  cosines = [p["cosine"] for p in predictions]
  gold = GOLD.of(examples)
  return {"spearman": label_metrics.evaluate_scores(gold, cosines)["spearman"]}


def format_tables(examples, predictions) -> dict[str, str]:
  """Returns cosines.tsv: the grade and the cosine of each pair."""
  cosines, gold = [p["cosine"] for p in predictions], GOLD.of(examples)
  return {"cosines.tsv": label_metrics.score_table(gold, cosines, "cosine")}


def make_task(options: Options) -> FinetuneTask:
  layout = texts.FileLayout(
    text=(options.text,) if options.text else texts.FIRST_TEXTS,
    text_b=(options.text_b,) if options.text_b else texts.SECOND_TEXTS,
    label=(options.label,) if options.label else ("label", "score"),
    regression=True,
    header=options.header,
  )
  pooling = retrieval.sentence_pooling(retrieval.Options(pool=options.pool))
  return FinetuneTask(
    name="similarity",
    options=options,
    read_examples=functools.partial(texts.read_examples, layout=layout),
    parse_line=functools.partial(texts.parse_line, layout=layout),
    describe_labels=functools.partial(describe_labels, options=options),
    make_application=functools.partial(make_application, options=options),
    format_prediction=lambda prediction: f"{prediction['cosine']:.3f}",
    format_tables=format_tables,
    sentence_pooling=pooling,
    demo_lines=("She wrote it.\tThe author was a woman.",),
  )
