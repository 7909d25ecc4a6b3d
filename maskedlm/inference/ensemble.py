"""Opens several fine-tuned checkpoints as one model: an ensemble.

modeling/task_heads/ensemble.py defines the mean of the members' scores for each
task; the thresholds of decoding are the means of the members'. All parameters
are on the device together, and the members read each batch together: memory and
time are those of one checkpoint times their number.
"""

import dataclasses
import inspect
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import predict
from maskedlm.finetune.contract import Prediction
from maskedlm.finetune.predict import FineTunedModel
from maskedlm.inference import labelling
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.task_heads.ensemble import over_members
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import load
from maskedlm.training.checkpoints.load import LoadedCheckpoint

# The options of the architecture that change a prediction.
_ENCODER = (*options.frozen("", EncoderConfig), "dtype")


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
  opened = open_model(tuple(paths), length=length)
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


def split_paths(text: str) -> list[str]:
  """Returns the checkpoints of --checkpoint, with commas between them.

  If a folder has exactly this name, it is the only one.

  Raises:
    ConfigError: a name is empty.
  """
  if "," not in text or buckets.origin(text).exists():
    return [text]
  paths = [path.strip() for path in text.split(",")]
  if not all(paths):
    raise ConfigError(
      f"--checkpoint={text}: a name is empty; expected checkpoints with single "
      "commas between them."
    )
  return paths


def open_model(
  paths: Sequence[str | pathlib.Path],
  overrides: Sequence[str] = (),
  *,
  length: int = 0,
) -> FineTunedModel:
  """Opens one or more fine-tuned workdirs (their best checkpoints).

  Args:
    paths: workdirs or checkpoints; one that is named twice counts twice.
    overrides, length: as for predict.open_model.

  Raises:
    CheckpointError, ConfigError: as predict.open_model; two members differ in
      more than their parameters; the task defines no mean.
  """
  if len(paths) == 1:
    return predict.open_model(paths[0], overrides, length=length)
  starts = [load.open_best(path) for path in paths]
  _check_alike(paths, [_model_facts(start, length) for start in starts])
  pairs = zip(starts, paths, strict=True)
  _check_alike(paths, [_task_facts(*pair, overrides) for pair in pairs])
  params = jax.tree.map(lambda *x: np.stack(x), *(s.params for s in starts))
  heldout = [start.meta.get("heldout", {}) for start in starts]
  means = {n: float(np.mean([x[n] for x in heldout])) for n in heldout[0]}
  first = starts[0]
  model = predict.make_model(
    first._replace(params=params, meta={**first.meta, "heldout": means}),
    paths[0],
    overrides,
    length=length,
  )
  if "every" not in inspect.signature(model.app.outputs).parameters:
    raise ConfigError(
      f"--checkpoint: the task {model.task.name} defines no mean of several "
      "checkpoints; give one."
    )
  outputs = over_members(model.app.outputs)
  return model._replace(app=model.app._replace(outputs=outputs))


def _check_alike(paths, facts: Sequence[Mapping[str, Any]]) -> None:
  """Raises ConfigError for the first fact that differs among the members."""
  for path, other in zip(paths, facts, strict=True):
    for name in [*facts[0], *other]:
      a, b = (values.get(name, "missing") for values in (facts[0], other))
      if a != b:
        raise ConfigError(
          f"--checkpoint: {paths[0]} and {path} differ in {name}: {a!s:.80} "
          f"and {b!s:.80}; expected the same in all."
        )


def _model_facts(start: LoadedCheckpoint, length: int) -> dict[str, Any]:
  """Returns the task, its labels and the encoder's architecture, by name."""
  meta = start.meta["task"]
  return {
    "task": meta.get("kind", "none, as one is not fine-tuned"),
    "tokenizer": start.tokenizer.sha256,
    **{f"encoder.{n}": getattr(start.cfg, n) for n in _ENCODER},
    **{f"labels.{n}": x for n, x in meta.get("about", {}).items()},
    "length": length or meta.get("length"),
  }


def _task_facts(
  start: LoadedCheckpoint, path: str | pathlib.Path, overrides: Sequence[str]
) -> dict[str, Any]:
  """Returns the options of the task, and what follows from them, by name."""
  values = dataclasses.asdict(predict.task_of(start, path, overrides).options)
  return {
    **{f"task.{name}": value for name, value in values.items()},
    "parameters": sorted(start.params),
    "held-out figures": sorted(start.meta.get("heldout", {})),
  }
