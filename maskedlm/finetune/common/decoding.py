"""Decodes examples one by one from their rows' tokens, values and outputs."""

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
    pairs = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      predict(
        example, [{name: x[i] for name, x in arrays.items()} for i in row_ids]
      )
      for example, row_ids in pairs
    ]

  return decode
