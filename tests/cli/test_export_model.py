"""`maskedlm export`: flags that have no effect are refused."""

import pytest

from maskedlm.cli import main


@pytest.mark.parametrize(
  ("to", "flag"),
  [
    ("stablehlo", "--architecture=bert"),
    ("onnx", "--platforms=cpu"),
    ("hf", "--platforms=cpu"),
    ("hf", "--int8"),
  ],
)
def test_a_flag_of_the_other_format_is_refused(to, flag, tmp_path, capsys):
  argv = ["export", "--checkpoint=none", f"--to={to}", f"--out={tmp_path}/x"]
  assert main.main([*argv, flag]) == 2
  error = capsys.readouterr().err
  name = flag.partition("=")[0]
  assert f"{name} has no effect with --to={to}" in error
