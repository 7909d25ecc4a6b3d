"""docs/design/dependencies.md has every package of setup.py, and no other."""

import re

import pytest
import setuptools

from helpers.repository import ROOT

PAGE = ROOT / "docs" / "design" / "dependencies.md"


@pytest.fixture(scope="module")
def required():
  """Returns the packages of setup.py: (always, in extras)."""
  given = {}
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(setuptools, "setup", given.update)
    source = (ROOT / "setup.py").read_text()
    exec(compile(source, str(ROOT / "setup.py"), "exec"), {
      "__file__": str(ROOT / "setup.py"), "__name__": "setup"
    })  # fmt: skip

  def names(requirements):
    return {re.match(r"[\w-]+", line)[0] for line in requirements}

  extras = set().union(*map(names, given["extras_require"].values()))
  return names(given["install_requires"]), extras


def packages(section):
  """Returns the packages in code font in the first two columns of a table."""
  rows = [line for line in section.splitlines() if line.startswith("| `")]
  cells = " ".join(cell for row in rows for cell in row.split("|")[1:3])
  return set(re.findall(r"`([\w-]+)(?:\[[^`]*)?`", cells))


def test_every_package_has_a_reason(required):
  always, extras = required
  _, installed, optional, tests, _ = PAGE.read_text().split("\n## ")
  told = packages(installed)
  assert not always - told
  first = {row.split("`")[1] for row in installed.splitlines() if "| `" in row}
  assert first == always
  missing = extras - told - packages(optional) - packages(tests)
  assert not missing
