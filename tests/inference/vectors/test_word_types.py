"""`maskedlm static`: the mean vector of each word of a text."""

from collections import defaultdict

import numpy as np
import pytest

import maskedlm
from maskedlm.cli import main
from maskedlm.data.word_vectors import files

LINES = ["The bank lent him", "the river bank", "", "a bank by the Bank"]


@pytest.fixture
def workdir(run):
  return run


def average(workdir, folder, *more):
  (folder / "text.txt").write_text("\n".join(LINES))
  out = folder / "types.txt"
  argv = ["static", "average", f"--checkpoint={workdir}", f"--out={out}"]
  code = main.main([*argv, f"--source=text:{folder}/text.txt", *more])
  if code:
    return code, None
  made = files.read_word_vectors(str(out), log=print)
  return code, dict(zip(made.words, made.values, strict=True))


def test_a_word_has_the_mean_of_its_instances(workdir, tmp_path, capsys):
  code, made = average(
    workdir, tmp_path, "--layers=1,2", "--combine=concat", "--min_count=2"
  )
  assert code == 0
  assert list(made) == ["bank", "the"]  # 4 and 3 times.
  assert "2 words, " in (printed := capsys.readouterr().out)
  assert "5 words" in printed and f"{5 / 12:.1%}" in printed
  found = maskedlm.load(workdir).vectors(
    LINES, unit="word", layers=(1, 2), combine="concat"
  )
  instances = defaultdict(list)
  for source, (a, b), x in zip(
    found.sources, found.offsets, found.values, strict=True
  ):
    instances[source.text[a:b].lower()].append(x)
  for word, x in made.items():
    wanted = np.mean(instances[word], axis=0)
    np.testing.assert_allclose(x, wanted, atol=1e-5)
