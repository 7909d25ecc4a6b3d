"""A checkpoint of ours, opened to be exported: the part that is wanted.

What the checkpoint has beside that part is left out; what can't be left out
without changing what the model says is an error.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import (InteropError, did_you_mean)
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune import initial_params
from maskedlm.interop import (heads, labels)
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import (EncoderConfig, restored)
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import load

PARTS = ("", "encoder", "discriminator", "generator")
# Heads of pretraining that nobody else has, and that nothing else needs.
PRETRAINING_ONLY = ("sbo_head",)


class ExportSource(NamedTuple):
  """What is exported."""

  params: Params  # "encoder" and some of modules.HEADS; numpy.
  cfg: EncoderConfig
  task: Mapping[str, Any]  # meta["task"]; of a head that is left out, less.
  meta: Mapping[str, Any]
  tokenizer: Tokenizer
  tokenizer_dir: pathlib.Path
  path: pathlib.Path  # Of the checkpoint, as it was given.


def open_export_source(
  path: pathlib.Path, *, part: str, log: Callable[[str], None]
) -> ExportSource:
  """Opens a workdir (if fine-tuned, its best checkpoint) or a checkpoint.

  Args:
    path: the workdir, or a step's folder.
    part: one of PARTS; "" is everything, of ELECTRA the discriminator.
    log: gets a line for what is left out.

  Raises:
    CheckpointError, ConfigError: there is none that can be read.
    InteropError: it has no such part, or a head that only maskedlm has.
  """
  if part not in PARTS:
    raise InteropError(
      f"--part={part!r} is unknown{did_you_mean(part, PARTS)}; known: "
      f"{', '.join(PARTS[1:])}."
    )
  start = load.open_best(path)
  params, cfg, task = dict(start.params), start.cfg, dict(start.meta["task"])
  if part == "generator":
    if "generator" not in params:
      raise InteropError(
        f"--part=generator: {path} has none; it is no ELECTRA."
      )
    params = masked_lm.with_generator(params)
    cfg = restored(task["generator"])
  elif "generator" in params:
    for name in ("generator", "mlm_head"):
      del params[name]
    log("left out: the generator (--part=generator exports it)")
  elif part == "discriminator" and "discriminator_head" not in params:
    raise InteropError(
      f"--part=discriminator: {path} has none; it is no ELECTRA."
    )
  if part == "encoder":
    params = {n: x for n, x in params.items() if n in initial_params.SHARED}
    kept = ("objective", "sentences")
    task = {name: task[name] for name in kept if name in task}
  for name in PRETRAINING_ONLY:
    if params.pop(name, None) is not None:
      log(f"left out: {name}, which only pretraining has a use for")
  strange = sorted(set(params) - {"encoder", *heads.HEADS})
  if strange:
    raise InteropError(
      f"{path} has {', '.join(strange)}, which only maskedlm can run; exported "
      f"are heads of the kinds {', '.join(labels.CLASSES)}. The encoder "
      "alone: --part=encoder."
    )
  params = labels.undo_standardisation(params, task)
  # Where it was trained doesn't matter any more.
  cfg = dataclasses.replace(cfg, remat="none", unroll=False, attention="xla")
  return ExportSource(
    params=params,
    cfg=cfg,
    task=task,
    meta=start.meta,
    tokenizer=start.tokenizer,
    tokenizer_dir=buckets.local(load.tokenizer_dir(path)),
    path=path,
  )
