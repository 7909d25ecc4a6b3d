"""Classification and regression: a text, or a pair of them -> a label, a score.

y = softmax(W z_CLS) (eq. 11.13), through BERT's pooler or not; pairs as in
pretraining, [CLS] A [SEP] B [SEP] (section 11.4.2; Devlin et al. 2019,
arXiv:1810.04805, section 4.1). A score is W z_CLS with a single output, by
squared error. Files: GLUE's (glue.py) and any with named columns (tables.py).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from maskedlm.core.errors import ConfigError, DataError, did_you_mean
from maskedlm.core.task import Batch, Key, Params
from maskedlm.finetune.classification import files, glue
from maskedlm.finetune.classification.files import Example
from maskedlm.finetune.common import label_metrics, single_label, unseen_labels
from maskedlm.finetune.common.confusion import confusion_table
from maskedlm.finetune.common.text_pairs import pair_row
from maskedlm.finetune.contract import Application, Outputs, Prediction, Rows
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import Pooler, head_stddevs, row_vector
from maskedlm.modeling.layers import Dense, Dropout

EXAMPLES = (
  "A moving film, though it is a little too long.",
  "A man is playing a guitar.\tSomeone is making music.",
)


READING = ("text", "text_b", "label", "header", "language")


class Options(NamedTuple):
  """What the labelled files are like, and how they are learnt."""

  # Or texts: columns, and with a text_b, if there is one, a pair; or a task of
  # GLUE: cola, sst2, mrpc ... (glue.py).
  layout: str = "columns"
  text: str = ""  # Column of the text; "" = the layout's, else "text".
  text_b: str = ""  # Of the second text; "" = the layout's, else there is none.
  label: str = ""  # Of the label; "" = the layout's, else "label".
  header: tuple = ()  # The columns' names, for files without that line.
  language: str = ""  # Rows whose column "language" says another are left out.
  regression: bool = False  # The label is a number, to be predicted as such.
  pooler: bool = True  # z_CLS through the pretrained dense and tanh, as BERT's.
  positive: str = ""  # The label that f1 is of; "" = the second of two.
  metric: str = ""  # Chooses the best checkpoint; "" = the layout's.


# --- Files ---

_COLUMNS = glue.FileLayout(text=("text",), unlabelled=("",))
OWN_LAYOUTS = {
  "columns": _COLUMNS,
  "texts": _COLUMNS._replace(text_b=("text_b",), alone=True),
}


def layout_of(options: Options) -> glue.FileLayout:
  """The columns and the metric that the options ask for.

  Raises:
    ConfigError: an unknown layout, or one that doesn't go with regression.
  """
  if options.layout in OWN_LAYOUTS:
    best = "pearson_spearman" if options.regression else "accuracy"
    layout = OWN_LAYOUTS[options.layout]._replace(best=best)
  else:
    layout = glue.get_layout(options.layout)
    if options.regression and not layout.regression:
      raise ConfigError(
        f"task.regression=True: the labels of {options.layout} are classes; "
        "set task.layout=columns and name the columns to take them as numbers."
      )

  def chosen(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return (name,) if name else names

  return layout._replace(
    text=chosen(options.text, layout.text),
    text_b=chosen(options.text_b, layout.text_b),
    label=chosen(options.label, layout.label),
    header=tuple(options.header) or layout.header,
    language=options.language,
    regression=options.regression or layout.regression,
    best=options.metric or layout.best,
  )


def read(source: str, options: Options) -> list[Example]:
  """The examples of a file or of "tfds:NAME/CONFIG:SPLIT" (labelled.py)."""
  return files.read_examples(source, layout_of(options))


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: text, pair or JSON object (labelled.py)."""
  return files.parse_line(line, layout_of(options))


def group(example: Example) -> str:
  """Examples of the same text stay on one side of a split: no leaks."""
  return example.text


# --- What the training set fixes ---


def describe(examples: Sequence[Example], options: Options) -> dict[str, Any]:
  """The labels in sorted order; for regression the scores' range and spread.

  Raises:
    DataError: an example without a label, or all have the same.
  """
  values = sorted({files.require_label(example) for example in examples})
  if len(values) < 2:
    raise DataError(
      f"{examples[0].where.rpartition(':')[0]}: all {len(examples):,} examples "
      f"for training have the label {values[0]!r}; expected at least two."
    )
  if layout_of(options).regression:
    scores = np.float64([example.label for example in examples])
    return {
      "low": values[0],
      "high": values[-1],
      "mean": float(scores.mean()),
      "stddev": float(scores.std()),
    }
  return {"labels": values}


# --- The model ---


class ClassHead(nn.Module):
  """Dropout and W: logits of the labels, or one score."""

  cfg: EncoderConfig
  outputs: int

  @nn.compact
  def __call__(self, x, *, train: bool):
    """x [B, D] -> float32 [B, outputs]."""
    cfg = self.cfg
    x = Dropout(cfg.dropout)(x, train=train)
    _, stddev = head_stddevs(cfg)
    dense = Dense(
      (cfg.width,), (self.outputs,), stddev, cfg.dtype, name="dense"
    )
    return dense(x).astype(jnp.float32)


class Net(NamedTuple):
  """The forward pass that labels and scores share, and multiple_choice.py."""

  init: Callable[[Key], Params]
  # (params, batch, key, train) -> float32 [B, outputs].
  apply: Callable[[Params, Batch, Key, bool], jax.Array]


def make_net(
  cfg: EncoderConfig, outputs: int, *, pooler: bool, name: str = "class_head"
) -> Net:
  """A head of this name on the vector that stands for a row."""
  head = ClassHead(cfg, outputs)

  def init(key: Key) -> Params:
    head_key, pooler_key = jax.random.split(key)
    x = jnp.zeros((1, cfg.width))
    params = {name: head.init(head_key, x, train=False)["params"]}
    if pooler:
      params["pooler"] = Pooler(cfg).init(pooler_key, x[:, None])["params"]
    return params

  def apply(params: Params, batch: Batch, key: Key, train: bool):
    hidden = masked_lm.encode(cfg, params, batch, key, train)
    x = row_vector(cfg, hidden, batch["segment_ids"])
    if pooler:
      x = Pooler(cfg).apply({"params": params["pooler"]}, x[:, None])
    rngs = masked_lm.head_rngs(key, train)
    return head.apply({"params": params[name]}, x, train=train, rngs=rngs)

  return Net(init, apply)


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
    ConfigError: a metric or a positive label that there is not.
  """
  build = _regression if layout_of(options).regression else _classification
  return build(tokenizer, cfg, about, options, length)


def _classification(tokenizer, cfg, about, options, length) -> Application:
  labels = tuple(about["labels"])
  positive = _positive(labels, options)
  known = label_metrics.LABEL_METRICS
  best = _best(
    options, known + label_metrics.POSITIVE_LABEL_METRICS * bool(positive)
  )
  net = make_net(cfg, len(labels), pooler=options.pooler)

  def rows(examples: Sequence[Example]) -> Rows:
    gold = [(example.label, example.where) for example in examples]
    ids, notes = unseen_labels.label_ids(gold, labels)
    made = make_rows(tokenizer, cfg, examples, length, labels=ids)
    return made._replace(notes=notes)

  def predict(example: Example, shares: list[float]) -> Prediction:
    return {
      "label": labels[np.argmax(shares)],
      "probability": max(shares),
      "probabilities": dict(zip(labels, shares, strict=True)),
    }

  def score(examples, predictions):
    gold = _gold(examples)
    return label_metrics.evaluate_labels(
      gold, [p["label"] for p in predictions], positive=positive
    )

  return Application(
    rows=rows,
    init=net.init,
    loss=single_label.loss(net.apply, term="class"),
    outputs=single_label.outputs(net.apply),
    decode=single_label.decode(predict),
    score=score,
    best=best,
    gold=_gold,
  )


def _regression(tokenizer, cfg, about, options, length) -> Application:
  low, high, mean, stddev = (
    about[name] for name in ("low", "high", "mean", "stddev")
  )
  best = _best(options, label_metrics.SCORE_METRICS)
  net = make_net(cfg, 1, pooler=options.pooler)

  def rows(examples: Sequence[Example]) -> Rows:
    scores = [0.0 if e.label is None else e.label for e in examples]
    return make_rows(
      tokenizer, cfg, examples, length, scores=np.float32(scores)
    )

  # The head predicts how many standard deviations a score is from the mean:
  # at a fine-tuning rate it would take an epoch only to reach the mean.
  def loss(params, batch, key, train):
    found = net.apply(params, batch, key, train)[:, 0]
    weights = batch["example_weights"]
    error = found - (batch["scores"] - mean) / stddev
    total = error**2 * weights
    return {"score": (total, weights)}, {"mse": (total * stddev**2, weights)}

  def decode(examples, rows, outputs: Outputs, tuned) -> list[Prediction]:
    return [
      {"score": mean + stddev * float(x), "range": [low, high]}
      for x in outputs["deviations"]
    ]

  def score(examples, predictions):
    gold = _gold(examples)
    return label_metrics.evaluate_scores(
      gold, [p["score"] for p in predictions]
    )

  return Application(
    rows=rows,
    init=net.init,
    loss=loss,
    outputs=lambda params, batch: {
      "deviations": net.apply(params, batch, None, False)[:, 0]
    },
    decode=decode,
    score=score,
    best=best,
    gold=_gold,
  )


def _gold(examples: Sequence[Example]) -> list[str | float]:
  """DataError where there is none."""
  return [files.require_label(example) for example in examples]


def make_rows(tokenizer, cfg, examples, length, **values) -> Rows:
  """A row for each example, with the values of each."""
  ids = tokenizer.encode_batch([example.text for example in examples])
  is_pair = [example.text_b is not None for example in examples]
  ids_b = tokenizer.encode_batch([example.text_b or "" for example in examples])
  made = [
    pair_row(
      tokenizer,
      a,
      b if pair else None,
      length,
      separators=cfg.pair_separators,
      num_types=cfg.num_types,
    )
    for a, b, pair in zip(ids, ids_b, is_pair, strict=True)
  ]
  return Rows(
    tokens={
      "input_ids": [row[0] for row in made],
      "token_type_ids": [row[1] for row in made],
    },
    values=values,
    example=np.arange(len(made)),
    truncated=sum(row[2] for row in made),
  )


def _positive(labels: Sequence[str], options: Options) -> str:
  if options.positive and options.positive not in labels:
    raise ConfigError(
      f"task.positive={options.positive!r} is not a label"
      f"{did_you_mean(options.positive, labels)}; there are "
      f"{', '.join(labels)}."
    )
  return options.positive or (labels[1] if len(labels) == 2 else "")


def _best(options: Options, known: Sequence[str]) -> str:
  best = layout_of(options).best
  if best not in known:
    raise ConfigError(
      f"task.metric={best!r} is not to be had here{did_you_mean(best, known)}; "
      f"known: {', '.join(known)} (f1 needs two labels, or task.positive)."
    )
  return best


# --- What is said of the predictions ---


def show(prediction: Prediction) -> str:
  """The label and its probability, or the score within its range."""
  if "score" in prediction:
    low, high = prediction["range"]
    return f"{min(max(prediction['score'], low), high):.3f}"
  return f"{prediction['label']}\t{prediction['probability']:.3f}"


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """confusion.tsv and labels.txt, or scores.tsv."""
  gold = _gold(examples)
  if "score" in predictions[0]:
    found = [prediction["score"] for prediction in predictions]
    return {"scores.tsv": label_metrics.format_errors_by_range(gold, found)}
  found = [prediction["label"] for prediction in predictions]
  return {
    "confusion.tsv": confusion_table(gold, found),
    "labels.txt": label_metrics.format_label_report(gold, found),
  }


def export(
  predictions: Sequence[Prediction], options: Options
) -> dict[str, str]:
  """{file name: text}: GLUE's submission, or predictions.tsv alike."""
  task = "" if options.layout in OWN_LAYOUTS else options.layout
  return dict([glue.format_submission(task, predictions)])
