"""The teacher of fine-tuning: a model fine-tuned on the same task."""

import dataclasses
from typing import Any

import jax

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Task
from maskedlm.finetune import initial_params
from maskedlm.finetune.contract import Setup
from maskedlm.finetune.options import FinetuneConfig
from maskedlm.finetune.take_heads import take_heads
from maskedlm.modeling import flops, masked_lm
from maskedlm.training import distil
from maskedlm.training.checkpoints import load


def add_teacher(task: Task, run: Any, config: FinetuneConfig) -> Task:
  """Returns the Task of a run (run.Prepared), which learns from config.teacher.

  Raises:
    CheckpointError, ConfigError: the teacher can't be read, is of another task
      or has other labels, or doesn't fit.
  """
  path, length = config.teacher, config.data.length
  start = load.open_best(path)
  model = dataclasses.replace(config.model, reinit_layers=0)
  cfg = initial_params.resolve_architecture(start, model, length)
  tokenizer, label_info = run.start.tokenizer, run.label_info
  app = run.task.make_application(Setup(tokenizer, cfg, label_info, length))
  shapes = jax.eval_shape(app.init, jax.random.key(0))
  heads = {n: x for n, x in shapes.items() if n not in initial_params.SHARED}
  kind = config.task.kind
  teacher_kind = start.meta["task"].get("kind", "pretraining")
  lines = [f"it is of {teacher_kind}"]
  taken = take_heads(start, kind, run.task, label_info, heads, lines.append)
  if teacher_kind != kind or (heads and not taken):
    raise ConfigError(f"teacher={path} is no model of this task: {lines[-1]}")
  student_flops, teacher_flops = (
    flops.train_flops(c, length, num_predictions=0) for c in (run.cfg, cfg)
  )
  teacher = task._replace(
    init=lambda key: {
      "encoder": masked_lm.init_encoder(cfg, key),
      **app.init(key),
    },
    loss=app.loss,
    vectors=app.vectors,
    loss_of_vectors=app.loss_of_vectors,
    flops=lambda step: task.flops(step) * teacher_flops / student_flops,
    describe={"encoder": dataclasses.asdict(cfg)},
  )
  described = load.Described(*start[1:])
  return distil.distil(task, teacher, described, tokenizer, config)
