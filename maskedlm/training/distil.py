"""Distillation: a Task whose loss also follows a trained model, its teacher.

With a weight w, a temperature T and the logits z of both at each place that the
task's own loss weighs (Hinton et al. 2015, arXiv:1503.02531, section 2),

  (1 - w) loss + w (T^2 KL(softmax(z_teacher / T) || softmax(z / T)) + layers)

where `layers`, with config.teacher_layers, is 1 - cos of a token's vectors in
two layers (Sanh et al. 2019, arXiv:1910.01108), the student's through a learnt
matrix if the widths differ (Jiao et al. 2020, arXiv:1909.10351). For numbers,
of regression, half the squared difference takes the place of KL. The teacher
reads each batch in the same step, without dropout and without a gradient.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Batch, Fixed, Key, Metrics, Params, Task
from maskedlm.modeling.losses import divergence, weighted_sum
from maskedlm.modeling.reports import Heard, Scores, hear
from maskedlm.training.checkpoints import load
from maskedlm.training.options import RunOptions
from maskedlm.training.sharding import by_path

TEACHER, HEAD = "teacher", "teacher_head"  # Subtrees of the parameters.
CHUNK = 64  # Places of a row whose logits exist at once.


def distil(
  task: Task, teacher: Task, found: load.Described, tokenizer: Any, options: Any
) -> Task:
  """Returns the Task of a student; its held-out losses are the text's alone.

  Args:
    task, tokenizer, options: the student's; RunOptions.
    teacher: that of the same batches with the teacher's architecture.
    found: what the checkpoint options.teacher holds.

  Raises:
    ConfigError: the teacher doesn't fit, or there is nothing to compare.
  """
  key = jax.random.key(0)
  shapes = jax.eval_shape(teacher.init, key)
  _check_fits(options.teacher, found, tokenizer, teacher, shapes)
  encoders = [x.describe["encoder"] for x in (task, teacher)]
  _check_layers(options, *encoders)
  sizes = [x["width"] for x in encoders]

  def init(key: Key) -> Params:
    params = task.init(key)
    if not options.teacher_layers or sizes[0] == sizes[1]:
      return params
    make = jax.nn.initializers.lecun_normal()
    return {**params, HEAD: {"kernel": make(jax.random.fold_in(key, 1), sizes)}}

  def blend(
    params: Params, student_pass, teacher_pass
  ) -> tuple[Metrics, Metrics]:
    (terms, metrics), mine = student_pass
    distances = compare(mine, teacher_pass[1], options, params.get(HEAD))
    w = options.teacher_weight
    terms = {n: ((1 - w) * x, c) for n, (x, c) in terms.items() if w < 1}
    terms |= {n: (w * x, c) for n, (x, c) in distances.items()}
    return terms, {**metrics, **{f"{n}_loss": x for n, x in distances.items()}}

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    if not train:
      return task.loss(params, batch, key, train)
    if task.vectors:
      return loss_of_vectors(vectors(params, batch, key, train), batch)
    student_pass = hear(task.loss, params, batch, key, train)
    teacher_pass = hear(teacher.loss, params[TEACHER], batch, None, False)
    return blend(params, student_pass, teacher_pass)

  def vectors(params: Params, batch: Batch, key: Key, train: bool):
    passes = [(task, params, key, train)]
    passes += [(teacher, params[TEACHER], None, False)] if train else []
    return [t.vectors(p, batch, *how) for t, p, *how in passes]  # type: ignore

  def loss_of_vectors(encoded, batch: Batch):
    heard = [
      hear(t.loss_of_vectors, x, batch)  # type: ignore[arg-type]
      for t, x in zip((task, teacher), encoded, strict=False)
    ]
    return blend({}, *heard) if len(heard) > 1 else heard[0][0]

  student = task._replace(
    init=init,
    loss=loss,
    flops=lambda step: task.flops(step) + teacher.flops(step) / 3,
    fixed=Fixed({TEACHER: shapes}, lambda: _load(options.teacher, shapes)),
    vectors=vectors if task.vectors else None,
    loss_of_vectors=loss_of_vectors if task.vectors else None,
  )

  def trace(params: Params, batch: Batch, key: Key):
    batch = task.corrupt_with(task.carried.init(), batch, key)
    return student.loss(params, batch, key, True)

  # Traced once now, as `compare` may raise.
  params = {**jax.eval_shape(init, key), TEACHER: shapes}
  jax.eval_shape(trace, params, task.batch_at("train", 0), key)
  return student


def compare(
  mine: Heard, theirs: Heard, options: RunOptions, head: Params | None
) -> Metrics:
  """Returns terms: "teacher", "teacher_2", ... of scores, "layers" of layers.

  `head` is the matrix {"kernel": [D, D of the teacher]}, or None.

  Raises:
    ConfigError: there is nothing to compare.
  """
  terms, layers = {}, options.teacher_layers
  pairs = zip(mine.scores, theirs.scores, strict=True)
  for i, pair in enumerate(pairs, start=1):
    name = f"teacher_{i}" if i > 1 else "teacher"
    terms[name] = distance(*pair, options.teacher_temperature)
  gives_layers = len(mine.layers) == 1  # ELECTRA has two encoders.
  if layers and gives_layers:
    vectors = mine.layers[0], theirs.layers[0]
    terms["layers"] = layer_distance(*vectors, layers, head)
  if not terms or (layers and not gives_layers):
    remedy = "set teacher_layers, or " if gives_layers else ""
    raise ConfigError(
      f"teacher={options.teacher}: the loss of this objective or task is "
      "computed in its own way, and has no "
      f"{'layers' if layers else 'scores'} to compare; {remedy}leave out "
      f"{'teacher_layers' if terms else 'teacher'}."
    )
  return terms


def distance(own: Scores, other: Scores, temperature: float):
  """Returns (sum, weight) [B] of T^2 KL(other || own), by own weights.

  The backward pass computes the logits again, so that they are few at a time.
  """
  T = temperature

  @jax.checkpoint
  def of_place(inputs):
    mine, theirs = (
      scores.logits(x[:, None])[:, 0] / T
      for scores, x in zip((own, other), inputs, strict=True)
    )
    theirs = jax.lax.stop_gradient(theirs)
    if mine.shape[-1] == 1:
      return T**2 * jnp.square(mine - theirs)[:, 0] / 2
    return T**2 * divergence(mine, theirs)

  places = [jnp.moveaxis(x.inputs, 1, 0) for x in (own, other)]
  distances = jax.lax.map(
    of_place, places, batch_size=min(CHUNK, len(places[0]))
  )
  return weighted_sum(distances.T, own.weights)


def layer_distance(mine, theirs, layers, head: Params | None):
  """Returns (sum, weight) [R] of 1 - cos, the mean over pairs of layers.

  mine and theirs are as in Heard.layers; head as of `compare`.
  """
  compared = np.flatnonzero(layers)
  student = jnp.float32(mine[0][compared + 1])
  student = student @ head["kernel"] if head else student
  teacher = jax.lax.stop_gradient(
    jnp.float32(theirs[0][np.array(layers)[compared]])
  )
  student, teacher = (
    x * jax.lax.rsqrt(jnp.maximum(jnp.sum(x * x, -1, keepdims=True), 1e-12))
    for x in (student, teacher)
  )
  gap = 1 - jnp.sum(student * teacher, axis=-1)
  return weighted_sum(jnp.mean(gap, axis=0), mine[1])


def identity(path: str) -> dict[str, str]:
  """Returns what a run's identity (checkpoints/resume.py) has of a teacher."""
  if not path:
    return {}
  return {"teacher": load.fingerprint(load.open_best(path).params)}


def _load(path: str, shapes: Params) -> Params:
  params = load.open_best(path).params
  return {TEACHER: {name: params[name] for name in shapes}}


def _check_fits(
  path: str, described: load.Described, tokenizer, teacher: Task, shapes: Params
) -> None:
  """Raises ConfigError unless the checkpoint at a path is such a teacher."""
  there, here = described.tokenizer.sha256[:12], tokenizer.sha256[:12]
  if here and there != here:  # "" is that of a stand-in.
    raise ConfigError(
      f"teacher={path} has the tokenizer {there}, not this one ({here}), so "
      "its scores are of other tokens: pretrain the student with "
      f"--config.tokenizer.path={path}/tokenizer."
    )
  saved = {n: x.shape for n, x in by_path(load.param_shapes(path)).items()}
  needed = by_path(shapes).items()
  wrong = [n for n, x in needed if saved.get(n) != x.shape]
  encoder, reads = teacher.describe["encoder"], vars(described.cfg)
  directions = ("causal", "right_to_left", "shifted")
  wrong += [f"{n}={encoder[n]}" for n in directions if reads[n] != encoder[n]]
  if wrong:
    raise ConfigError(
      f"teacher={path} has no {wrong[0]}: expected a model of the same "
      "objective or task."
    )


def _check_layers(options: RunOptions, student: Any, teacher: Any) -> None:
  layers = options.teacher_layers
  n, N = student["num_layers"], teacher["num_layers"]
  fit = len(layers) == n and min(layers) >= 0 and 0 < max(layers) <= N
  if layers and not fit:
    raise ConfigError(
      f"teacher_layers={layers}: expected {n} numbers, for each layer one of "
      f"the teacher's, 1 to {N}, or 0 for none."
    )
