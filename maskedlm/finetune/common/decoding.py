"""Decoding of examples from all that is known of their rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maskedlm.finetune.contract import Example, Outputs, Prediction, Rows

# Name -> an array: a row's Rows.tokens, Rows.values and outputs.
Row = Mapping[str, np.ndarray]


def by_example(
  predict: Callable[[Example, Sequence[Row]], Prediction],
) -> Callable[..., list[Prediction]]:
  """Returns the Application.decode that predicts each example on its own.

  Args:
    predict: (example, its rows, one or more) -> its prediction.
  """

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[Prediction]:
    arrays: Mapping[str, Any] = {**rows.tokens, **rows.values, **outputs}
    each = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      predict(
        example, [{name: x[i] for name, x in arrays.items()} for i in own]
      )
      for example, own in each
    ]

  return decode
