"""The contract between fine-tuning and one task: FinetuneTask, Application.

A task NAME is the module maskedlm/finetune/NAME/NAME.py, which defines

  @dataclasses.dataclass(frozen=True)
  class Options: ...

  def make_task(options: Options) -> FinetuneTask: ...

Only interop/labels.py, which maps tasks to transformers' classes, knows tasks
by name. A checkpoint has all that `evaluate` and `predict` need to build the
Application again: the task's name, its options, the result of describe_labels,
the architecture and the tokenizer.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.options import frozen_option
from maskedlm.core.task import Array, Batch, Key, Metrics, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.modeling.architecture import EncoderConfig


def task_option(
  default: Any,
  doc: str,
  *,
  overridable: bool = False,
  of_head: bool = False,
  **bounds: Any,
) -> Any:
  """Returns an option of a task, which a resumed run must keep.

  Args:
    default, doc, **bounds: as for core.options.option.
    overridable: it may differ from the checkpoint's, because the parameters
      don't depend on it: how a file is read, or outputs are decoded.
    of_head: it decides what the heads' parameters mean, although it may leave
      their shapes alone: heads are only taken over from a model with the same
      value (take_heads.py).
  """
  field = frozen_option(default, doc, **bounds)
  return dataclasses.field(
    default=default,
    metadata={**field.metadata, "overridable": overridable, "of_head": of_head},
  )


def options_that(cls: type, trait: str) -> list[str]:
  """Returns the names of a task's options that are overridable, or of_head."""
  return [f.name for f in dataclasses.fields(cls) if f.metadata.get(trait)]


# A NamedTuple that the task defines. Its label may be None. Its optional field
# `where` is its file and line, for errors; its optional `id` is unique.
Example = Any
Options = Any  # An instance of the Options of its module.
Prediction = dict[str, Any]  # JSON-able.
# name -> one array for each row, in the order of Rows, float32 or int32. A
# token axis has the length of the row's batch, so it may end in padding.
Outputs = Mapping[str, Sequence[np.ndarray]]


class Rows(NamedTuple):
  """n tokenised rows of different lengths: the input of the encoder.

  An example is one row, or several windows if it is long.
  """

  # name -> n int32 arrays [..., l]. Batching pads the last axis, the row's
  # tokens: input_ids with [PAD], others with 0. "input_ids" and
  # "token_type_ids" are required and include special tokens; batching makes
  # segment_ids from the lengths.
  tokens: Mapping[str, Sequence[np.ndarray]]
  values: Mapping[str, np.ndarray]  # name -> [n, ...]: one for each row.
  example: np.ndarray  # [n]: index of the row's example; never decreases.
  # For each example that lost tokens, the length that its longest row would
  # have had, special tokens included. Logged (common/cut_texts.py).
  cut: Sequence[int] = ()
  notes: Sequence[str] = ()  # Lines to log, about unseen labels for example.
  # For each row, the texts that no other row of its batch should have; () if
  # rows of equal texts may share a batch.
  texts: Sequence[frozenset[str]] = ()
  # Why no row holds what is to be learnt, and the remedy: training on the rows
  # is refused. "" if some do.
  lost: str = ""

  def of_each(self, count: int) -> list[range]:
    """Returns the rows of each of `count` examples."""
    bounds = np.searchsorted(self.example, np.arange(count + 1)).tolist()
    return [range(*pair) for pair in itertools.pairwise(bounds)]

  @property
  def lengths(self) -> np.ndarray:
    """The number of tokens of each row, int64 [n]."""
    return np.array([x.shape[-1] for x in self.tokens["input_ids"]], np.int64)

  def sequence_lengths(self, which: np.ndarray) -> np.ndarray:
    """Returns the lengths [b, C] of rows `which` [b]; C is usually 1.

    C is the number of sequences in a row (common/multi_sequence.py). A filler,
    -1, is a single [PAD].
    """
    if "sequence_lengths" in self.values:
      lengths = self.values["sequence_lengths"][which]
    else:
      ids = self.tokens["input_ids"]
      lengths = np.array([[ids[row].shape[-1]] for row in which])
    return np.where(which[:, None] < 0, 1, lengths)


class Setup(NamedTuple):
  """The inputs, apart from options, that a task builds an Application from."""

  tokenizer: Tokenizer
  cfg: EncoderConfig
  label_info: Mapping[str, Any]  # See FinetuneTask.describe_labels.
  length: int  # Tokens of the longest row.


class Application(NamedTuple):
  """A task with given labels, tokenizer and architecture.

  Params have the subtree "encoder" and one for each head. A batch has the
  arrays of Rows, padded, segment_ids [B, L] and example_weights [B], which are
  0 for the filler rows of a last batch: no loss or metric may count them.
  """

  # Examples -> rows. The id of a label is 0 if the label is None, and
  # labels.UNSEEN if the training set doesn't have it.
  make_rows: Callable[[Sequence[Example]], Rows]
  # key -> fresh parameters of the heads. A subtree "pooler" is replaced by the
  # checkpoint's, if it has one.
  init: Callable[[Key], Params]
  # As Task.loss.
  loss: Callable[[Params, Batch, Key, bool], tuple[Metrics, Metrics]]
  # (params, batch, every=ensemble.alone) -> the arrays [B, ...] that decoding
  # needs, from the mean of the scores of `every` member
  # (modeling/task_heads/ensemble.py). They should be small, as they are copied
  # to the host.
  outputs: Callable[..., Mapping[str, Array]]
  # (examples, rows, outputs, tuned) -> a prediction for each example; `tuned`
  # contains the result of `calibrate`.
  decode: Callable[
    [Sequence[Example], Rows, Outputs, Mapping[str, float]], list[Prediction]
  ]
  # (examples, predictions) -> {metric: value}; shares are from 0 to 1.
  score: Callable[[Sequence[Example], Sequence[Prediction]], dict[str, float]]
  # The metric by which the best checkpoint is chosen; higher is better.
  best: str
  # (labelled examples, rows, outputs) -> decoding's thresholds, calibrated on
  # the development set and kept in the checkpoint; {} for most tasks.
  calibrate: Callable[[Sequence[Example], Rows, Outputs], dict[str, float]] = (
    lambda examples, rows, outputs: {}
  )
  # Whether an example has a gold label. Those without one are left out of
  # training and scoring, and counted.
  has_label: Callable[[Example], bool] = lambda example: True
  # Raises DataError if an example has no label, or no label is known. Called
  # before training, so that an unusable development set is noticed at once.
  require_labels: Callable[[Sequence[Example]], Any] = lambda examples: None
  # The parameters of init_from, {} where nothing may be taken over -> the heads
  # that start from these instead of from those of `init`.
  initial_heads: Callable[[Params], Params] = lambda pretrained: {}
  # Share of training in which the batches' `ramp` [B] goes from 0 to 1; 0 for
  # batches without it.
  ramp: float = 0.0
  # As Task.vectors and Task.loss_of_vectors.
  vectors: Callable[[Params, Batch, Key, bool], Any] | None = None
  loss_of_vectors: Callable[[Any, Batch], tuple[Metrics, Metrics]] | None = None


class FinetuneTask(NamedTuple):
  """A task with its options: all that fine-tuning and the verbs need of it."""

  name: str
  options: Options
  # path -> the examples of one labelled file.
  read_examples: Callable[[str], list[Example]]
  # The example in a line of input of `predict`.
  parse_line: Callable[[str], Example]
  # Training examples -> label_info: the labels and whatever else the training
  # set determines, JSON-able. Examples without a label are passed over if
  # others have one. Whole numbers in it are counts or sizes; what heads mean
  # depends on the rest (take_heads.py).
  describe_labels: Callable[[Sequence[Example]], dict[str, Any]]
  # An imported model's label_info may be {}.
  make_application: Callable[[Setup], Application]
  # prediction -> one or more lines for people to read.
  format_prediction: Callable[[Prediction], str]
  # (examples, predictions) -> {file name: text}: tables written into a workdir.
  format_tables: Callable[
    [Sequence[Example], Sequence[Prediction]], dict[str, str]
  ] = lambda examples, predictions: {}
  # predictions -> {file name: text}: the task's official files.
  export_predictions: (
    Callable[[Sequence[Prediction]], dict[str, str]] | None
  ) = None
  # {variant: result.json} of a suite -> (what suite.json has in addition, lines
  # to print), such as the row of a paper's table.
  summarise_suite: Callable[
    [Mapping[str, Mapping]], tuple[dict[str, Any], list[str]]
  ] = lambda results: ({}, [])
  # example -> a key. If the development set is split off the training set, the
  # two have no key in common.
  split_key: Callable[[Example], str] | None = None
  # The fields of inference.vectors.vectors.SentencePooling with which `embed`
  # computes the vectors that the task trains; {} for those that train none.
  sentence_pooling: Mapping[str, Any] = {}
  # Lines for parse_line. The demo shows the first one that its model accepts.
  demo_lines: tuple[str, ...] = ()
