"""An encoder of two layers, made once for all tests."""

import pytest

from helpers import vector_encoder
from maskedlm.inference.vectors import vectors


@pytest.fixture(scope="session")
def workdir(tmp_path_factory):
  return vector_encoder.make(tmp_path_factory.mktemp("vectors") / "encoder")


@pytest.fixture(scope="session")
def model(workdir):
  return vectors.open_text_encoder(workdir)
