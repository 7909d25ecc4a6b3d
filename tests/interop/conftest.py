"""Silences transformers' progress bars and warnings."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def quiet():
  try:
    import transformers
  except ImportError:
    return
  transformers.utils.logging.disable_progress_bar()
  transformers.utils.logging.set_verbosity_error()
