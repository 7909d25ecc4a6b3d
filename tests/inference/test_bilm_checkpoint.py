"""What can be done with a checkpoint of two LSTMs, and what is refused."""

import numpy as np
import pytest

from helpers import untrained, vector_encoder
from maskedlm.core.errors import InteropError
from maskedlm.inference.vectors import vectors
from maskedlm.interop import stablehlo
from maskedlm.interop.huggingface import exporter

W = untrained.D // 2


@pytest.fixture
def path(bilm):
  return bilm.path


@pytest.mark.parametrize("part", ["", "encoder"])
def test_transformers_has_no_such_model(path, part, tmp_path):
  with pytest.raises(InteropError, match=r"family='bilm'.*--to=onnx"):
    exporter.export_huggingface(path, tmp_path / "out", part=part, log=print)


def test_cls_is_what_either_half_has_read(path):
  model = vectors.open_text_encoder(path)
  options = vectors.VectorOptions(
    unit="sentence", pool="cls", layers=(1, -1), combine="concat"
  )
  made = vectors.collect(vectors.embed(model, ["the cat sat"], options))
  x = vector_encoder.by_hand(model, model.tokenizer.encode("the cat sat").ids)
  expected = [(x[n, -1, :W], x[n, 0, W:]) for n in (1, -1)]
  np.testing.assert_allclose(made.values[0], np.ravel(expected), atol=1e-5)


@pytest.mark.slow
def test_the_encoder_is_exported_as_a_program(path, tmp_path):
  about = stablehlo.export_stablehlo(
    path, tmp_path / "out", part="encoder", log=print
  )
  assert about["outputs"]["last_hidden_state"][-1] == str(2 * W)
