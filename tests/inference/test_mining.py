"""Mining: what is ranked, what is dropped and why, and what is written."""

import importlib.util
import json

import numpy as np
import pytest

import maskedlm
from maskedlm.core.errors import ConfigError, DataError
from maskedlm.data.labelled.formats import beir, passages
from maskedlm.inference import bm25, mining

INF = float("inf")
ROWS = [
  ("where is the cat", "the cat sat on the mat"),
  ("where is the cat", "a cat is in paris"),
  ("who is old", "the old man from paris"),
  ("", "The  Cat sat on the mat"),  # A copy.
  ("", "who is old"),  # The query itself.
  ("", "where is the red book"),
  ("", "a film with a bad end"),
  ("", "the red cat ran"),
]


@pytest.fixture
def data(tmp_path):
  lines = [json.dumps({"query": q, "passage": p}) + "\n" for q, p in ROWS]
  (tmp_path / "train.jsonl").write_text("".join(lines))
  return str(tmp_path / "train.jsonl")


@pytest.fixture
def encoder(workdir):
  return str(workdir)


def test_a_source(data):
  found = mining.read_source(data)
  assert found.passages == [ROWS[i][1] for i in (0, 1, 2, 4, 5, 6, 7)]
  assert found.queries == ["where is the cat", "who is old"]
  assert found.right == [[0, 1], [2]]
  assert found.left_out == [{0, 1}, {2, 3}]
  assert found.copies == 1


def test_a_source_in_beirs_files(tmp_path):
  collection = beir.Collection(
    {"a": "cats sleep", "b": "dogs", "q": "do they?", "c": " "},
    {"q": "what do cats do", "r": "dogs?"},
    {"q": {"a": 2, "b": 0}, "r": {"b": 1}},
  )
  beir.write_collection(tmp_path / "beir", collection, "train")
  found = mining.read_source(f"beir:{tmp_path / 'beir'}:train")
  assert found.passages == ["cats sleep", "dogs", "do they?"]
  assert found.right == [[0], [1]]
  assert found.left_out == [{0, 2}, {1}]  # The passage of the query's id.


def test_right_passages_of_all_copies_of_a_query(tmp_path):
  """Copies but for spaces and capitals, as for passages; or other ids."""
  path = tmp_path / "x.jsonl"
  rows = [("Who is old", "a"), ("who  is old", "b"), ("Where", "c")]
  lines = [json.dumps({"query": q, "passage": p}) for q, p in rows]
  path.write_text("\n".join(lines))
  found = mining.read_source(str(path))
  assert found.right == [[0], [1], [2]]
  assert found.left_out == [{0, 1}, {0, 1}, {2}]


def test_columns_of_other_names(tmp_path, verb):
  path = tmp_path / "x.csv"
  path.write_text("ask,reply,score\nred cat,a red cat,0.5\nmat,a cat,0.7\n")
  argv = ["mine", f"--data={path}", "--bm25", f"--out={tmp_path / 'o.jsonl'}"]
  verb(*argv, expect=2)
  names = {"query": "ask", "passage": "reply", "label": "none"}
  argv += [f"--config.task.{n}={x}" for n, x in names.items()]
  if importlib.util.find_spec("bm25s"):
    verb(*argv)
    (row,) = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert (row["passage"], row["negatives"]) == ("a red cat", ["a cat"])
  for more, message in (
    ("--config.task.pool=cls", "--config.task.pool: only options that say"),
    ("--config.data.length=9", "expected --config.task.NAME=VALUE"),
  ):
    assert message in verb(*argv, more, expect=2).err
  with pytest.raises(ConfigError, match="query=ask has no effect on beir:x"):
    mining.mine("beir:x", "none", overrides=["--config.task.query=ask"])
  path.write_text("query,passage\n,a red cat\n")
  with pytest.raises(DataError, match=r"x\.csv: no row has a query"):
    mining.mine(str(path), "none")


def test_a_window_by_hand():
  scores = np.array([0.1, -0.9, 0.8, 0.8, -0.2, 0.5])

  def window(*ranks, floor=-INF, left_out=()):
    return mining.window(scores, floor, frozenset(left_out), ranks)

  assert window(1, 6) == [2, 3, 5, 0, 4, 1]  # Equals as they come.
  assert window(2, 3) == [3, 5]
  assert window(2, 3, left_out=(2, 5)) == [0, 4]
  assert window(1, 9, floor=0.1) == [2, 3, 5]
  assert window(7, 9) == []


def by_hand(data, encoder):
  """Returns the cosines of all queries and passages, by `embed` itself."""
  source = mining.read_source(data)
  model = maskedlm.load(encoder)
  q, p = (model.embed(texts) for texts in (source.queries, source.passages))
  q, p = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, p))
  return source, q @ p.T


@pytest.mark.parametrize("margin", [None, 0.01])
def test_negatives_are_below_the_right_passage(data, encoder, margin):
  source, cosines = by_hand(data, encoder)
  rows, counts = mining.mine(data, encoder, negatives=9, margin=margin)
  share = 0.05 if margin is None else margin
  expected, near = {}, 0
  for i, query in enumerate(source.queries):
    order = [j for j in np.argsort(-cosines[i]) if j not in source.left_out[i]]
    for right in source.right[i]:
      s = cosines[i, right]
      kept = [j for j in order if cosines[i, j] <= s - abs(s) * share]
      near += len(order) - len(kept)
      if kept:
        key = query, source.passages[right]
        expected[key] = [source.passages[j] for j in kept]
  found = {(x["query"], x["passage"]): x["negatives"] for x in rows}
  assert found == expected
  assert counts["too_near"] == near
  assert counts["without"] == 3 - len(expected)
  for row in rows:
    i = source.queries.index(row["query"])
    texts = [row["passage"], *row["negatives"]]
    own = [cosines[i, source.passages.index(text)] for text in texts]
    np.testing.assert_allclose(row["scores"], own, atol=2e-6)


def test_the_threshold_holds_for_negative_scores(data, monkeypatch):
  """-0.4 - 0.4 * 0.5 = -0.6; by a product, -0.2, nearer ones would stay."""
  scores = np.array([-0.4, -0.9, 0.9, 0, -0.59, -0.61, -0.1], np.float32)
  monkeypatch.setattr(mining, "cosines", lambda *args: iter([scores, scores]))
  rows, counts = mining.mine(data, "x", margin=0.5, negatives=2)
  assert [row["scores"] for row in rows] == [
    *([-0.4, -0.61], [0.9, -0.1, -0.4])  # Of -0.9 - 0.45, none.
  ]
  assert counts == {
    "queries": 2,
    "passages": 7,
    "right": 4,
    "copies": 1,
    "rows": 2,
    "negatives": 3,
    "too_near": 4 + 5,
    "fewer": 1,
    "without": 1,
  }


def test_bm25_ranks_what_shares_a_word(data):
  pytest.importorskip("bm25s")
  rows, counts = mining.mine(data, use_bm25=True)
  source = mining.read_source(data)
  scores = bm25.index(source.passages)(source.queries[0])
  order = [j for j in np.argsort(-scores, kind="stable") if scores[j] > 0]
  expected = [source.passages[j] for j in order if j not in (0, 1)][:4]
  assert [row["negatives"] for row in rows[:2]] == [expected, expected]
  assert all("film" not in text for row in rows for text in row["negatives"])
  assert counts["too_near"] == 0  # No margin by BM25's scores.


def test_two_rankings_are_joined(data, monkeypatch):
  """Of passages that share no word, BM25 has the mean's place, not none."""
  pytest.importorskip("bm25s")
  scores = np.array([0.5, 0.9, 0.4, 0.7, 0.48, 0.1, 0.6], np.float32)
  monkeypatch.setattr(mining, "cosines", lambda *args: iter([scores, scores]))
  rows, _ = mining.mine(data, "x", use_bm25=True, negatives=9, margin=0)
  source = mining.read_source(data)
  words = bm25.index(source.passages)(source.queries[0])
  both = sum((x - np.mean(x)) / np.std(x) for x in (scores, words))
  order = [j for j in np.argsort(-both) if j not in (0, 1) and scores[j] <= 0.9]
  assert rows[1]["passage"] == source.passages[1]
  assert rows[1]["negatives"] == [source.passages[j] for j in order]
  assert len(order) == 5


def test_a_teacher_decides_and_is_written(data, monkeypatch):
  pytest.importorskip("bm25s")
  scores = np.array([0.5, 0.9, 0.4, 0.7, 0.48, 0.1, 0.6], np.float32)
  monkeypatch.setattr(mining, "cosines", lambda *args: iter([scores, scores]))
  monkeypatch.setattr(mining.reranking, "open_if_reranker", lambda path: None)
  rows, counts = mining.mine(data, use_bm25=True, teacher="x", negatives=9)
  # Each has a word of "where is the cat", which four others have.
  assert [row["scores"][0] for row in rows] == [0.5, 0.9]
  assert [sorted(row["scores"][1:]) for row in rows] == [
    [0.4],  # 0.48 and 0.6 are above 0.475.
    [0.4, 0.48, 0.6, 0.7],
  ]
  # "who is old" has a word of the second and the sixth: 0.9 and 0.48.
  assert (counts["too_near"], counts["without"]) == (3 + 2, 1)


def test_the_verb_writes_what_retrieval_reads(data, encoder, tmp_path, verb):
  out = tmp_path / "mined.jsonl"
  argv = ["mine", "--data", data, "--checkpoint", encoder, "--out", out]
  argv += ["--margin", "0", "--ranks", "1:9"]
  counts = json.loads(verb(*argv, "--json").out)
  rows = [json.loads(line) for line in out.read_text().splitlines()]
  assert counts["rows"] == len(rows) > 0
  assert f": {len(rows)} row" in verb(*argv).out
  examples = passages.read_examples(str(out), passages.Columns(label="none"))
  assert [(x.query, *x.passages) for x in examples] == [
    (row["query"], row["passage"], *row["negatives"]) for row in rows
  ]


def test_wrong_ways_to_mine(data, tmp_path, verb):
  out = ["--out", tmp_path / "x.jsonl"]
  for argv, message in (
    ([], "give --checkpoint, --bm25 or both: they rank."),
    (["--bm25", "--ranks", "9:5"], "ranks=9:5: expected FIRST:LAST"),
    (["--bm25", "--ranks", "40:50"], "no query has a negative at the ranks 40"),
  ):
    error = verb("mine", "--data", data, *argv, *out, expect=2).err
    assert message in error.strip().splitlines()[-1], error
    assert not (tmp_path / "x.jsonl").exists()
  with pytest.raises(ConfigError, match="they rank"):
    mining.mine(data)
  (tmp_path / "alone.jsonl").write_text('{"query": "a", "passage": "b"}\n')
  with pytest.raises(DataError, match="no query has a negative"):
    mining.mine(str(tmp_path / "alone.jsonl"), use_bm25=True)
