"""Coreference: which of two names a pronoun refers to, or neither.

Span-pair scoring (Jurafsky & Martin, section 11.5.2; Lee et al. 2017,
arXiv:1707.07045): with the vectors of the pronoun's span p and a name's a,

  s(p, a) = FFN([p; a; p * a]),  s(p, neither) = 0,

and a softmax over the three. The data are GAP's (gap.py), whose documents are
short; a document longer than a row is cut around its mentions (mentions.py).
"""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import mentions, single_label, unseen_labels
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.gold_labels import (
  gold_labels,
  labelled,
  require_two_labels,
)
from maskedlm.finetune.common.head import Head, make_head
from maskedlm.finetune.common.pair_scorer import PairScorer
from maskedlm.finetune.common.span_vectors import REPRESENTATIONS
from maskedlm.finetune.common.text_pairs import text_tokens
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.finetune.coreference import gap
from maskedlm.finetune.coreference.gap import ANSWERS, Example


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  representation: str = task_option(
    "endpoints_mean",
    "How the vector of a span is made.",
    choices=tuple(REPRESENTATIONS),
  )


# --- The labels of the training set ---


def describe_labels(examples: Sequence[Example]) -> dict[str, dict[str, int]]:
  """Returns {"answers": {answer: number of training examples}}.

  Raises:
    DataError: no example has an answer, or all answers are the same.
  """
  examples = labelled(examples, "answer")
  gold = _gold_labels(examples)
  require_two_labels(examples, gold, "answer")
  return {"answers": {answer: gold.count(answer) for answer in ANSWERS}}


# --- The model ---


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application."""
  tokenizer, cfg, _, length = setup
  scorer = make_head(
    cfg,
    "pair_head",
    PairScorer(cfg, options.representation),
    (jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 3, 2), jnp.int32)),
    lambda hidden, batch: (hidden, batch["spans"]),
  )

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    """Returns float32 [B, 3], in the order of ANSWERS."""
    names = scorer.logits(params, batch, key, train)
    # "Neither" scores 0; the bias of the FFN's last layer is relative to it.
    return jnp.pad(names, [(0, 0), (1, 0)])

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    _gold_labels(examples)  # Raises if one is missing.
    return gap.evaluate_answers(examples, [p["answer"] for p in predictions])

  return single_label.make_classifier(
    Head(scorer.init, logits),
    make_rows=lambda examples: _make_rows(examples, tokenizer, length),
    predict=_prediction,
    score=score,
    best="f1",
    has_label=lambda example: example.answer is not None,
    require_labels=_require_labels,
    term="coreference",
  )


def _make_rows(
  examples: Sequence[Example], tokenizer: Tokenizer, length: int
) -> Rows:
  """Returns rows [CLS] text [SEP] with spans [n, 3, 2] of the mentions."""
  pieces = [
    mentions.tokenize_around(
      tokenizer, example.text, example.mentions, length - 2
    )
    for example in examples
  ]
  spans = np.array([piece.spans for piece in pieces], np.int32)
  labels = [ANSWERS.index(e.answer or ANSWERS[0]) for e in examples]
  return Rows(
    tokens=text_tokens(tokenizer, [piece.ids for piece in pieces]),
    values={
      "spans": spans.reshape(-1, 3, 2) + 1,  # After [CLS].
      "labels": np.array(labels, np.int32),
    },
    example=np.arange(len(pieces)),
    cut=[p.size + 2 for p in pieces if p.size > len(p.ids)],
  )


def _require_labels(examples: Sequence[Example]) -> None:
  named = [answer for answer in _gold_labels(examples) if answer != ANSWERS[0]]
  unseen_labels.note_none(named, examples, "pronoun that means A or B")


def _gold_labels(examples: Sequence[Example]) -> list[str]:
  """Returns the answers; raises DataError if an example has none."""
  return gold_labels(
    examples, "answer", "the columns A-coref and B-coref, TRUE or FALSE"
  )


# --- Predictions ---


def _prediction(example: Example, shares: list[float]) -> Prediction:
  answer = ANSWERS[np.argmax(shares)]
  fields: Prediction = {"id": example.id, "text": example.text}
  for name, (begin, end) in zip(
    ("pronoun", "a", "b"), example.mentions, strict=True
  ):
    fields[name] = example.text[begin:end]
    fields[f"{name}_offset"] = begin
  return {
    **fields,
    "answer": answer,
    "name": None if answer == "NEITHER" else fields[answer.lower()],
    "probability": max(shares),
    "probabilities": dict(zip(ANSWERS, shares, strict=True)),
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the pronoun, the name it refers to, and the probability."""
  p = prediction
  name = "(neither)" if p["name"] is None else p["name"]
  return f"{p['pronoun']}\t{name}\t{p['probability']:.3f}"


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns confusion.tsv, and the official scorer's input."""
  found = [p["answer"] for p in predictions]
  ids = [example.id for example in examples]
  return {
    "confusion.tsv": confusion_table(_gold_labels(examples), found),
    "gap_system.tsv": gap.format_answers(ids, found),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns the official scorer's input: ID, A-coref, B-coref."""
  ids, found = ([p[name] for p in predictions] for name in ("id", "answer"))
  return {"gap_system.tsv": gap.format_answers(ids, found)}


TASK = FinetuneTask(
  name="coreference",
  options=Options,
  read_examples=lambda source, options: gap.read_examples(source),
  parse_line=lambda line, options: gap.parse_line(line),
  describe_labels=lambda examples, options: describe_labels(examples),
  make_application=make_application,
  format_prediction=format_prediction,
  format_tables=format_tables,
  export_predictions=lambda predictions, options: export_predictions(
    predictions
  ),
  # Examples of a page share names.
  split_key=lambda example: example.page or example.text,
  head_options=("representation",),
  demo_lines=(gap.INPUT_EXAMPLE,),
)
