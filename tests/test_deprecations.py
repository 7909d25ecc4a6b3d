"""Deprecated calls of our own are errors; those of libraries are not."""

import importlib
import warnings

import pytest

LIBRARY = """
import warnings

def old(kind, **options):
  warnings.warn("old() goes", kind, **options)
"""
OTHER = """
import some_library

def use(kind, **options):
  return some_library.old(kind, **options)
"""


@pytest.fixture
def libraries(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / "some_library.py").write_text(LIBRARY)
  (tmp_path / "other_library.py").write_text(OTHER)
  return map(importlib.import_module, ("some_library", "other_library"))


@pytest.mark.parametrize(
  ("kind", "options"),
  [
    (DeprecationWarning, {}),
    (PendingDeprecationWarning, {"stacklevel": 2}),
    (FutureWarning, {"stacklevel": 3}),
  ],
)
def test_only_our_calls_are_errors(libraries, kind, options):
  library, other = libraries
  with pytest.raises(kind, match="old"):
    library.old(kind, **options)
  # Whatever the level says, the one that called is another library.
  if options.get("stacklevel") != 3:
    with pytest.warns(kind, match="old"):
      warnings.simplefilter("always")
      other.use(kind, **options)


def test_a_call_in_maskedlm_is_an_error():
  # The code of a frame, and so its module, is what counts.
  source = "import warnings\nwarnings.warn('gone', DeprecationWarning)"
  with pytest.raises(DeprecationWarning, match="gone"):
    exec(source, {"__name__": "maskedlm.training.step"})
