"""Opens a checkpoint for export and selects the part to export.

The rest of the checkpoint is left out; a head that can't be exported raises an
InteropError.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import InteropError, check_name
from maskedlm.core.task import Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune import initial_params
from maskedlm.inference.vectors import splade
from maskedlm.interop import heads, labels
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig, restored
from maskedlm.runtime import buckets
from maskedlm.training.checkpoints import load

PARTS = ("", "encoder", "discriminator", "generator")
# Heads that only training uses and that no other library has.
TRAINING_ONLY = ("sbo_head", "bilm_head", "teacher_head")


class ExportSource(NamedTuple):
  """The model to export."""

  params: Params  # {"encoder", some of heads.HEADS}, as numpy arrays.
  cfg: EncoderConfig
  # meta["task"] without the entries of heads that are left out.
  task: Mapping[str, Any]
  meta: Mapping[str, Any]
  tokenizer: Tokenizer
  tokenizer_dir: pathlib.Path
  path: pathlib.Path  # As given by the user.


def open_export_source(
  path: pathlib.Path, *, part: str, log: Callable[[str], None]
) -> ExportSource:
  """Opens a workdir (its best checkpoint if fine-tuned) or a checkpoint.

  Args:
    path: a workdir or a step's folder.
    part: one of PARTS; "" is everything (of ELECTRA, the discriminator).
    log: called with a line for each part that is left out.

  Raises:
    CheckpointError, ConfigError: no checkpoint can be read.
    InteropError: the checkpoint lacks the part, or has a head that can't be
      exported.
  """
  if part:
    check_name("--part", part, PARTS[1:], InteropError)
  start = load.open_best(path)
  params, cfg, task = dict(start.params), start.cfg, dict(start.meta["task"])
  if part == "generator":
    if "generator" not in params:
      raise InteropError(
        f"--part=generator: {path} has none; it is not an ELECTRA."
      )
    params = dict(masked_lm.with_generator(params))
    cfg = restored(task["generator"])
  elif "generator" in params:
    for name in ("generator", "mlm_head"):
      del params[name]
    log("left out: the generator (export it with --part=generator)")
  elif part == "discriminator" and "discriminator_head" not in params:
    raise InteropError(
      f"--part=discriminator: {path} has none; it is not an ELECTRA."
    )
  if part == "encoder":
    params = {n: x for n, x in params.items() if n in initial_params.SHARED}
    names = ("objective", "sentences")
    task = {name: task[name] for name in names if name in task}
  for name in TRAINING_ONLY:
    if params.pop(name, None) is not None:
      log(f"left out: {name}, which only training uses")
  unknown_heads = sorted(set(params) - {"encoder", *heads.HEADS})
  if unknown_heads:
    raise InteropError(
      f"{path} has {', '.join(unknown_heads)}, which only maskedlm can run; "
      f"heads of these tasks can be exported: {', '.join(labels.CLASSES)}. For "
      "the encoder alone, add --part=encoder."
    )
  if task.get("sentences", {}).get("pool") == splade.POOL:
    del task["sentences"]
    log("left out: how texts are pooled; SparseEncoder pools a masked LM so")
  # These options depend on the machine that the model was trained on.
  cfg = dataclasses.replace(cfg, remat="none", unroll=False, attention="xla")
  return ExportSource(
    params=labels.undo_standardisation(params, task),
    cfg=cfg,
    task=task,
    meta=start.meta,
    tokenizer=start.tokenizer,
    tokenizer_dir=buckets.local_copy(load.tokenizer_dir(path)),
    path=path,
  )
