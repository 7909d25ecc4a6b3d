"""Arguments of benchmarks are refused before anything is measured."""

import argparse

import arguments
import pytest


@pytest.mark.parametrize(
  "made, good, bad",
  [
    (arguments.count, "3", "0"),
    (arguments.count, "1", "-2"),
    (arguments.amount, "0.25", "0"),
    (arguments.amount, "1e8", "nan"),
    (arguments.amount, "7", "inf"),
  ],
)
def test_numbers_are_above_zero(made, good, bad):
  assert made(good) == float(good)
  with pytest.raises(argparse.ArgumentTypeError, match=bad):
    made(bad)


def test_a_file_needs_its_folder(tmp_path):
  assert arguments.file(str(tmp_path / "table.json")).parent == tmp_path
  for path in (tmp_path, tmp_path / "absent" / "table.json"):
    with pytest.raises(argparse.ArgumentTypeError, match=str(path)):
      arguments.file(str(path))
