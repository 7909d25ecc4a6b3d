"""Coreference chains: the mentions of a document, by what they refer to.

Mentions are found and linked in one model (Jurafsky & Martin, section 11.5;
Lee et al. 2017, arXiv:1707.07045, and 2018, arXiv:1804.05392):
modeling/task_heads/chain_head.py scores spans and links, rows.py cuts
documents, linking.py decodes. The files are CoNLL-2012's, and so are the
metrics (metrics.py).
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.options import changed_default
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats import chains as chain_files
from maskedlm.data.labelled.formats.chains import Example
from maskedlm.finetune.common.decoding import Row, by_example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import Gold, file_of
from maskedlm.finetune.common.multi_sequence import flatten_sequences
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Setup,
  task_option,
)
from maskedlm.finetune.coreference_chains import linking, metrics
from maskedlm.finetune.coreference_chains.rows import make_rows
from maskedlm.finetune.coreference_chains.text import (
  chain_prediction,
  format_prediction,
  parse_line,
  predicted_chains,
)
from maskedlm.modeling.task_heads import chain_head as head
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.span_vectors import SpanScorer

_CHAIN = "chain"
GOLD = Gold(
  "chains",
  "a document of a CoNLL-2012 file, whose last column marks chains",
  lambda example: [(_CHAIN, example.where)] * len(example.chains),
  thing="chain",
  metric="conll_f1",
)


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  max_mention_words: int = task_option(
    10, "Words of the widest mention; costs time.", low=1, high=512
  )
  segments: int = task_option(
    11,
    "Rows of a document that are trained together, so that links between them "
    "are learnt; costs memory.",
    low=1,
    high=1024,
  )
  representation: str = changed_default(
    Shared, "representation", "self_attention"
  )


def describe_labels(examples: Sequence[Example]) -> dict[str, int]:
  """Returns {"chains": the number of the training set's}.

  Raises:
    DataError: there is none.
  """
  count = len(GOLD.pairs(examples))
  if not count:
    where = file_of(examples)
    raise DataError(
      f"{where}: no chain in {len(examples):,} documents; expected marks such "
      "as (7 and 7) in the last column."
    )
  return {"chains": count}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: max_mention_words is more than a row holds.
  """
  tokenizer, cfg, _, length = setup
  max_words = options.max_mention_words
  if max_words > length - 2:
    raise ConfigError(
      f"task.max_mention_words={max_words} is more than a row holds: at most "
      f"data.length - 2 = {length - 2}; lower it, or raise data.length "
      "(beside a checkpoint, --length)."
    )
  module = head.ChainHead(cfg, options.representation)
  hidden, token = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 1), jnp.int32)
  heads = Heads(cfg, {"chains": (module, (hidden, token, token))})
  linker = Linker(options, heads)
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      length=length,
      segments=options.segments,
      max_words=max_words,
    ),
    init=linker.init,
    loss=linker.loss,
    outputs=linker.outputs,
    decode=by_example(linker.predict),
    score=lambda examples, predictions: metrics.evaluate_chains(
      GOLD.of(examples), predicted_chains(predictions)
    ),
    best="conll_f1",
    has_label=GOLD.has,
    require_labels=functools.partial(GOLD.require, known=[_CHAIN]),
  )


class Linker(NamedTuple):
  """The task with its options."""

  options: Options
  heads: Heads

  def init(self, key: Key) -> Params:
    """Returns the parameters of the head, to which few spans are mentions."""
    params = self.heads.init(key)
    return {"chains": head.with_few_mentions(params["chains"])}

  def _keep(self, params: Params, batch: Batch, key, train: bool, every):
    """Returns the kept spans, and the scores of all spans and of distances."""
    module, _ = self.heads.modules["chains"]
    sequences = flatten_sequences(batch)
    kept, scores = head.keep_spans(
      SpanScorer(module, params["chains"], key, train),
      self.heads.encode(params, sequences, key, train),
      batch,
      max_words=self.options.max_mention_words,
      every=every,
    )
    distance_scores = module.apply(
      {"params": params["chains"]}, method="distance_scores"
    )
    return kept, scores, ensemble.mean(every(distance_scores))

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the losses of antecedents and of mentions, as chain_loss."""
    kept, scores, distance_scores = self._keep(
      params, batch, key, train, ensemble.alone
    )
    return head.chain_loss(
      kept,
      scores,
      head.link_scores(kept, distance_scores, linking.MAX_ANTECEDENTS),
      batch,
      max_words=self.options.max_mention_words,
    )

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns the kept spans, whose score is -inf where there is none."""
    kept, _, distance_scores = self._keep(params, batch, None, False, every)
    names = ("segments", "words", "widths", "queries", "keys")
    return {
      **{name: getattr(kept, name) for name in names},
      "scores": jnp.where(kept.valid, kept.scores, -jnp.inf),
      "distance_scores": jnp.tile(distance_scores, (len(kept.valid), 1)),
    }

  def predict(self, example: Example, rows: Sequence[Row]) -> Prediction:
    """Returns the prediction for a document, as chain_prediction."""
    parts = []
    for row in rows:
      first = row["first_words"][row["segments"]]
      begins = first.astype(np.int64) + row["words"]
      spans = linking.Spans(
        begins,
        begins + row["widths"] + 1,
        *(row[name] for name in ("scores", "queries", "keys")),
      )
      is_span = np.isfinite(row["scores"])
      parts.append([x[is_span] for x in spans])
    spans = linking.without_crossings(
      linking.Spans(*map(np.concatenate, zip(*parts, strict=True)))
    )
    antecedents = linking.best_antecedents(
      spans, head.DISTANCES, rows[0]["distance_scores"]
    )
    return chain_prediction(example, linking.make_chains(spans, antecedents))


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns scores.tsv, and the predicted and the gold chains as CoNLL-2012."""
  gold, predicted = GOLD.of(examples), predicted_chains(predictions)
  documents = [
    (e.id, e.words, e.sentence_ends, chains)
    for e, chains in zip(examples, gold, strict=True)
  ]
  return {
    "scores.tsv": metrics.format_scores(
      metrics.evaluate_chains(gold, predicted)
    ),
    "gold.conll": chain_files.format_documents(documents),
    **export_predictions(predictions),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns predictions.conll, the official scorer's response file."""
  predicted = predicted_chains(predictions)
  documents = [
    (p["id"], p["tokens"], p["sentence_ends"], chains)
    for p, chains in zip(predictions, predicted, strict=True)
  ]
  return {"predictions.conll": chain_files.format_documents(documents)}


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="coreference_chains",
    options=options,
    read_examples=chain_files.read_file,
    parse_line=parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.id.rpartition("; part")[0] or example.id,
    demo_lines=("Ann said that she lost her keys. Her brother found them.",),
  )
