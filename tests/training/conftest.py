"""A mesh of two devices, on which the toy trains."""

import jax
import pytest

from maskedlm.config import defaults
from maskedlm.training import sharding


@pytest.fixture(scope="session")
def mesh():
  return sharding.make_mesh(defaults.default().mesh, jax.devices()[:2])
