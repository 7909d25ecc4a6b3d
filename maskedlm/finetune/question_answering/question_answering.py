"""Question answering: the answer is a part of a text, or there is none.

A head scores each token as the first and as the last of the answer (Devlin et
al. 2019, arXiv:1810.04805, sections 4.2 and 4.3; google-research/bert,
run_squad.py). The span from [CLS] to [CLS] means that there is no answer. Files
are SQuAD's or MRQA's (data/labelled/formats/squad.py), scored as by SQuAD's
scripts (metrics.py); long texts are read in windows (rows.py).
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.labelled.formats import squad
from maskedlm.data.labelled.formats.squad import Example
from maskedlm.finetune.common.head import Heads
from maskedlm.finetune.common.labels import Gold
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Outputs,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.finetune.question_answering import metrics
from maskedlm.finetune.question_answering.rows import (
  Encode,
  answer_characters,
  cached_encoder,
  make_rows,
)
from maskedlm.modeling.heads import sentence_vector
from maskedlm.modeling.losses import loss_and_accuracy
from maskedlm.modeling.task_heads import ensemble
from maskedlm.modeling.task_heads.answers import (
  MASKED,
  AnswerHead,
  best_spans,
  positions_within,
)

# Both as in run_squad.py.
MAX_QUERY = 64  # Tokens of a question; the rest is cut off.
N_BEST = 20  # Answers in a prediction, with their probabilities.


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  allow_impossible: bool = task_option(
    False, "A question may have no answer, as in SQuAD 2.0.", overridable=True
  )
  null_threshold: float | None = task_option(
    None,
    "The null_odds above which there is no answer, instead of the calibrated "
    "threshold.",
    overridable=True,
    needs={"task.allow_impossible": True},
  )
  stride: int = task_option(
    128,
    "Tokens from a window of a long text to the next; fewer if windows would "
    "overlap by less than the longest answer.",
    low=1,
  )
  max_answer_length: int = task_option(
    30, "Tokens of the longest answer.", low=1
  )


GOLD = Gold("answers", '[{"text": ..., "answer_start": ...}]')


def describe_labels(examples: Sequence[Example]) -> dict[str, Any]:
  """Returns the number of training questions, and of those without an answer.

  Raises:
    DataError: the file has no answers, or no question has one.
  """
  GOLD.of(examples)
  impossible = sum(not example.answers for example in examples)
  if impossible == len(examples):
    count = counted(len(examples), "question")
    raise DataError(
      f"{examples[0].where}: {count} for training, none with an answer."
    )
  return {"questions": len(examples), "impossible": impossible}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application.

  Raises:
    ConfigError: a row has no room for a question and the longest answer.
  """
  tokenizer, cfg, _, length = setup
  max_query = _question_room(options, length, specials=2 + cfg.pair_separators)
  x = np.zeros((1, 1, cfg.width), np.float32)
  reader = Reader(
    options,
    Heads(cfg, {"span_head": (AnswerHead(cfg), (x,))}),
    cached_encoder(tokenizer),
  )
  return Application(
    make_rows=functools.partial(
      make_rows,
      tokenizer=tokenizer,
      cfg=cfg,
      encode=reader.encode,
      length=length,
      max_query=max_query,
      stride=options.stride,
      max_answer_length=options.max_answer_length,
    ),
    init=reader.heads.init,
    loss=reader.loss,
    outputs=reader.outputs,
    decode=reader.decode,
    score=reader.score,
    best="f1",
    calibrate=reader.calibrate,
    require_labels=GOLD.of,
  )


class Reader(NamedTuple):
  """The task for one tokenizer and architecture."""

  options: Options
  heads: Heads
  encode: Encode

  def _scores(self, params: Params, batch: Batch, key, train: bool):
    """Returns the start and the end scores, [B, L] each, MASKED elsewhere."""
    x = self.heads.encode(params, batch, key, train)
    # The score of "no answer", at [CLS], depends on the whole row, which [CLS]
    # in a causal encoder hasn't read.
    x = x.at[:, 0].set(sentence_vector(self.heads.cfg, x, batch["segment_ids"]))
    scores = self.heads.apply("span_head", params, x, key=key, train=train)
    allowed = positions_within(batch["context"], x.shape[1]).at[:, 0].set(True)
    return [jnp.where(allowed, scores[..., i], MASKED) for i in range(2)]

  def loss(self, params: Params, batch: Batch, key: Key, train: bool):
    """Returns the mean of the cross-entropies of the answer's two ends."""
    weights = batch["example_weights"]
    terms, stats = [], {}
    scores = self._scores(params, batch, key, train)
    for name, score in zip(("start", "end"), scores, strict=True):
      term, accuracy = loss_and_accuracy(score, batch[name], weights=weights)
      terms.append(term)
      stats[f"{name}_accuracy"] = accuracy
    (start, weight), (end, _) = terms
    return {"answer": ((start + end) / 2, weight)}, stats

  def outputs(self, params: Params, batch: Batch, every=ensemble.alone):
    """Returns the best spans of each row, their scores, and that of none."""
    start, end = (
      ensemble.mean_softmax(every(scores))
      for scores in self._scores(params, batch, None, False)
    )
    scores, spans = best_spans(
      start,
      end,
      context=batch["context"],
      kept=batch["kept"],
      max_length=self.options.max_answer_length,
      count=N_BEST,
    )
    # From positions in the row to tokens of the text.
    shift = batch["first"] - batch["context"][:, 0]
    return {
      "scores": scores,
      "spans": spans + shift[:, None, None],
      "null": start[:, 0] + end[:, 0],
    }

  def decode(
    self,
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    """Returns the answer of each question, and the next best ones."""
    threshold = self.options.null_threshold
    if threshold is None:
      threshold = tuned.get("null_threshold", 0.0)
    pairs = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      _predict_one(
        example,
        self.encode(example.context)[1],
        {name: outputs[name][span.start : span.stop] for name in outputs},
        self.options,
        threshold,
      )
      for example, span in pairs
    ]

  def calibrate(
    self, examples: Sequence[Example], rows: Rows, outputs: Outputs
  ) -> dict[str, float]:
    """Returns the null_odds above which no answer gives the highest F1."""
    if not self.options.allow_impossible:
      return {}
    threshold = self.options.null_threshold
    if threshold is None:
      predictions = self.decode(examples, rows, outputs, {})
      threshold = metrics.calibrate_threshold(
        _gold_texts(examples), *_non_null(examples, predictions)
      )
    return {"null_threshold": threshold}

  def score(
    self, examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    """Returns the scores of SQuAD's script, of 2.0 if options say so."""
    gold = _gold_texts(examples)
    pairs = zip(examples, predictions, strict=True)
    answers = {e.id: p["answer"] for e, p in pairs}
    if not self.options.allow_impossible:
      return metrics.evaluate_v1(gold, answers)
    return {
      **metrics.evaluate_v2(gold, answers),
      **metrics.best_thresholds(gold, *_non_null(examples, predictions)),
    }


def _gold_texts(examples: Sequence[Example]) -> dict[str, list[str]]:
  """Returns {id: gold answers}, for the metrics."""
  pairs = zip(examples, GOLD.of(examples), strict=True)
  return {x.id: [answer.text for answer in answers] for x, answers in pairs}


def _question_room(options: Options, length: int, *, specials: int) -> int:
  """Returns the most tokens of a question that leave room for an answer."""
  room = length - specials - options.max_answer_length
  if room < 1:
    raise ConfigError(
      f"data.length={length} has no room for a question, beside {specials} "
      f"special tokens and task.max_answer_length={options.max_answer_length}; "
      f"expected at least {length - room + 1} (beside a checkpoint, --length)."
    )
  return min(room, MAX_QUERY)


def _predict_one(
  example: Example,
  offsets: np.ndarray,
  outputs: Outputs,
  options: Options,
  threshold: float,
) -> Prediction:
  """Returns the prediction from the outputs of an example's rows."""
  best = n_best(example.context, offsets, outputs, N_BEST)
  # Windows that don't contain the answer rightly score "no answer" high, so the
  # window in which it is least likely decides.
  null = float(np.min(outputs["null"]))
  odds = null - (best[0]["score"] if best else MASKED)
  if options.allow_impossible or not best:
    best.append({"answer": "", "start": None, "end": None, "score": null})
    best.sort(key=lambda answer: -answer["score"])
  shares = np.exp([answer["score"] - best[0]["score"] for answer in best])
  shares /= shares.sum()
  best = [
    {**answer, "score": share}
    for answer, share in zip(best, shares.tolist(), strict=True)
  ]
  is_null = options.allow_impossible and odds > threshold
  chosen = next(
    (answer for answer in best if (answer["answer"] == "") == is_null), best[0]
  )
  prediction = {"id": example.id, "question": example.question, **chosen}
  if options.allow_impossible:
    prediction["null_odds"] = odds
  return {**prediction, "nbest": best}


def n_best(
  context: str, offsets: np.ndarray, outputs: Outputs, count: int
) -> list[dict[str, Any]]:
  """Returns the best answers with different texts, the best first."""
  scores = np.concatenate(outputs["scores"])
  spans = np.concatenate(outputs["spans"])
  best: dict[str, dict] = {}  # Text -> answer.
  for index in np.argsort(-scores, kind="stable"):
    if len(best) == count or scores[index] < MASKED / 2:
      break
    begin, end = answer_characters(context, offsets, *spans[index])
    text = context[begin:end]
    if text and text not in best:
      score = float(scores[index])
      best[text] = {"answer": text, "start": begin, "end": end, "score": score}
  return list(best.values())


def _non_null(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[dict[str, str], dict[str, float]]:
  """Returns the best non-empty answers and the null_odds, both by id."""
  answers = {
    e.id: next((n["answer"] for n in p["nbest"] if n["answer"]), "")
    for e, p in zip(examples, predictions, strict=True)
  }
  odds = [p["null_odds"] for p in predictions]
  return answers, dict(zip(answers, odds, strict=True))


def format_prediction(prediction: Prediction) -> str:
  """Returns the answer and its probability."""
  return f"{prediction['answer'] or '(no answer)'}\t{prediction['score']:.3f}"


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns the official files, mistakes.tsv and by_question.txt."""
  is_v2 = "null_odds" in predictions[0]
  return {
    **squad.write_predictions(predictions),
    **metrics.format_error_tables(
      {example.id: example.question for example in examples},
      _gold_texts(examples),
      {prediction["id"]: prediction["answer"] for prediction in predictions},
      metrics.score_v2 if is_v2 else metrics.score_v1,
    ),
  }


def export_predictions(predictions: Sequence[Prediction]) -> dict[str, str]:
  """Returns the files of run_squad.py: predictions, n-best and null_odds."""
  return {
    **squad.write_predictions(predictions),
    **squad.write_n_best(predictions),
  }


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="question_answering",
    options=options,
    read_examples=functools.partial(
      squad.read_questions, allow_impossible=options.allow_impossible
    ),
    parse_line=squad.parse_question,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=export_predictions,
    split_key=lambda example: example.context,
    demo_lines=(
      "Who wrote it?\tThe novel was written by Jane Austen in 1813.",
    ),
  )
