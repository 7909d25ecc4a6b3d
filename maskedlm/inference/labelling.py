"""Labels examples that Python gives: strings and dicts."""

from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.finetune import predict
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.predict import FineTunedModel
from maskedlm.inference import arguments


def label(
  model: FineTunedModel,
  examples: Sequence[str | Mapping[str, Any]],
  *,
  batch_size: int,
  length_option: str,
) -> list[Prediction]:
  """Returns the predictions of a fine-tuned model; logs how many were cut.

  Arguments are those of Model.predict; log lines name the length_option that
  sets the length, "...length={}".

  Raises:
    ConfigError: an argument has the wrong type or is out of range.
    DataError: an example lacks a field that the task needs.
  """
  examples = arguments.list_of("examples", examples, (str, Mapping))
  parsed = [
    model.task.parse_line(arguments.to_line(example)) for example in examples
  ]
  cut: list[int] = []
  predictions = predict.predict(model, parsed, batch_size=batch_size, cut=cut)
  predict.log_cut(model, cut, option=length_option)
  return predictions
