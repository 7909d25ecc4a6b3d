"""A reranker at work: in `vectors search`, `evaluate` and `mine`."""

import json

import numpy as np
import pytest

from helpers import untrained
from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.formats import beir
from maskedlm.inference import mining, reranking
from maskedlm.inference.vectors import ranking, search

PASSAGES = {
  "a": "the cat sat on the mat",
  "b": "the old man from paris",
  "c": "the red cat ran",
  "d": "a film with a bad end",
}
QUERIES = {"q": "where is the cat", "r": "who is old"}


@pytest.fixture
def encoder(workdir):
  return str(workdir)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
  folder = tmp_path_factory.mktemp("reranker") / "run"
  return str(untrained.save_tuned(folder, "reranking", {}, {}))


@pytest.fixture
def collection(tmp_path):
  found = beir.Collection(
    PASSAGES, QUERIES, {"q": {"a": 1, "c": 1}, "r": {"b": 1}}
  )
  beir.write_collection(tmp_path / "beir", found)
  return f"beir:{tmp_path / 'beir'}"


def score(model, query, name):
  return float(reranking.scores(model, [(query, PASSAGES[name])])[0])


def test_a_run_gets_the_scores_of_its_pairs(reranker, collection):
  model = reranking.open_reranker(reranker)
  found = beir.read_collection(collection)
  run = {"q": {"a": 0.1, "d": 0.9}, "r": {"b": 0.2}}
  made = reranking.rerank(model, run, found)
  assert {q: [*x] for q, x in made.items()} == {"q": ["a", "d"], "r": ["b"]}
  for q, own in made.items():
    for p, value in own.items():
      assert value == pytest.approx(score(model, QUERIES[q], p), abs=1e-5)


def test_bm25s_first_stage(collection):
  pytest.importorskip("bm25s")
  found = beir.read_collection(collection)

  def rank(depth):
    return ranking.rank(None, found, by_words=True, depth=depth)["BM25"]

  # "is" is nowhere, "the" in three passages, "cat" in two: c is shorter.
  assert [*rank(2)["q"]] == ["c", "a"] and [*rank(2)["r"]] == ["b"]
  assert [*rank(9)["q"]] == ["c", "a", "b"]


def test_evaluate_ranks_anew(reranker, encoder, collection, tmp_path, verb):
  pytest.importorskip("bm25s")
  model, out = reranking.open_reranker(reranker), tmp_path / "run.txt"
  argv = ["evaluate", "--data", collection, "--json", "--out", str(out)]

  def evaluate(*more):
    values = json.loads(verb(*argv, *more).out)
    lines = [x.split() for x in out.read_text().splitlines()]
    for query, _, name, _, value, _ in lines:
      wanted = score(model, QUERIES[query], name)
      assert float(value) == pytest.approx(wanted, abs=1e-5)
    return len(lines), values

  count, both = evaluate("--checkpoint", encoder, "--reranker", reranker)
  assert count == 8 and both["queries"] == 2
  # What was ranked first is measured beside it.
  alone = json.loads(verb(*argv[:4], "--checkpoint", encoder).out)
  assert both["rankings"]["vectors"] == alone["rankings"]["vectors"]
  assert {x: alone[x] for x in both if x in alone["rankings"]["vectors"]} == (
    alone["rankings"]["vectors"]
  )
  assert [*alone["rankings"]] == ["BM25", "vectors", "both"]
  assert [*both["rankings"]] == [*alone["rankings"], "reranked", "joined"]
  count, _ = evaluate("--checkpoint", reranker)
  assert count == 3 + 1  # Of BM25, what shares a word.
  shown = verb(*argv[:3], "--checkpoint", reranker).out
  head, names, *rows = shown.splitlines()
  assert head.endswith(": 2 queries, 4 passages")
  assert names.split() == ["BM25", "reranked", "joined"]
  assert {len(row.split()) for row in rows} == {4}
  both = "--checkpoint", reranker, "--reranker", reranker
  assert "is one; give one" in verb(*argv, *both, expect=2).err


def test_search_orders_hits_by_the_reranker(reranker, encoder, tmp_path, verb):
  (tmp_path / "t.txt").write_text("\n".join(PASSAGES.values()) + "\n")
  npz = tmp_path / "v.npz"
  argv = ["embed", "--checkpoint", encoder, "--unit", "sentence"]
  verb(*argv, "--input", tmp_path / "t.txt", "--out", npz)
  model, query = reranking.open_reranker(reranker), "where is the cat"
  own = {PASSAGES[p]: score(model, query, p) for p in PASSAGES}
  expected = sorted(own, key=lambda text: -own[text])[:3]
  argv = ["vectors", "search", "--checkpoint", encoder, "--vectors", npz]
  argv += ["--reranker", reranker, "--top_k", "3", query]
  hits = json.loads(verb(*argv, "--json").out)["nearest"]
  assert [hit["text"] for hit in hits] == expected
  np.testing.assert_allclose(
    [hit["score"] for hit in hits], [own[x] for x in expected], atol=1e-5
  )
  lines = verb(*argv).out.splitlines()[1:]
  assert [x.split("  ")[1] for x in lines] == [
    f"{own[x]:.3f}" for x in expected
  ]


def test_a_run_is_joined_with_what_it_was_before():
  run = {"q": {"a": 9.0, "b": 7.0, "c": 5.0}, "r": {"b": 1.0}, "s": {}}
  by_model = {"q": {"a": -3.0, "b": 3.0, "c": 0.0}, "r": {"b": 4.0}, "s": {}}
  made = reranking.joined(run, by_model)
  third = 1.5**0.5  # Both are [-1, 0, 1] / sqrt(2/3), in some order.
  np.testing.assert_allclose(
    [made["q"][x] for x in "abc"], [0, third, -third], atol=1e-9
  )
  assert made["r"] == {"b": 0} and made["s"] == {}


def test_a_reranker_teaches(reranker, collection):
  pytest.importorskip("bm25s")
  rows, _ = mining.mine(collection, use_bm25=True, teacher=reranker, margin=0)
  model = reranking.open_reranker(reranker)
  names = {text: name for name, text in PASSAGES.items()}
  for row in rows:
    texts = [row["passage"], *row["negatives"]]
    own = [score(model, row["query"], names[text]) for text in texts]
    np.testing.assert_allclose(row["scores"], own, atol=1e-5)
    assert max(own[1:]) <= own[0]


def test_another_model_is_no_reranker(encoder):
  with pytest.raises(ConfigError, match="is no reranker; expected a workdir"):
    reranking.open_reranker(encoder)
  assert reranking.open_if_reranker(encoder) is None


def test_hits_of_words_and_vectors_are_joined_with_the_reranker():
  own, third = np.array([-3.0, 3.0, 0.0]), 1.5**0.5
  places = [(f"t{i}", "file", i) for i in range(3)]
  words = [search.Scored(9.0 - 2 * i, 0.5, *x) for i, x in enumerate(places)]
  made = reranking.by_scores(words, own)
  assert [hit.text for hit in made] == ["t1", "t0", "t2"]
  np.testing.assert_allclose(
    [x.score for x in made], [third, 0, -third], atol=1e-9
  )
  cosines = [search.Hit(0.9 - i / 10, *x) for i, x in enumerate(places)]
  made = reranking.by_scores(cosines, own)
  assert [(hit.text, hit.score) for hit in made] == [
    ("t1", 3.0),
    ("t2", 0.0),
    ("t0", -3.0),
  ]
