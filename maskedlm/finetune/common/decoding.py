"""Decodes examples one by one from their rows' tokens, values and outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from maskedlm.finetune.contract import Example, Outputs, Rows

# Name -> an array: a row's Rows.tokens, Rows.values and outputs.
Row = Mapping[str, np.ndarray]
# A Prediction, or what predictions are made from.
T = TypeVar("T")


def by_example(
  predict: Callable[[Example, Sequence[Row]], T],
) -> Callable[..., list[T]]:
  """Returns the Application.decode that predicts each example on its own.

  Args:
    predict: (example, its rows, one or more) -> its prediction.
  """

  def decode(
    examples: Sequence[Example],
    rows: Rows,
    outputs: Outputs,
    tuned: Mapping[str, float],
  ) -> list[T]:
    arrays: Mapping[str, Any] = {**rows.tokens, **rows.values, **outputs}
    pairs = zip(examples, rows.of_each(len(examples)), strict=True)
    return [
      predict(
        example, [{name: x[i] for name, x in arrays.items()} for i in row_ids]
      )
      for example, row_ids in pairs
    ]

  return decode
