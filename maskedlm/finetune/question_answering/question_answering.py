"""Question answering: the answer is a part of a text, or there is none.

The chapter's span-oriented way with two heads: how likely each token is the
answer's first and its last (Devlin et al. 2019, arXiv:1810.04805, sections 4.2
and 4.3; google-research/bert, run_squad.py). No answer is the span from [CLS]
to [CLS]. Files are SQuAD's (squad.py), scored as its scripts do
(squad_metrics.py); long texts are read in windows (answer_rows.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune.contract import Application, Outputs, Prediction
from maskedlm.finetune.question_answering import metrics, squad
from maskedlm.finetune.question_answering import rows as answer_rows
from maskedlm.finetune.question_answering.squad import Example
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import head_input, head_stddevs, sentence_vector
from maskedlm.modeling.layers import Dense
from maskedlm.modeling.losses import accuracy, cross_entropy

READING = ("allow_impossible", "fix_offsets")
EXAMPLES = ("Who wrote it?\tThe novel was written by Jane Austen in 1813.",)
MASKED = -1e9  # The score of what can't be; finite, so no nan.


class Options(NamedTuple):
  """config.task of this kind."""

  allow_impossible: bool = False  # SQuAD 2.0: a question may have no answer.
  max_query: int = 64  # Tokens of a question; the rest is cut off.
  # Tokens from a window of a long text to the next; fewer where windows would
  # overlap by less than the longest answer.
  stride: int = 128
  max_answer_length: int = 30  # Tokens.
  n_best: int = 20  # Answers that are told, with their probabilities.
  # Answers that aren't at their offset in a file: take the nearest place.
  fix_offsets: bool = False


# --- Files ---


def read(source: str, options: Options) -> list[Example]:
  """The questions of a SQuAD file or of "tfds:squad/v1.1:train" (squad.py)."""
  return squad.read_questions(
    source,
    allow_impossible=options.allow_impossible,
    fix_offsets=options.fix_offsets,
  )


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: JSON, or question, tab, text (squad.py)."""
  del options
  return squad.parse_question(line)


def group(example: Example) -> str:
  """Questions on one text stay on one side of a split: no leaks."""
  return example.context


def describe(examples: Sequence[Example], options: Options) -> dict[str, Any]:
  """How many training questions there are, and how many have no answer.

  Raises:
    DataError: answers are not known, or none has one.
  """
  del options
  squad.require_answers(examples)  # They must be known.
  impossible = sum(not example.answers for example in examples)
  if impossible == len(examples):
    raise DataError(
      f"{examples[0].where}: neither it nor any other of the "
      f"{len(examples):,} questions for training has an answer; expected some."
    )
  return {"questions": len(examples), "impossible": impossible}


# --- The model ---


class SpanHead(nn.Module):
  """Two scores of each token: that it is the answer's first, its last."""

  cfg: EncoderConfig

  @nn.compact
  def __call__(self, x):
    """x [B, L, D] -> float32 [B, L, 2]."""
    cfg = self.cfg
    B, L, D = x.shape
    _, stddev = head_stddevs(cfg)
    dense = Dense((D,), (2,), stddev, cfg.dtype, name="dense")
    x = dense(head_input(cfg, x.reshape(B * L, D)))
    return x.astype(jnp.float32).reshape(B, L, 2)


def make(
  tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: options that leave no room for a text, or no answer.
  """
  del about
  _check(options, length, specials=2 + cfg.pair_separators)
  head = SpanHead(cfg)
  encode = answer_rows.cached_encoder(tokenizer)

  def init(key):
    x = jnp.zeros((1, 1, cfg.width))
    return {"span_head": head.init(key, x)["params"]}

  def logits(params, batch, key, train):
    """Start and end scores, [B, L] each."""
    x = masked_lm.encode(cfg, params, batch, key, train)
    # No answer is said of the whole row: left to right [CLS] hasn't seen it.
    x = x.at[:, 0].set(sentence_vector(cfg, x, batch["segment_ids"]))
    both = head.apply({"params": params["span_head"]}, x)
    return both[..., 0], both[..., 1]

  def loss(params, batch, key, train):
    weights = batch["example_weights"]
    inside = _within(batch["context"], batch["input_ids"].shape[1])
    allowed = inside.at[:, 0].set(True)
    terms, stats = [], {}
    scores = logits(params, batch, key, train)
    for name, score in zip(("start", "end"), scores, strict=True):
      score = jnp.where(allowed, score, MASKED)
      terms.append(cross_entropy(score, batch[name], weights=weights))
      stats[f"{name}_accuracy"] = accuracy(score, batch[name], weights=weights)
    (start, weight), (end, _) = terms
    return {"answer": ((start + end) / 2, weight)}, stats

  def outputs(params, batch):
    start, end = logits(params, batch, None, False)
    found = best_spans(
      start,
      end,
      context=batch["context"],
      kept=batch["kept"],
      max_length=options.max_answer_length,
      count=options.n_best,
    )
    # From places in the row to tokens of the text.
    shift = batch["first"] - batch["context"][:, 0]
    return {
      "scores": found.scores,
      "spans": found.spans + shift[:, None, None],
      "null": start[:, 0] + end[:, 0],
    }

  def decode(examples, rows, outputs: Outputs, tuned) -> list[Prediction]:
    threshold = tuned.get("null_threshold", 0.0)
    bounds = np.searchsorted(rows.example, np.arange(len(examples) + 1))
    return [
      _predict_one(
        example,
        encode(example.context).offsets,
        {name: outputs[name][begin:end] for name in outputs},
        options,
        threshold,
      )
      for example, begin, end in zip(
        examples, bounds[:-1], bounds[1:], strict=True
      )
    ]

  def tune(examples, rows, outputs):
    if not options.allow_impossible:
      return {}
    gold = squad.require_answers(examples)
    answers, odds = _non_null(examples, decode(examples, rows, outputs, {}))
    threshold = metrics.calibrate_threshold(gold, answers, odds)
    return {"null_threshold": threshold}

  def score(examples, predictions):
    gold = squad.require_answers(examples)
    found = {
      e.id: p["answer"] for e, p in zip(examples, predictions, strict=True)
    }
    if not options.allow_impossible:
      return metrics.evaluate_v1(gold, found)
    return {
      **metrics.evaluate_v2(gold, found),
      **metrics.best_thresholds(gold, *_non_null(examples, predictions)),
    }

  return Application(
    rows=lambda examples: answer_rows.make_rows(
      examples,
      tokenizer,
      encode,
      length=length,
      max_query=options.max_query,
      stride=options.stride,
      max_answer_length=options.max_answer_length,
      separators=cfg.pair_separators,
      num_types=cfg.num_types,
    ),
    init=init,
    loss=loss,
    outputs=outputs,
    decode=decode,
    score=score,
    best="f1",
    tune=tune,
    gold=squad.require_answers,
  )


class Spans(NamedTuple):
  """The best spans of each row, the best first; P of them."""

  scores: Any  # [B, P] float32; about MASKED where there were fewer.
  spans: Any  # [B, P, 2] int32: first and last place.


def best_spans(
  start, end, *, context, kept, max_length: int, count: int
) -> Spans:
  """The spans with the largest start + end score: all are looked at.

  run_squad.py takes the 20 best starts and ends of a row and looks at their
  pairs; here no good span is missed because neither end is among them.

  Args:
    start, end: [B, L] scores of each place.
    context: [B, 2]; an answer is within.
    kept: [B, 2]; it begins within.
    max_length: places of the longest.
    count: the most to return.
  """
  B, L = start.shape
  W = min(max_length, L)
  start = jnp.where(_within(kept, L), start, MASKED)
  end = jnp.where(_within(context, L), end, MASKED)
  end = jnp.pad(end, ((0, 0), (0, W)), constant_values=MASKED)
  ends = end[:, jnp.arange(L)[:, None] + jnp.arange(W)]  # [B, L, W].
  scores = (start[:, :, None] + ends).reshape(B, L * W)
  scores, places = lax.top_k(scores, min(count, L * W))
  first = places // W
  return Spans(scores, jnp.stack([first, first + places % W], axis=-1))


def _within(bounds, length: int):
  """bounds [B, 2] -> [B, L] bool: places from begin to end - 1."""
  places = jnp.arange(length)
  return (bounds[:, :1] <= places) & (places < bounds[:, 1:])


def _check(options: Options, length: int, *, specials: int) -> None:
  for name in ("max_query", "stride", "max_answer_length", "n_best"):
    if getattr(options, name) < 1:
      raise ConfigError(
        f"task.{name}={getattr(options, name)} is out of range: expected 1 to "
        "any."
      )
  room = length - options.max_query - specials
  if room < options.max_answer_length:
    raise ConfigError(
      f"data.length={length} leaves {max(room, 0)} tokens to the text, beside "
      f"task.max_query={options.max_query} of the question and {specials} "
      f"specials; expected the {options.max_answer_length} of the longest "
      "answer at least: set a larger length, or a smaller max_query."
    )


# --- What is said of an example ---


def _predict_one(
  example: Example,
  offsets: np.ndarray,
  outputs: Outputs,
  options: Options,
  threshold: float,
) -> Prediction:
  """The prediction from the outputs of an example's rows."""
  best = _n_best(example.context, offsets, outputs, options.n_best)
  # A window that lacks the answer says so, which is no news: no answer is as
  # likely as where it is least.
  null = float(np.min(outputs["null"]))
  odds = null - (best[0]["score"] if best else MASKED)
  if options.allow_impossible or not best:
    best.append({"answer": "", "start": None, "end": None, "score": null})
    best.sort(key=lambda found: -found["score"])
  shares = np.exp([found["score"] - best[0]["score"] for found in best])
  shares /= shares.sum()
  best = [
    {**found, "score": share}
    for found, share in zip(best, shares.tolist(), strict=True)
  ]
  is_null = options.allow_impossible and odds > threshold
  chosen = next(
    (found for found in best if (found["answer"] == "") == is_null), best[0]
  )
  made = {"id": example.id, "question": example.question, **chosen}
  if options.allow_impossible:
    made["null_odds"] = odds
  return {**made, "nbest": best}


def _n_best(
  context: str, offsets: np.ndarray, outputs: Outputs, count: int
) -> list[dict[str, Any]]:
  """Answers of different texts, the best first, scored as by the model."""
  scores = np.concatenate(outputs["scores"])
  spans = np.concatenate(outputs["spans"])
  best: dict[str, dict] = {}  # By their texts.
  for index in np.argsort(-scores, kind="stable"):
    if len(best) == count or scores[index] < MASKED / 2:
      break
    begin, end = answer_rows.answer_characters(context, offsets, *spans[index])
    text = context[begin:end]
    if text and text not in best:
      score = float(scores[index])
      best[text] = {"answer": text, "start": begin, "end": end, "score": score}
  return list(best.values())


def _non_null(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> tuple[dict[str, str], dict[str, float]]:
  """By id: the best answer that is one, and null_odds."""
  answers = {
    e.id: next((n["answer"] for n in p["nbest"] if n["answer"]), "")
    for e, p in zip(examples, predictions, strict=True)
  }
  odds = [p["null_odds"] for p in predictions]
  return answers, dict(zip(answers, odds, strict=True))


def show(prediction: Prediction) -> str:
  """The answer and its probability."""
  return f"{prediction['answer'] or '(no answer)'}\t{prediction['score']:.3f}"


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """The official files, mistakes.tsv and by_question.txt."""
  is_v2 = "null_odds" in predictions[0]
  return {
    **squad.format_predictions(predictions),
    **metrics.format_error_tables(
      {example.id: example.question for example in examples},
      squad.require_answers(examples),
      {prediction["id"]: prediction["answer"] for prediction in predictions},
      metrics.score_v2 if is_v2 else metrics.score_v1,
    ),
  }


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """The files of run_squad.py: predictions, n-best, and null_odds of 2.0."""
  del options
  return {
    **squad.format_predictions(predictions),
    **squad.format_n_best(predictions),
  }
