"""Cosines of words in context against vectors made apart; thresholds by hand;
the verb.
"""

import json

import numpy as np
import pytest

from helpers import finetune_runs
from maskedlm.cli import main
from maskedlm.inference.vectors import standardise, vectors
from maskedlm.inference.words_in_context import compare, pairs

PAIRS = [
  ("the *cat* sat on the mat", "a good film , a bad *cat*"),
  ("the *roasted* cat", "where is the red *book* ?"),
  ("the *cat* sat", "the *cat* sat"),
]


@pytest.fixture
def fitted(workdir, tmp_path):
  text = tmp_path / "text.txt"
  text.write_text("\n".join(finetune_runs.TEXTS))
  path = tmp_path / "fitted.npz"
  command = ["embed", f"--checkpoint={workdir}", f"--input={text}"]
  assert main.main([*command, "--unit=word", f"--fit={path}"]) == 0
  return path


def test_cosines_of_word_vectors(model, fitted, monkeypatch):
  monkeypatch.setattr(compare, "PAIRS_AT_ONCE", 2)
  options = vectors.VectorOptions()
  found = standardise.open_word_standardiser(str(fitted), model, options)
  made = list(
    compare.compare(
      model,
      (pairs.make_pair(*pair) for pair in PAIRS),
      options,
      standardiser=found,
    )
  )
  assert len(made) == 3
  file = np.load(fitted)
  for (a, b), (_, similarity) in zip(PAIRS, made, strict=True):
    u, v = (word_vector(model, text) for text in (a, b))
    assert similarity.cosine == pytest.approx(cosine(u, v), abs=1e-4)
    z = [(x - file["mean"]) / file["stddev"] for x in (u, v)]  # Equation 11.12.
    assert similarity.standardised == pytest.approx(cosine(*z), abs=1e-4)
  assert made[2][1].cosine == pytest.approx(1, abs=1e-5)


def word_vector(model, marked):
  text = marked.replace("*", "")
  options = vectors.VectorOptions(unit="word")
  made = vectors.collect(vectors.embed(model, [text], options))
  begin = marked.index("*")
  (place,) = np.flatnonzero(made.offsets[:, 0] == begin)
  return made.values[place]


def cosine(u, v):
  return u @ v / np.sqrt((u @ u) * (v @ v))


def test_the_best_threshold_by_hand():
  # Above 0.6: of 0.1 F, 0.5 T, 0.5 F, 0.7 T, 0.9 T four of five are correct;
  # above 0.3 as well, and that is lower.
  x, y = [0.9, 0.5, 0.1, 0.5, 0.7], [True, False, False, True, True]
  assert compare.best_threshold(x, y) == pytest.approx((0.3, 0.8))
  assert compare.best_threshold([0.2, 0.4], [False, False]) == (1.2, 1.0)
  assert compare.best_threshold([0.2, 0.4], [True, True]) == (-0.9, 1.0)
  # Against every threshold, on ties and all.
  rng = np.random.default_rng(0)
  for _ in range(20):
    x = rng.integers(0, 6, 13) / 5
    y = rng.random(13) < x
    threshold, share = compare.best_threshold(x, y)
    tried = np.arange(-0.1, 1.2, 0.05)
    assert share == max(np.mean((x > t) == y) for t in tried)
    assert share == np.mean((x > threshold) == y)


def test_the_verb(workdir, fitted, verb):
  command = ["similarity", f"--checkpoint={workdir}"]
  lines = verb(*command, *PAIRS[2]).out.splitlines()
  assert lines == [*PAIRS[2], "  cosine        1.000"]
  stdin = "".join(f"{a}\t{b}\n" for a, b in PAIRS).encode()
  command += ["--json", f"--standardise={fitted}"]
  made = list(map(json.loads, verb(*command, stdin=stdin).out.splitlines()))
  assert [x["words"] for x in made] == [
    ["cat", "cat"],
    ["roasted", "book"],
    ["cat", "cat"],
  ]
  assert made[1]["line"] == 2 and -1 <= made[1]["standardised"] < 0.99


def test_wic(workdir, fitted, tmp_path, verb):
  same, other = "the cat sat on the mat", "in paris , a cat she sold"
  line = "cat\tN\t{}-{}\t{}\t{}\n"
  data = line.format(1, 1, same, same) + line.format(1, 4, same, other)
  for name in ("dev", "test"):
    (tmp_path / f"{name}.data.txt").write_text(data * 2)
    (tmp_path / f"{name}.gold.txt").write_text("T\nF\n" * 2)
  out, keys = tmp_path / "a.json", tmp_path / "a.txt"
  command = [
    *("similarity", f"--checkpoint={workdir}", f"--keys={keys}"),
    *(f"--wic={tmp_path}/test.data.txt", f"--dev={tmp_path}/dev.data.txt"),
  ]
  more = [f"--standardise={fitted}", f"--out={out}"]
  lines = verb(*command, *more).out.splitlines()
  assert lines[0].startswith("4 pairs of ") and len(lines) == 4
  assert lines[2].split()[0] == "cosine" and lines[3].endswith("100.0%")
  made = json.loads(out.read_text())
  assert made["pairs"] == made["dev_pairs"] == 4
  assert made["accuracy"] == made["standardised"]["accuracy"] == 1.0
  assert keys.read_text() == "T\nF\nT\nF\n"
  (tmp_path / "test.gold.txt").unlink()
  assert json.loads(verb(*command, "--json").out)["accuracy"] is None
  (tmp_path / "dev.gold.txt").unlink()
  refused = verb(*command, expect=2).err
  assert "has no answer, which the threshold" in refused
