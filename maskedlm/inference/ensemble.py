"""Several fine-tuned checkpoints as one: `maskedlm.load_ensemble`."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from maskedlm.core.errors import ConfigError
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.predict import FineTunedModel
from maskedlm.inference import labelling, members


def load_ensemble(
  paths: Sequence[str | pathlib.Path], *, length: int = 0
) -> "Ensemble":
  """Opens fine-tuned checkpoints whose probabilities are averaged.

  Args:
    paths: workdirs of fine-tuning (their best checkpoints) or checkpoints, of
      the same task, labels, architecture and tokenizer.
    length: as for maskedlm.load.

  Raises:
    CheckpointError: there is no checkpoint, or it is damaged.
    ConfigError: two members differ in more than their parameters, one is not
      fine-tuned, or `paths` is not a list.

  >>> both = maskedlm.load_ensemble(["runs/mood", "runs/mood"])
  >>> [one], [same] = both.predict(["the sea"]), mood.predict(["the sea"])
  >>> one["label"] == same["label"]
  True
  """
  if isinstance(paths, str | pathlib.Path) or not paths:
    raise ConfigError(f"paths is {paths!r:.40}: expected a list of workdirs.")
  opened = members.open_model(tuple(paths), length=length)
  return Ensemble(tuple(map(str, paths)), opened)


@dataclasses.dataclass(frozen=True, eq=False)
class Ensemble:
  """The members, as returned by `load_ensemble`; immutable."""

  paths: tuple[str, ...]
  opened: FineTunedModel = dataclasses.field(repr=False)

  def predict(
    self, examples: Sequence[str | Mapping[str, Any]], *, batch_size: int = 32
  ) -> list[Prediction]:
    """Returns the predictions; arguments and errors as of Model.predict."""
    return labelling.label(
      self.opened,
      examples,
      batch_size=batch_size,
      length_option="maskedlm.load_ensemble(..., length={})",
    )
