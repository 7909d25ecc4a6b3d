"""Makes a genome whose rules are known, and tells what counting knows of them.

  python benchmarks/genome.py FOLDER

Promoters stand between random bases: TTG and a code of six bases, 8 random
bases, TAT and the code's reverse complement; a base of a code follows from its
partner alone. Of the labelled sequences, 60 bases each, half have a promoter.
docs/results/sequences.md has the commands and the figures.
"""

import csv
import pathlib
import sys

import numpy as np


def _draw(rng, count: int) -> str:
  return "".join(rng.choice([*"ACGT"], count))


def _promoter(rng) -> str:
  code, pairs = _draw(rng, 6), str.maketrans("ACGT", "TGCA")
  return f"TTG{code}{_draw(rng, 8)}TAT{code[::-1].translate(pairs)}"


def sequence(rng, size: int) -> str:
  """Returns promoters with 3 to 6 random bases between them."""
  bases = ""
  while len(bases) < size:
    bases += _draw(rng, rng.integers(3, 7)) + _promoter(rng)
  return bases[:size]


def count_losses(texts: tuple[str, str], most: int = 5) -> list[float]:
  """Returns nats a base of the second text, by counts of the first.

  The context is all of the k bases on each side; its counts are added to four
  times the prediction of k - 1. Masked models don't see all neighbours.
  """
  codes = [np.array([*map("ACGT".index, text)]) for text in texts]
  share, losses = 0.25, []
  for k in range(most + 1):
    sides = [*range(-k, 0), *range(1, k + 1)]
    (train, _), (at, base) = (
      (sum(np.roll(x, -s) * 4**i for i, s in enumerate(sides, 1)) + x, x)
      for x in codes
    )
    counts = np.bincount(train, minlength=4 ** (2 * k + 1)).reshape(-1, 4)
    seen = counts[at // 4]
    share = (seen[np.arange(len(at)), base] + 4 * share) / (seen.sum(1) + 4)
    losses.append(float(-np.log(share).mean()))
  return losses


def main(folder: pathlib.Path) -> None:
  """Writes genome.fa, heldout.fa, train.csv and dev.csv; prints the losses."""
  folder.mkdir(parents=True, exist_ok=True)
  rng = np.random.default_rng(0)
  records = [sequence(rng, 5_000) for _ in range(420)]
  parts = {"genome": records[:400], "heldout": records[400:]}
  for name, part in parts.items():
    lines = (f">{name}{i}\n{x}\n" for i, x in enumerate(part))
    (folder / f"{name}.fa").write_text("".join(lines))
  for k, loss in enumerate(count_losses(tuple(map("".join, parts.values())))):
    print(f"{k} bases on each side: {loss:.3f} nats a base")
  rows = []
  for i in range(3_000):
    flank, inside = _draw(rng, 34), _promoter(rng) if i % 2 else _draw(rng, 26)
    at = rng.integers(35)
    rows.append((flank[:at] + inside + flank[at:], ("no", "yes")[i % 2]))
  for name, part in (("train", rows[:2_000]), ("dev", rows[2_000:])):
    with open(folder / f"{name}.csv", "w", newline="") as file:
      table = [(i, *row) for i, row in enumerate(part)]
      csv.writer(file).writerows([("id", "sequence", "label"), *table])


if __name__ == "__main__":
  main(pathlib.Path(sys.argv[1]))
