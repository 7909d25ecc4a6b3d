"""Quiet libraries: no progress bars for models of a few kilobytes."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def quiet():
  try:
    import transformers
  except ImportError:
    return
  transformers.utils.logging.disable_progress_bar()
  transformers.utils.logging.set_verbosity_error()
