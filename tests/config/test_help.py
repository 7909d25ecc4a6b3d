"""--help beside --config lists the options of that config."""

import pytest

from helpers.repository import CONFIGS
from maskedlm.cli import main


@pytest.mark.parametrize(
  ("verb", "file", "expected"),
  [
    ("pretrain", "quickstart.py", "--config.train.num_steps=2400\n"),
    ("pretrain", "quickstart.py", "--config.objective.mask_rate=0.15\n"),
    ("finetune", "ner.py", "--config.task.scheme=bio\n"),
    ("finetune", "ner.py", "--config.sweep.seeds=()\n"),
  ],
)
def test_options_are_listed_with_their_values(verb, file, expected, capsys):
  with pytest.raises(SystemExit) as exit_:
    main.main([verb, "--help", f"--config={CONFIGS / file}"])
  assert exit_.value.code == 0
  printed = capsys.readouterr().out
  assert "--workdir" in printed and f"  {expected}" in printed
  assert "--config.seed=0\n      " in printed  # The meaning follows.
  assert max(map(len, printed.splitlines())) <= 80
