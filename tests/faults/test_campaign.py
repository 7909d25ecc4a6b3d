"""A short campaign of injected faults ends without one that a user should see.

docs/results/faults.md has the counts of a long one.
"""

import subprocess
import sys

import pytest

from helpers.repository import ROOT


@pytest.mark.slow
def test_a_short_campaign():
  command = [sys.executable, ROOT / "tests" / "faults" / "campaign.py"]
  ended = subprocess.run(
    [*command, "--trials=60", "--seed=7"],
    check=False,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stdout
