"""The nearest sentences: exact, in order, and as the file's were embedded."""

import json

import numpy as np
import pytest

import maskedlm
from helpers import vector_encoder
from maskedlm.cli import main
from maskedlm.inference import bm25
from maskedlm.inference.vectors import search, vectors

LINES = [
  "the cat sat on the mat",
  "where is the red book ?",
  "",
  "a good film with a bad end",
  "the old man from paris",
  "the cat sat on the mat",  # Again: equals stay in order.
  "she sold her house",
]


@pytest.fixture(scope="module")
def made(workdir, tmp_path_factory):
  """Returns (workdir, folder with texts and vectors of several kinds)."""
  folder = tmp_path_factory.mktemp("search")
  (folder / "texts.txt").write_text("\n".join(LINES))
  common = [
    f"--checkpoint={workdir}",
    f"--input={folder / 'texts.txt'}",
    "--unit=sentence",
  ]
  for name, options in {
    "v.npz": [],
    "first.npz": ["--layers=0,1", "--combine=concat", "--pool=max"],
    "w.npz": ["--unit=word"],
    "v.jsonl": [],
  }.items():
    argv = [*common, f"--out={folder / name}", *options]
    assert main.main(["embed", *argv]) == 0
  argv = [*common, f"--fit={folder / 'fitted.npz'}"]
  assert main.main(["embed", *argv]) == 0
  argv = [f"--standardise={folder / 'fitted.npz'}", f"--out={folder / 's.npz'}"]
  assert main.main(["embed", *common, *argv]) == 0
  return workdir, folder


@pytest.mark.parametrize("top", [3, 5_000])
def test_nearest_is_exact(top, monkeypatch):
  monkeypatch.setattr(search, "BLOCK", 97)
  rng = np.random.default_rng(5)
  x, queries = rng.normal(size=(701, 13)), rng.normal(size=(3, 13))
  x[20] = 0
  x[[400, 90, 91]] = x[7]
  found = list(search.nearest(np.float32(queries), np.float32(x), top=top))
  assert len(found) == 3
  for query, (rows, cosines) in zip(queries, found, strict=True):
    with np.errstate(invalid="ignore"):
      all_of_them = x @ query / np.linalg.norm(x, axis=1)
    all_of_them = np.nan_to_num(all_of_them) / np.linalg.norm(query)
    assert len(rows) == min(top, 701)
    np.testing.assert_allclose(cosines, all_of_them[rows], atol=1e-6)
    assert (np.diff(cosines) <= 0).all()
    best = np.sort(all_of_them)[::-1][:top]
    np.testing.assert_allclose(cosines, best, atol=1e-6)
    equal = [int(i) for i in rows if i in (7, 90, 91, 400)]
    assert equal == sorted(equal)


@pytest.mark.parametrize("name", ["v.npz", "first.npz", "s.npz"])
def test_a_sentence_of_the_file_is_nearest_to_itself(made, name):
  workdir, folder = made
  model = maskedlm.load(workdir)
  first, second = model.search([LINES[3], LINES[0]], folder / name, top=2)
  assert (first[0].text, first[0].line) == (LINES[3], 4)
  assert first[0].file == str(folder / "texts.txt")
  assert first[0].cosine == pytest.approx(1, abs=1e-5)
  assert first[1].cosine < 0.9999
  assert [hit.line for hit in second] == [1, 6]


def test_queries_are_cut_as_the_texts_were(made):
  """Windows of 8 tokens make other vectors than the whole text."""
  workdir, folder = made
  source, out = folder / "long.txt", folder / "long.npz"
  source.write_text(f"{LINES[3]} {LINES[4]} {LINES[6]}\n{LINES[0]}\n")
  argv = [f"--checkpoint={workdir}", f"--input={source}", "--unit=sentence"]
  assert main.main(["embed", *argv, "--length=8", f"--out={out}"]) == 0
  (hits,) = maskedlm.load(workdir).search(
    [source.read_text().splitlines()[0]], out
  )
  assert hits[0].line == 1 and hits[0].cosine == pytest.approx(1, abs=1e-5)


def test_the_verb(made, verb):
  workdir, folder = made
  argv = f"--checkpoint={workdir}", f"--vectors={folder / 'v.npz'}", LINES[6]
  answer = json.loads(verb("search", *argv, "--json", "--top_k=3").out)
  assert answer["query"] == LINES[6] and len(answer["nearest"]) == 3
  assert answer["nearest"][0]["text"] == LINES[6]
  assert f"1.000  {LINES[6]}" in verb("search", *argv).out


def test_words_are_joined(made, verb):
  pytest.importorskip("bm25s")
  workdir, folder = made
  model, query = vectors.open_text_encoder(workdir), "the red cat"
  index = search.open_index(folder / "v.npz", model)
  texts = search.all_texts(index)
  assert texts == [line for line in LINES if line]
  words = bm25.index(texts)
  (hits,) = search.search(model, index, [query], top=9, words=words)
  (nearest,) = search.search(model, index, [query], top=9)
  cosines = {(hit.text, hit.line): hit.cosine for hit in nearest}
  x = np.array([cosines[text, LINES.index(text) + 1] for text in texts])
  each = x, words(query)
  both = sum((x - np.mean(x)) / np.std(x) for x in each)
  order = np.argsort(-both, kind="stable")
  assert [hit.text for hit in hits] == [texts[i] for i in order]
  np.testing.assert_allclose([hit[0] for hit in hits], both[order], atol=1e-4)
  for hit in hits:
    assert hit.cosine == pytest.approx(cosines[hit.text, hit.line], abs=1e-6)
  argv = ["vectors", "search", f"--checkpoint={workdir}", "--bm25", query]
  argv.append(f"--vectors={folder / 'v.npz'}")
  shown = verb(*argv, "--top_k=1").out
  assert f"{hits[0].score:.3f}  {hits[0].text}" in shown
  refused = verb(*argv, "--candidates=9", expect=2).err
  assert "has no effect beside --bm25" in refused


def test_equals_are_in_order_where_the_list_ends():
  scores = np.array([0.5, 2, 0.5, 2, 0.5, 0.5, 2])
  for count, expected in ((1, [1]), (2, [1, 3]), (5, [1, 3, 6, 0, 2])):
    assert search.best(scores, count).tolist() == expected
  assert search.best(scores, 9).tolist() == [1, 3, 6, 0, 2, 4, 5]


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("w.npz", "of a word each"),
    ("fitted.npz", "damaged or not written by"),
    ("texts.txt", "expected the .npz"),
    ("absent.npz", "No such file"),
  ],
)
def test_wrong_files(made, name, message):
  workdir, folder = made
  model = maskedlm.load(workdir)
  with pytest.raises(ValueError, match=message) as caught:
    model.search(["a"], folder / name)
  assert caught.value.exit_code == 2


def test_another_encoder_is_refused(made, tmp_path):
  _, folder = made
  other = vector_encoder.make(tmp_path / "other", num_layers=1)
  with pytest.raises(ValueError, match="another encoder"):
    maskedlm.load(other).search(["a"], folder / "v.npz")
