"""Flags that are given are obeyed or refused."""

import pytest

from maskedlm.cli import main


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (["--try=x", "--out=y", "a text"], "--out has no effect with --try"),
    (["--config=configs/quickstart.py", "--out=y", "a text"], "the text 'a te"),
  ],
)
def test_tokenizer(argv, message, capsys):
  assert main.main(["tokenizer", *argv]) == 2
  assert message in capsys.readouterr().err
