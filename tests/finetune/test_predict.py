"""Predictions are made in packed rows, and are those of rows by themselves."""

import jax
import numpy as np
import pytest

from helpers import applications
from helpers import finetune_runs as runs
from maskedlm.finetune import config as configs
from maskedlm.finetune import predict
from maskedlm.finetune.common import batching
from maskedlm.training.checkpoints import load


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("predict") / "encoder"
  return load.open_checkpoint(runs.make_encoder(folder, init_stddev=0.2))


def check_packed(name, encoder, folder):
  examples, app, (params, _) = applications.make(name, encoder, folder)
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


# One text, several in a row, and words.
@pytest.mark.parametrize("name", ("classification", "multiple_choice", "spans"))
def test_packed_rows(name, encoder, tmp_path):
  check_packed(name, encoder, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", configs.task_names())
def test_packed_rows_of_every_task(name, encoder, tmp_path):
  check_packed(name, encoder, tmp_path)
