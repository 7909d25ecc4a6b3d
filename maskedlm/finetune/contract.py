"""The contract between fine-tuning and one task: FinetuneTask, Application.

A task NAME is the module maskedlm/finetune/NAME/NAME.py, which ends with

  TASK = FinetuneTask(name=NAME, options=Options, ...)

Nothing else in the project knows a task by name. A checkpoint carries all that
is needed to build the Application again, for `evaluate` and `predict`: the
task's name, its options, what describe_labels returned, the architecture and
the tokenizer.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.options import option
from maskedlm.core.task import Array, Batch, Key, Metrics, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling.architecture import EncoderConfig

# An option of a task. A resumed run must keep them all: they decide what the
# labels and the rows are.
task_option = functools.partial(option, frozen=True)

# A task's own NamedTuple. Its labels may be None. Its field `where`, if it has
# one, is its file and line, for errors; its `id`, if it has one, is unique.
Example = Any
Options = Any  # An instance of FinetuneTask.options.
Prediction = dict[str, Any]  # JSON-able.
# name -> one array for each row, in the order of Rows, float32 or int32. A
# token axis is as long as the batch was: it ends in padding.
Outputs = Mapping[str, Sequence[np.ndarray]]


class Rows(NamedTuple):
  """n tokenised rows of different lengths: the input of the encoder.

  An example is one row, or several if it is long (windows).
  """

  # name -> n int32 arrays [..., l]: the last axis is the row's tokens and is
  # padded with 0, input_ids with [PAD]. "input_ids" and "token_type_ids" must
  # be there; specials are included. segment_ids are made from the lengths.
  tokens: Mapping[str, Sequence[np.ndarray]]
  values: Mapping[str, np.ndarray]  # name -> [n, ...]: one for each row.
  example: np.ndarray  # [n]: index of the row's example; never decreases.
  truncated: int = 0  # Examples that lost tokens; logged.
  notes: Sequence[str] = ()  # Lines to log, about unseen labels for example.

  @property
  def lengths(self) -> np.ndarray:
    """The number of tokens of each row, [n]."""
    return np.array([x.shape[-1] for x in self.tokens["input_ids"]], np.int64)


class Setup(NamedTuple):
  """Everything but its options that a task builds its Application from."""

  tokenizer: Tokenizer
  cfg: EncoderConfig
  label_info: Mapping[str, Any]  # See FinetuneTask.describe_labels.
  length: int  # Tokens of the longest row.


class Application(NamedTuple):
  """A task with given labels, tokenizer and architecture.

  Params are {"encoder": ..., and a subtree for each head}; a batch has the
  arrays of Rows, padded, and segment_ids [B, L], example_weights [B] (0 for
  the filler rows of a last batch: they must count in no term and metric).
  """

  # Examples -> rows. Labels that are None become zeros, labels that are not in
  # the training set unseen_labels.UNSEEN.
  make_rows: Callable[[Sequence[Example]], Rows]
  # key -> the heads' fresh parameters. A subtree "pooler" is taken from the
  # checkpoint if that has one.
  init: Callable[[Key], Params]
  # As Task.loss.
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]]
  # What decoding needs of each row, [B, ...]: small, for it goes to the host.
  outputs: Callable[[Params, Batch], Mapping[str, Array]]
  # (examples, rows, outputs, tuned) -> a prediction for each example; `tuned`
  # contains the result of `calibrate`.
  decode: Callable[
    [Sequence[Example], Rows, Outputs, Mapping[str, float]], list[Prediction]
  ]
  # (examples, predictions) -> {metric: value}; shares are fractions of 1.
  score: Callable[[Sequence[Example], Sequence[Prediction]], dict[str, float]]
  # The metric by which the best checkpoint is chosen; higher is better.
  best: str
  # (labelled examples, rows, outputs) -> decoding's thresholds, calibrated on
  # the development set and kept in the checkpoint; {} for most tasks.
  calibrate: Callable[[Sequence[Example], Rows, Outputs], dict[str, float]] = (
    lambda examples, rows, outputs: {}
  )
  # Raises DataError if an example has no label. Called before training, so that
  # an unlabelled development set is noticed at once.
  require_labels: Callable[[Sequence[Example]], Any] = lambda examples: None


class FinetuneTask(NamedTuple):
  """Everything that fine-tuning, `evaluate`, `predict` and the demo need."""

  name: str
  # A frozen dataclass whose fields are `task_option`s: config.task.
  options: type
  # (path, options) -> the examples of one labelled file.
  read_examples: Callable[[str, Options], list[Example]]
  # (line, options) -> the example in a line of input of `predict`.
  parse_line: Callable[[str, Options], Example]
  # (examples, options) -> label_info: what the training set decides, as JSON.
  describe_labels: Callable[[Sequence[Example], Options], dict[str, Any]]
  # label_info may be {} for an imported model.
  make_application: Callable[[Setup, Options], Application]
  # prediction -> a line or a few for people.
  format_prediction: Callable[[Prediction], str]
  # (examples, predictions) -> {file name: text}: tables written into a workdir.
  format_tables: Callable[
    [Sequence[Example], Sequence[Prediction]], dict[str, str]
  ]
  # Raises ConfigError for options that don't go together.
  check_options: Callable[[Options], None] = lambda options: None
  # (predictions, options) -> {file name: text}: the task's official files.
  export_predictions: (
    Callable[[Sequence[Prediction], Options], dict[str, str]] | None
  ) = None
  # example -> a key; a development set split off the training set shares no
  # key with it.
  split_key: Callable[[Example], str] | None = None
  # options -> how `embed` makes the vectors that the task trains: fields of
  # inference.vectors.SentencePooling.
  sentence_pooling: Callable[[Options], dict[str, Any]] | None = None
  # Names of the options that can be set anew beside a checkpoint, as parameters
  # don't depend on them: how a file is read, how outputs are decoded.
  overridable: tuple[str, ...] = ()
  # Lines for parse_line; the demo starts with the first that its model takes.
  demo_lines: tuple[str, ...] = ()
