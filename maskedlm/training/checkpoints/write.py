"""Writes a workdir without training: an import, a new vocabulary."""

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.task import Params
from maskedlm.runtime import output_files
from maskedlm.training.checkpoints import manager


class _State(NamedTuple):
  """The state that checkpoints/manager.py saves."""

  params: Params
  step: np.ndarray


def write_workdir(
  folder: pathlib.Path,
  params: Params,
  task: Mapping[str, Any],
  *,
  origin: Mapping[str, Any],
  corpus: str,
  tokenizer: str,
  log: Callable[[str], None],
  heldout: Mapping[str, float] | None = None,
) -> None:
  """Writes checkpoints/0 and config.json; the caller writes tokenizer/.

  Args:
    folder: the workdir, without checkpoints.
    params: numpy arrays.
    task: becomes meta["task"], which load.py reads; it has "encoder".
    origin: describes where the parameters come from; becomes config.json. Its
      "run" is the config of the run that trained them, if there is one.
    corpus: a word for the origin, stored in place of a fingerprint.
    tokenizer: SHA-256 of the tokenizer in tokenizer/.
    heldout: becomes meta["heldout"], a task's thresholds, if there are any.
  """
  output_files.write_json(folder / "config.json", origin)
  identity = {"config": origin, "corpus": corpus, "tokenizer": tokenizer}
  checkpoints = manager.open_checkpoints(
    folder, keep_last=1, keep_best=0, log=log
  )
  state = _State(params, np.zeros((), np.int32))
  meta = {"task": task, "identity": identity}
  if heldout:
    meta["heldout"] = dict(heldout)
  with contextlib.closing(checkpoints):
    checkpoints.save(0, state, meta, metric=None)
