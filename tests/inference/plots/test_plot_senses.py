"""A word among its senses: order, distances by hand, files and errors."""

import numpy as np
import pytest

from maskedlm.inference.plots import senses as placing
from maskedlm.inference.vectors import vectors
from maskedlm.inference.word_senses import senses

TEXT = r"the old *house|house|NOUN* \* ran"
NAMES = ("away", "near", "same", "other", "unseen")


@pytest.fixture(scope="module")
def made(workdir):
  """Returns (model, options, x, Senses): x [C] is the vector of house."""
  model = vectors.open_text_encoder(workdir)
  options = senses.word_vector_options(model.cfg)
  sentence, _ = placing.parse_target(TEXT)
  ((_, values),) = senses.embed_targets(model, [sentence], options)
  x = values[0]
  across = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
  across -= x * (across @ x) / (x @ x)
  across *= np.linalg.norm(x) / np.linalg.norm(across)
  learned = senses.Senses(
    names=NAMES,
    vectors=np.stack([-x, 3 * x + 4 * across, 2 * x, across]),
    examples=(
      "the *house*",
      "... a *big house* ran",
      "*house* * b",
      "*a*",
    ),
    candidates={
      ("house", "NOUN"): {0: 5, 1: 3, 2: 1, 4: 0},
      ("cat", "NOUN"): {3: 1},
    },
    forms={"house": (("house", "NOUN"),)},
    about={
      "layers": list(vectors.resolve_layers(options, model.cfg)),
      "combine": options.combine,
      "encoder": vectors.fingerprint(model),
    },
  )
  return model, options, x, learned


def place(made, top_k=9, **options):
  model, vector_options, _, learned = made
  target = placing.parse_target(TEXT)
  return placing.place_senses(
    model, learned, *target, vector_options, top_k=top_k, **options
  )


def test_senses_by_hand(made):
  groups, projected, total = place(made)
  assert total == 3  # Of house, with a vector.
  assert [each.label for each in groups] == [
    "the word",
    "house * b, cosine 1.000",
    "... a big house ran, cosine 0.600",
    "the house, cosine -1.000",
  ]
  points = [each.points[0] for each in groups]
  assert [(p.before, p.word, p.after) for p in points] == [
    ("the old ", "house", " * ran"),
    ("", "house", " * b"),
    ("... a ", "big house", " ran"),
    ("the ", "house", ""),
  ]
  # Unit vectors in a plane: the picture has their true distances.
  xy = projected.points
  assert [tuple(p[:2]) for p in points] == list(map(tuple, xy.tolist()))
  apart = np.linalg.norm(xy - xy[0], axis=1)
  np.testing.assert_allclose(apart, [0, 0, np.sqrt(0.8), 2], atol=1e-5)
  few, _, total = place(made, top_k=2)
  assert total == 3 and [each.label for each in few] == [
    each.label for each in groups[:3]
  ]


def test_the_verb(made, workdir, tmp_path, verb):
  path = tmp_path / "senses.npz"
  senses.save_senses(path, made[3])
  command = ["plot", "senses", f"--checkpoint={workdir}", f"--senses={path}"]
  out, html = f"{tmp_path}/a.png", f"{tmp_path}/a.html"
  more = ["--top_k=2", f"--out={out}", f"--html={html}"]
  title = "“house” and its nearest 2 of 3 senses"
  shown = verb(*command, *more, "a *house*").out.splitlines()
  assert shown[:2] == [f"{out}: {title}", f"{html}: {title}"]
  assert len(shown) == 4 and "cosine" in shown[2]
  assert (tmp_path / "a.png").stat().st_size > 9_000
  page = (tmp_path / "a.html").read_text()
  assert title in page and "(1)" not in page
  row = f"{tmp_path}/row.png"
  shown = verb(*command, f"--out={row}", "a house sat").out
  first, *marks = shown.splitlines()
  assert first == f"{row}: 1 of 3 words have a sense"
  assert [line.split(":")[0] for line in marks] == ["  house"]
  for options, message in (
    (["the *house*"], "give --out=FILE.png"),
    ([more[2], "house"], "has no page: give --out"),
  ):
    printed = verb(*command, *options, expect=2).err
    assert message in printed and printed.count("\n") == 1
