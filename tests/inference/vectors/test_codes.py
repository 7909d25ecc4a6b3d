"""Codes of vectors: by hand, how near they are, and the search with them."""

import json
import random
import zipfile

import numpy as np
import pytest

import maskedlm
from helpers import damage
from maskedlm.cli import main
from maskedlm.inference.vectors import codes, search

LINES = [
  "the cat sat on the mat",
  "a film with a bad end",
  "she sold her house",
]


def test_codes_by_hand():
  x = np.float32([[0.5, -1, 0.25], [0, 0, 0], [3, 3, -3]])
  coded = codes.encode(x, "int8")
  assert coded.dtype == np.int8
  assert coded.tolist() == [[64, -127, 32], [0, 0, 0], [127, 127, -127]]
  signs = codes.encode(x, "binary")
  assert signs.tolist() == [[0b10100000], [0], [0b11000000]]
  assert codes.decode(signs, 3).tolist() == [
    [1, -1, 1],
    [-1, -1, -1],
    [1, 1, -1],
  ]
  wide = np.float32(np.random.default_rng(0).normal(size=(5, 19)))
  assert codes.encode(wide, "binary").shape == (5, 3)
  assert (np.sign(wide) == codes.decode(codes.encode(wide, "binary"), 19)).all()


@pytest.mark.parametrize(("kind", "error"), [("int8", 0.01), ("binary", 0.5)])
def test_cosines_are_near(kind, error):
  rng = np.random.default_rng(1)
  x = np.float32(rng.normal(size=(300, 131)))
  back = codes.decode(codes.encode(x, kind), 131)
  unit, coded = (v / np.linalg.norm(v, axis=1)[:, None] for v in (x, back))
  assert np.abs(unit @ unit.T - unit @ coded.T).max() < error


@pytest.mark.parametrize("kind", codes.KINDS)
def test_rescoring(kind, monkeypatch):
  """All candidates: exact. Few: those of the codes, in the exact order."""
  monkeypatch.setattr(search, "BLOCK", 97)
  rng = np.random.default_rng(3)
  x = np.float32(rng.normal(size=(701, 45)))
  x[400] = x[7]  # Equals stay in order.
  queries = x[[7, 20, 600]] + np.float32(rng.normal(size=(3, 45))) / 4
  coded = codes.encode(x, kind)
  exact = list(search.nearest(queries, x, top=5))
  found = list(search.rescored(queries, x, coded, top=5, candidates=701))
  for (rows, cosines), (known, right) in zip(found, exact, strict=True):
    assert rows.tolist() == known.tolist()
    np.testing.assert_allclose(cosines, right, atol=1e-6)
  few = list(search.rescored(queries, x, coded, top=5, candidates=9))
  back = codes.decode(coded, 45)
  for (rows, cosines), query in zip(few, queries, strict=True):
    near = back @ query / np.linalg.norm(back, axis=1)
    assert {*rows} <= {*np.argsort(-near, kind="stable")[:9]}
    unit = x[rows] / np.linalg.norm(x[rows], axis=1)[:, None]
    expected = unit @ query / np.linalg.norm(query)
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    assert (np.diff(cosines) <= 0).all()
  assert few[0][0][:2].tolist() == [7, 400]


@pytest.fixture(scope="module")
def made(workdir, tmp_path_factory):
  folder = tmp_path_factory.mktemp("codes")
  (folder / "texts.txt").write_text("\n".join(LINES))
  return folder, [
    f"--checkpoint={workdir}",
    f"--input={folder / 'texts.txt'}",
    "--unit=sentence",
  ]


def embed(made, name, *options):
  folder, common = made
  argv = ["embed", *common, f"--out={folder / name}", *options]
  assert main.main(argv) == 0
  return folder / name


@pytest.mark.parametrize("kind", codes.KINDS)
def test_the_verbs(made, kind, verb):
  path = embed(made, f"{kind}.npz", f"--codes={kind}")
  plain = embed(made, "plain.npz")
  stored = np.load(path)
  np.testing.assert_array_equal(stored["vectors"], np.load(plain)["vectors"])
  expected = codes.encode(stored["vectors"], kind)
  np.testing.assert_array_equal(stored["codes"], expected)
  mapped = codes.map_array(path, "vectors")
  np.testing.assert_array_equal(mapped, stored["vectors"])
  argv = ["vectors", "search", made[1][0], "--json", "--top_k=2", LINES[2]]
  answers = []
  for vectors in plain, path:
    for more in ([], ["--candidates=0"])[: 1 + (vectors == path)]:
      shown = verb(*argv, f"--vectors={vectors}", *more).out
      answers.append(json.loads(shown))
  # Sums are in another order where the vectors are mapped, or are a few.
  cosines = [[x.pop("cosine") for x in each["nearest"]] for each in answers]
  np.testing.assert_allclose(cosines[1:], [cosines[0]] * 2, rtol=1e-6)
  assert answers[0] == answers[1] == answers[2]
  assert answers[0]["nearest"][0]["text"] == LINES[2]


def test_damage_is_noticed(made, tmp_path):
  """Of the vectors, too, although they are not loaded."""
  path = embed(made, "d.npz", "--codes=binary")
  model = maskedlm.load(made[1][0].partition("=")[2])
  whole = path.read_bytes()
  with zipfile.ZipFile(path) as file:
    at = file.getinfo("vectors.npy").header_offset + 300
  broken = bytearray(whole)
  broken[at] ^= 64
  path.write_bytes(broken)
  with pytest.raises(ValueError, match="damaged or not written by"):
    model.search(["a"], path)
  for seed in range(6):
    path.write_bytes(whole)
    damage.flip(path, random.Random(seed))
    try:
      model.search(["a"], path)
    except ValueError as error:
      assert error.exit_code == 2
  with np.load(embed(made, "d.npz")) as file:
    arrays = dict(file)
  about = json.loads(str(arrays["about"])) | {"codes": "int8"}
  short = arrays["vectors"][:, 1:].astype(np.int8)
  np.savez(path, **{**arrays, "about": json.dumps(about)}, codes=short)
  with pytest.raises(ValueError, match="codes is int8"):
    model.search(["a"], path)
