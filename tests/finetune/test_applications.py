"""What holds for every task's Application: padding, types, packing, members."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import applications
from maskedlm.finetune import config as configs
from maskedlm.finetune import predict
from maskedlm.finetune.common import batching
from maskedlm.modeling.task_heads import ensemble
from maskedlm.training.checkpoints import load
from maskedlm.training.step import totals

TASKS = configs.task_names()
LOGITS = ("classification", "multiple_choice", "relations")


@pytest.fixture(scope="module")
def encoder(encoder):
  return load.open_checkpoint(encoder)


@pytest.mark.parametrize(
  "name",
  [
    # One text, and spans of documents; others have such a test of their own.
    task
    if task in ("classification", "coreference_chains")
    else pytest.param(task, marks=pytest.mark.slow)
    for task in TASKS
  ],
)
def test_padding_and_fillers_count_nothing(name, encoder, tmp_path):
  examples, app, (params, _) = applications.make(name, encoder, tmp_path)
  rows, pad = app.make_rows(examples), encoder.tokenizer.special.pad
  which = np.arange(len(rows.example))

  def run(which, length):
    batch = batching.gather_rows(rows, which, length, pad)

    def loss(params):
      terms, stats = totals(app.loss(params, batch, None, False))
      return sum(s / w for s, w in terms.values()), (terms, stats)

    return jax.jit(jax.grad(loss, has_aux=True))(params)

  plain, padded = run(which, 24), run(np.append(which, [-1, -1]), 28)
  for (path, a), b in zip(
    jax.tree_util.tree_leaves_with_path(plain),
    jax.tree.leaves(padded),
    strict=True,
  ):
    assert np.isfinite(a).all(), path
    np.testing.assert_allclose(a, b, atol=1e-4, rtol=1e-3, err_msg=str(path))


def stacked(*params):
  return jax.tree.map(lambda *x: np.stack(x), *params)


@pytest.mark.parametrize("name", TASKS)
def test_members_of_bfloat16_are_combined_in_float32(name, encoder, tmp_path):
  """That outputs are of no single member is checked by over_members."""
  rough = encoder._replace(
    cfg=dataclasses.replace(encoder.cfg, dtype="bfloat16")
  )
  examples, app, own = applications.make(name, rough, tmp_path)
  rows = app.make_rows(examples)
  batch = batching.gather_rows(
    rows, np.arange(len(rows.example)), 24, encoder.tokenizer.special.pad
  )
  found = jax.eval_shape(
    ensemble.over_members(app.outputs), stacked(*own), batch
  )
  assert found and {x.shape[0] for x in found.values()} == {len(rows.example)}
  assert {str(x.dtype) for x in found.values()} <= {"float32", "int32"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_predictions(name, encoder, tmp_path):
  """One thrice is that one; of two, the order doesn't matter."""
  examples, app, own = applications.make(name, encoder, tmp_path)
  rows = app.make_rows(examples)

  def predictions(outputs, params):
    found = predict.compute_outputs(
      app._replace(outputs=outputs),
      params,
      rows,
      batch_size=8,
      buckets=(24,),
      pad=encoder.tokenizer.special.pad,
    )
    return app.decode(examples, rows, found, {}), found

  joined = ensemble.over_members(app.outputs)
  one, first = predictions(app.outputs, own[0])
  applications.check_close(predictions(joined, stacked(*own[:1] * 3))[0], one)
  _, second = predictions(app.outputs, own[1])
  both, joint = predictions(joined, stacked(*own))
  applications.check_close(predictions(joined, stacked(*own[::-1]))[0], both)
  if name in LOGITS:
    a, b, found = (
      jax.nn.softmax(np.stack(x["logits"])) for x in (first, second, joint)
    )
    np.testing.assert_allclose(found, (a + b) / 2, atol=1e-5)
  if name == "retrieval":
    x, y, z = (np.stack(o["vectors"]) for o in (first, second, joint))
    np.testing.assert_allclose(
      np.einsum("nd,mkd->nmk", z[:, 0], z[:, 1:]),
      sum(np.einsum("nd,mkd->nmk", v[:, 0], v[:, 1:]) for v in (x, y)) / 2,
      atol=1e-5,
    )


@pytest.mark.parametrize(
  "name",
  [
    task
    # One text, several in a row, and words.
    if task in ("classification", "multiple_choice", "spans")
    else pytest.param(task, marks=pytest.mark.slow)
    for task in TASKS
  ],
)
def test_packed_rows_are_predicted_as_rows_by_themselves(
  name, encoder, tmp_path
):
  examples, app, (params, _) = applications.make(name, encoder, tmp_path)
  rows, pad = app.make_rows(examples), encoder.tokenizer.special.pad
  packed = predict.compute_outputs(
    app, params, rows, batch_size=4, buckets=(16, 24), pad=pad
  )
  order = [np.array([i]) for i in range(len(rows.example))]
  step = jax.jit(app.outputs)
  single = [
    step(params, batching.gather_rows(rows, which, 24, pad)) for which in order
  ]
  single = predict.by_row(order, single)
  applications.check_close(
    app.decode(examples, rows, packed, {}),
    app.decode(examples, rows, single, {}),
  )
