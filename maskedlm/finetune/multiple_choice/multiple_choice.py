"""Multiple choice: which of a few endings, explanations or answers is correct.

Each choice is a row with the context, [CLS] context [SEP] choice [SEP]; its
score is w z_CLS, and a softmax over an example's choices gives their
probabilities (Devlin et al. 2019, arXiv:1810.04805, section 4.4). Dimensions: B
examples, C choices, L tokens in a row. data/labelled/formats/choices.py reads
the files.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from maskedlm.core.options import copy_option
from maskedlm.data.labelled.formats import choices
from maskedlm.data.labelled.formats.choices import Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import multi_sequence, single_label
from maskedlm.finetune.common.head import make_row_head
from maskedlm.finetune.common.label_metrics import confusion_table
from maskedlm.finetune.common.labels import Gold
from maskedlm.finetune.common.options import Shared
from maskedlm.finetune.common.text_pairs import row_maker
from maskedlm.finetune.contract import (
  Application,
  FinetuneTask,
  Prediction,
  Rows,
  Setup,
  task_option,
)
from maskedlm.modeling.architecture import EncoderConfig

_EXAMPLE = (
  "She opened her umbrella because",
  *("it rained.", "it was dry.", "she slept.", "it was hers.", "he sang."),
)


@dataclasses.dataclass(frozen=True)
class Options:
  """config.task."""

  first_label: str = task_option(
    "",
    "The label of the first choice; '' for 0, or what the data set has.",
    choices=("", "0", "1", "A"),
    overridable=True,
  )
  header: tuple[str, ...] = copy_option(Shared, "header")
  pooler: bool = copy_option(Shared, "pooler")


GOLD = Gold(
  "label", 'the index of the correct choice, from 0, in a column "label"'
)


def describe_labels(examples: Sequence[Example]) -> dict[str, int]:
  """Returns {"choices": C}.

  Raises:
    DataError: no example has a label, or numbers of choices differ.
  """
  count = choices.check_num_choices(examples)
  GOLD.of(GOLD.labelled(examples))
  return {"choices": count}


def make_application(setup: Setup, options: Options) -> Application:
  """Returns the Application; `label_info` is empty for an imported model."""
  tokenizer, cfg, label_info, length = setup
  head = make_row_head(cfg, 1, pooler=options.pooler, name="choice_head")

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    pairs = zip(GOLD.of(examples), predictions, strict=True)
    return {"accuracy": float(np.mean([g == p["label"] for g, p in pairs]))}

  return single_label.make_classifier(
    multi_sequence.head_of_each(head),
    make_rows=lambda examples: make_rows(
      examples, tokenizer, cfg, length=length, count=label_info.get("choices")
    ),
    predict=_prediction,
    score=score,
    best="accuracy",
    has_label=GOLD.has,
    require_labels=GOLD.of,
    term="choice",
    metric="choice_accuracy",
  )


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  *,
  length: int,
  count: int | None,
) -> Rows:
  """Returns a row of C sequences for each example (multi_sequence.py).

  `count` is C, or None to take it from the first example.

  Raises:
    DataError: an example doesn't have C choices.
  """
  C = choices.check_num_choices(examples, count)
  contexts = tokenizer.encode_batch([e.context for e in examples])
  flat = tokenizer.encode_batch(
    [f"{e.question} {c}".strip() for e in examples for c in e.choices]
  )
  row = row_maker(tokenizer, cfg, length)
  rows = [
    [row(context, choice) for choice in flat[i * C : (i + 1) * C]]
    for i, context in enumerate(contexts)
  ]
  return multi_sequence.stack_rows(
    rows,
    tokenizer.special.pad,
    labels=np.array([e.label or 0 for e in examples], np.int32),
  )


def _prediction(example: Example, shares: list[float]) -> Prediction:
  label = int(np.argmax(shares))
  return {
    **({"id": example.key} if example.key else {}),
    "label": label,
    "choice": example.choices[label],
    "probability": shares[label],
    "probabilities": shares,
  }


def format_prediction(prediction: Prediction) -> str:
  """Returns the index of the choice, its probability and its text."""
  return "{label}\t{probability:.3f}\t{choice}".format(**prediction)


def format_tables(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """Returns places.tsv, gold by predicted index, and perhaps categories.tsv."""
  gold = GOLD.of(examples)
  predicted = [prediction["label"] for prediction in predictions]
  texts = {
    "places.tsv": confusion_table([*map(str, gold)], [*map(str, predicted)])
  }
  correct: dict[str, list[bool]] = {}
  for example, g, p in zip(examples, gold, predicted, strict=True):
    correct.setdefault(example.category, []).append(g == p)
  if set(correct) != {""}:
    lines = ["category\texamples\taccuracy"]
    lines += [
      f"{n}\t{len(c)}\t{np.mean(c):.4f}" for n, c in sorted(correct.items())
    ]
    texts["categories.tsv"] = "\n".join([*lines, ""])
  return texts


def make_task(options: Options) -> FinetuneTask:
  return FinetuneTask(
    name="multiple_choice",
    options=options,
    read_examples=functools.partial(
      choices.read_examples,
      first_label=options.first_label,
      header=options.header,
    ),
    parse_line=choices.parse_line,
    describe_labels=describe_labels,
    make_application=functools.partial(make_application, options=options),
    format_prediction=format_prediction,
    format_tables=format_tables,
    export_predictions=choices.write_answers,
    split_key=lambda example: example.context,
    demo_lines=tuple("\t".join(_EXAMPLE[:stop]) for stop in range(3, 7)),
  )
