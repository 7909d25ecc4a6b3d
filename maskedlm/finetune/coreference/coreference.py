"""Coreference: which of two names does a pronoun mean, or neither?

Span-pair scoring (Jurafsky & Martin, section 11.5.2; Lee et al. 2017,
arXiv:1707.07045): with the vectors of the pronoun's span p and a name's a,

  s(p, a) = FFN([p; a; p * a]),  s(p, neither) = 0,

and a softmax over the three. The data are GAP's (gap.py), on which documents
are short; one longer than a row is cut around its mentions (mentions.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import DataError, check_known
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import mentions, single_label
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.pair_scorer import PairScorer
from maskedlm.finetune.common.span_vectors import REPRESENTATIONS
from maskedlm.finetune.common.text_pairs import text_tokens
from maskedlm.finetune.contract import Application, Prediction, Rows
from maskedlm.finetune.coreference import gap
from maskedlm.finetune.coreference.gap import ANSWERS, Example
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig

EXAMPLES = (gap.INPUT_EXAMPLE,)


class Options(NamedTuple):
  """config.task of this kind."""

  # What a span's vector is: endpoints_mean | ffn_endpoints_mean |
  # self_attention.
  representation: str = "endpoints_mean"


# --- Files ---


def read(source: str, options: Options) -> list[Example]:
  """The examples of a file in GAP's format."""
  del options
  return gap.read_examples(source)


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: a JSON object; see gap.parse."""
  del options
  return gap.parse_line(line)


def group(example: Example) -> str:
  """Texts of one page stay on one side of a split: they share names."""
  return example.page or example.text


def describe(
  examples: Sequence[Example], options: Options
) -> dict[str, dict[str, int]]:
  """{"answers": how often each of them is right in training}.

  Raises:
    DataError: answers are not known, or all are the same.
  """
  del options
  gold = _gold(examples)
  counts = {answer: gold.count(answer) for answer in ANSWERS}
  if max(counts.values()) == len(gold):
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: the answer to all "
      f"{len(gold):,} examples for training is {gold[0]}; expected at least "
      f"two of {', '.join(ANSWERS)}."
    )
  return {"answers": counts}


# --- The model ---


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: an unknown representation.
  """
  del about
  check_known("task", options, {"representation": REPRESENTATIONS})
  head = PairScorer(cfg, options.representation)

  def init(key: Key) -> Params:
    x, spans = jnp.zeros((1, 1, cfg.width)), jnp.zeros((1, 3, 2), jnp.int32)
    return {"pair_head": head.init(key, x, spans, train=False)["params"]}

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    """float32 [B, 3], in the order of ANSWERS."""
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    names = head.apply(
      {"params": params["pair_head"]},
      hidden,
      batch["spans"],
      train=train,
      rngs=masked_lm.head_rngs(key, train),
    )
    # The bias of the FFN's last layer says how likely "neither" is.
    return jnp.pad(names, [(0, 0), (1, 0)])

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    _gold(examples)  # They must be known.
    return gap.evaluate_answers(examples, [p["answer"] for p in predictions])

  return Application(
    rows=lambda examples: _make_rows(examples, tokenizer, length),
    init=init,
    loss=single_label.loss(logits, term="coreference"),
    outputs=single_label.outputs(logits),
    decode=single_label.decode(_prediction),
    score=score,
    best="f1",
    gold=_gold,
  )


def _make_rows(
  examples: Sequence[Example], tokenizer: Tokenizer, length: int
) -> Rows:
  """A row for each text, [CLS] text [SEP], with the spans of its mentions."""
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
      "spans": spans.reshape(-1, 3, 2) + 1,  # They are behind [CLS].
      "labels": np.array(labels, np.int32),
    },
    example=np.arange(len(pieces)),
    truncated=sum(piece.truncated for piece in pieces),
  )


def _gold(examples: Sequence[Example]) -> list[str]:
  """DataError where there is none."""
  for example in examples:
    if example.answer is None:
      raise DataError(
        f"{example.where}: the answer is not known; expected the columns "
        "A-coref and B-coref, TRUE or FALSE."
      )
  return [example.answer for example in examples]


# --- What is said of the predictions ---


def _prediction(example: Example, shares: list[float]) -> Prediction:
  answer = ANSWERS[np.argmax(shares)]
  made: Prediction = {"id": example.id, "text": example.text}
  for name, (begin, end) in zip(
    ("pronoun", "a", "b"), example.mentions, strict=True
  ):
    made[name] = example.text[begin:end]
    made[f"{name}_offset"] = begin
  return {
    **made,
    "answer": answer,
    "name": None if answer == "NEITHER" else made[answer.lower()],
    "probability": max(shares),
    "probabilities": dict(zip(ANSWERS, shares, strict=True)),
  }


def show(prediction: Prediction) -> str:
  """The pronoun, whom it means, and how likely that is."""
  p = prediction
  name = "(neither)" if p["name"] is None else p["name"]
  return f"{p['pronoun']}\t{name}\t{p['probability']:.3f}"


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """confusion.tsv, and what the official scorer takes beside the gold file."""
  found = [p["answer"] for p in predictions]
  ids = [example.id for example in examples]
  return {
    "confusion.tsv": confusion_table(_gold(examples), found),
    "gap_system.tsv": gap.format_answers(ids, found),
  }


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """What the official scorer takes: ID, A-coref, B-coref."""
  del options
  ids, found = ([p[name] for p in predictions] for name in ("id", "answer"))
  return {"gap_system.tsv": gap.format_answers(ids, found)}
