"""The options of question answering."""

import dataclasses

from maskedlm.finetune.contract import task_option


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
  )
  max_query: int = task_option(
    64, "Tokens of a question; the rest is cut off.", low=1
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
  n_best: int = task_option(
    20, "Answers in a prediction, with their probabilities.", low=1, high=10_000
  )
