"""Computes the losses of a few steps on a mesh."""

from helpers import any_task

NUM_STEPS = 4


def losses_on(config, task, axes, **options):
  stats, params = any_task.train_on(
    config, task, axes, num_steps=NUM_STEPS, **options
  )
  return [step["loss"][0] for step in stats], params
