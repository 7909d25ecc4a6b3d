"""Application: the contract between fine-tuning and one kind of task.

A kind is a module of this package (classification, tagging, ...), found by its
name. It has

  class Options(NamedTuple)       its options, each with default and comment:
                                  they stand in config.task beside the kind
  read(source, options)           a labelled file -> [Example]; of several
                                  files reading.read makes one list
  parse(line, options)            a line of predict's input -> Example
  describe(examples, options)     what the training set fixes, as JSON: labels
  make(tokenizer, cfg, about, options, *, length) -> Application
  show(prediction) -> str         a prediction as a person reads it
  report(examples, predictions)   {file name: text} of tables worth keeping

It may have `export(predictions, options)`, the official files of a task;
`group(example)`, whose examples stay on one side of a split; and EXAMPLES,
lines for `parse`, the first of which that fits the options `demo` begins with;
and READING, the names of the options that say how a file is read or what is
said of the outputs (reading.py): make with others of those is of the same
parameters; and, where texts' vectors are trained, `sentences(options)`, how
`embed` makes them.
An Example's field `where`, if it has one, names its file and line in errors;
its `id`, if it has one, is no other's.

Nothing else in the project knows a kind by name. What a checkpoint carries
(the kind, Options, what describe returned, the architecture, the tokenizer)
is enough to make the Application again: for `evaluate` and `predict`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.task import Array, Batch, Key, Metrics, Params

Example = Any  # A kind's own NamedTuple; its labels may be None.
Prediction = dict[str, Any]  # JSON-able: what is said of one example.
# name -> one array for each row, in the order of Rows, float32 or int32. A
# token axis is as long as the batch was: it ends in padding.
Outputs = Mapping[str, Sequence[np.ndarray]]


class Rows(NamedTuple):
  """n tokenised rows of different lengths: what the encoder reads.

  An example is one row, or several where it is long (windows).
  """

  # name -> n int32 arrays [..., l]: the last axis is the row's tokens and is
  # padded with 0, input_ids with [PAD]. "input_ids" and "token_type_ids" must
  # be there; specials are included. segment_ids are made from the lengths.
  tokens: Mapping[str, Sequence[np.ndarray]]
  values: Mapping[str, np.ndarray]  # name -> [n, ...]: one for each row.
  example: np.ndarray  # [n]: index of the row's example; never decreases.
  truncated: int = 0  # Examples that lost tokens; reported.
  notes: Sequence[str] = ()  # Of odd labels, for who has any: log lines.

  @property
  def lengths(self) -> np.ndarray:
    """[n]: tokens of each row."""
    return np.array([x.shape[-1] for x in self.tokens["input_ids"]], np.int64)


class Application(NamedTuple):
  """A kind of task on given labels, tokenizer and architecture.

  Params are {"encoder": ..., and a subtree for each head}; a batch has the
  arrays of Rows, padded, and segment_ids [B, L], example_weights [B] (0 for
  the filler rows of a last batch: they must count in no term and metric).
  """

  # Examples -> rows; labels that are None become zeros, those that training
  # did not have unknown.UNKNOWN.
  rows: Callable[[Sequence[Example]], Rows]
  # key -> the heads' fresh parameters. A subtree "pooler" is taken from the
  # checkpoint where that has one.
  init: Callable[[Key], Params]
  # As Task.loss.
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]]
  # What decoding needs of each row, [B, ...]: small, for it goes to the host.
  outputs: Callable[[Params, Batch], Mapping[str, Array]]
  # (examples, rows, outputs, tuned) -> a prediction for each example.
  decode: Callable[
    [Sequence[Example], Rows, Outputs, Mapping[str, float]], list[Prediction]
  ]
  # (examples, predictions) -> {metric: value}; shares are fractions of 1.
  score: Callable[[Sequence[Example], Sequence[Prediction]], dict[str, float]]
  # The metric by which the best checkpoint is chosen; higher is better.
  best: str
  # (labelled examples, rows, outputs) -> decoding's thresholds, calibrated on
  # the development set and kept in the checkpoint; {} for most kinds.
  tune: Callable[[Sequence[Example], Rows, Outputs], dict[str, float]] = (
    lambda examples, rows, outputs: {}
  )
  # examples -> their labels; DataError for one that has none. So that an
  # unlabelled development set is noticed before it is trained for.
  gold: Callable[[Sequence[Example]], Any] = lambda examples: None
