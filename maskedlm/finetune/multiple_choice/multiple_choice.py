"""Multiple choice: which of a few endings, explanations or answers is right.

Each choice is a row with the context, [CLS] context [SEP] choice [SEP]; its
score is w z_CLS, and a softmax over the choices of an example gives their
probabilities (Devlin et al. 2019, arXiv:1810.04805, section 4.4). B examples,
C choices, L tokens of a row. Files are choices.py's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.classification import classification
from maskedlm.finetune.common import multi_sequence, single_label
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.text_pairs import pair_row
from maskedlm.finetune.contract import Application, Prediction, Rows
from maskedlm.finetune.multiple_choice import files as choices
from maskedlm.finetune.multiple_choice.files import Example
from maskedlm.modeling.architecture import EncoderConfig

_EXAMPLE = (
  "She opened her umbrella because",
  *("it rained.", "it was dry.", "she slept.", "it was hers.", "he sang."),
)
# Of 2 to 5 choices: a model reads one number of them.
EXAMPLES = tuple("\t".join(_EXAMPLE[:stop]) for stop in range(3, 7))


class Options(NamedTuple):
  """config.task of this kind."""

  pooler: bool = True  # z_CLS through the pretrained dense and tanh, as BERT's.


def read(source: str, options: Options) -> list[Example]:
  """The examples of a file: see choices.read."""
  del options
  return choices.read_examples(source)


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: see choices.parse."""
  del options
  return choices.parse_line(line)


def group(example: Example) -> str:
  """Examples of the same context stay on one side of a split: no leaks."""
  return example.context


def describe(examples: Sequence[Example], options: Options) -> dict[str, int]:
  """{"choices": C}.

  Raises:
    DataError: an example without a label, or with another number of choices.
  """
  del options
  count = choices.check_num_choices(examples)
  _labels(examples)
  return {"choices": count}


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py. Of a model that was imported, `about` is empty."""
  net = classification.make_net(
    cfg, 1, pooler=options.pooler, name="choice_head"
  )

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    """Float32 [B, C]: the encoder sees B * C rows."""
    B, C, _ = batch["input_ids"].shape
    return net.apply(
      params, multi_sequence.flatten_sequences(batch), key, train
    ).reshape(B, C)

  def score(
    examples: Sequence[Example], predictions: Sequence[Prediction]
  ) -> dict[str, float]:
    pairs = zip(_labels(examples), predictions, strict=True)
    return {"accuracy": float(np.mean([g == p["label"] for g, p in pairs]))}

  return Application(
    rows=lambda examples: make_rows(
      examples, tokenizer, cfg, length=length, count=about.get("choices")
    ),
    init=net.init,
    loss=single_label.loss(logits, term="choice", metric="choice_accuracy"),
    outputs=single_label.outputs(logits),
    decode=single_label.decode(_prediction),
    score=score,
    best="accuracy",
    gold=_labels,
  )


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  *,
  length: int,
  count: int | None,
) -> Rows:
  """A row of C sequences for each example (sequences.py).

  `count` is C; None = whatever the first example has.

  Raises:
    DataError: an example that has another number of choices.
  """
  C = choices.check_num_choices(examples, count)
  contexts = tokenizer.encode_batch([e.context for e in examples])
  flat = tokenizer.encode_batch(
    [f"{e.question} {c}".strip() for e in examples for c in e.choices]
  )
  rows = [
    [
      pair_row(
        tokenizer,
        context,
        choice,
        length,
        separators=cfg.pair_separators,
        num_types=cfg.num_types,
      )
      for choice in flat[i * C : (i + 1) * C]
    ]
    for i, context in enumerate(contexts)
  ]
  tokens, lengths = multi_sequence.stack_sequences(
    [[made[:2] for made in row] for row in rows], tokenizer.special.pad
  )
  return Rows(
    tokens=tokens,
    values={
      "sequence_lengths": lengths,
      "labels": np.array([e.label or 0 for e in examples], np.int32),
    },
    example=np.arange(len(examples)),
    truncated=sum(any(made[2] for made in row) for row in rows),
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


def _labels(examples: Sequence[Example]) -> list[int]:
  """The labels of examples that must have them; DataError for one without."""
  for example in examples:
    if example.label is None:
      raise DataError(
        f"{example.where}: there is no label; expected the place of the right "
        'choice, from 0, in a column "label" (for ComVE, a file of answers '
        "beside the data)."
      )
  return [example.label for example in examples]


def show(prediction: Prediction) -> str:
  """The place of the choice, its probability, its text."""
  return "{label}\t{probability:.3f}\t{choice}".format(**prediction)


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """places.tsv: gold place by predicted place; categories.tsv if there are."""
  gold = _labels(examples)
  found = [prediction["label"] for prediction in predictions]
  files = {"places.tsv": confusion_table([*map(str, gold)], [*map(str, found)])}
  hits: dict[str, list[bool]] = {}
  for example, g, p in zip(examples, gold, found, strict=True):
    hits.setdefault(example.category, []).append(g == p)
  if set(hits) != {""}:
    lines = ["category\texamples\taccuracy"]
    lines += [
      f"{n}\t{len(h)}\t{np.mean(h):.4f}" for n, h in sorted(hits.items())
    ]
    files["categories.tsv"] = "\n".join([*lines, ""])
  return files


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """answers.csv, as ComVE's: id (or place from 0) and letter, without names."""
  del options
  lines = [
    f"{prediction.get('id', i)},{chr(ord('A') + prediction['label'])}\n"
    for i, prediction in enumerate(predictions)
  ]
  return {"answers.csv": "".join(lines)}
