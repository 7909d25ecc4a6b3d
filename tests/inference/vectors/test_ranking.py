"""Collections to search: files, ranking, measures, and `evaluate`."""

import json
import sys

import numpy as np
import pytest

from maskedlm.cli import main
from maskedlm.core.errors import DataError
from maskedlm.data.labelled.formats import beir
from maskedlm.inference import bm25
from maskedlm.inference.vectors import ranking, vectors

PASSAGES = {
  "d1": ("", "the cat sat on the mat"),
  "d2": ("a film", "with a bad end"),
  "d3": ("", "where is the red book ?"),
  "q3": ("", "the old man from paris"),
}
QUERIES = {
  "q1": "the cat sat on the mat",
  "q2": "where is the red book ?",
  "q3": "the old man from paris",
  "q4": "nobody judged it",
}
QRELS = (
  "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td3\t1\nq3\td2\t1\n"
)


def write(folder, passages=PASSAGES, queries=QUERIES, qrels=QRELS):
  (folder / "qrels").mkdir(exist_ok=True)
  for name, lines in (
    (
      "corpus",
      [{"_id": i, "title": t, "text": x} for i, (t, x) in passages.items()],
    ),
    ("queries", [{"_id": i, "text": x} for i, x in queries.items()]),
  ):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{name}.jsonl").write_text(text)
  (folder / "qrels" / "test.tsv").write_text(qrels)
  return f"beir:{folder}"


def test_a_collection(tmp_path):
  found = beir.read_collection(write(tmp_path))
  assert found.passages["d2"] == "a film with a bad end"
  assert list(found.queries) == ["q1", "q2", "q3"]
  assert found.qrels["q1"] == {"d1": 2, "d2": 1}
  (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "dev.tsv")
  assert beir.read_collection(f"beir:{tmp_path}:dev") == found


def test_a_collection_is_written_as_it_is_read(tmp_path):
  found = beir.read_collection(write(tmp_path))
  beir.write_collection(tmp_path / "new", found, "dev")
  assert beir.read_collection(f"beir:{tmp_path / 'new'}:dev") == found
  with pytest.raises(DataError, match="new exists"):
    beir.write_collection(tmp_path / "new", found)


@pytest.mark.parametrize(
  ("qrels", "match"),
  [
    (QRELS + "q1\td9\t1\n", r"test\.tsv:6: 'd9'.*corpus\.jsonl"),
    (QRELS + "q1\td1\t1\n", r"test\.tsv:6: 'q1' and 'd1' come twice"),
    (QRELS + "q1\td3\tyes\n", r"test\.tsv:6: score is 'yes'.*whole number"),
    ("q1\td1\t1\nq2\td2\t1\n", "query-id"),
  ],
)
def test_qrels_that_are_refused(tmp_path, qrels, match):
  with pytest.raises(DataError, match=match):
    beir.read_collection(write(tmp_path, qrels=qrels))


def test_measures_by_hand():
  """Right: a (3), b (1), c (2, not found); ranked x, b, y, a; y ties with b."""
  scores = {"x": 0.9, "b": 0.5, "y": 0.5, "a": 0.1}
  found = ranking.ranking(scores, {"a": 3, "b": 1, "c": 2, "x": 0})
  assert found.gains.tolist() == [0, 0, 1, 3]  # Of equals, y is before b.
  assert found.ideal.tolist() == [3, 2, 1]
  dcg = 1 / np.log2(4) + 3 / np.log2(5)
  ideal = 3 + 2 / np.log2(3) + 1 / np.log2(4)
  assert ranking.ndcg(found, 10) == pytest.approx(dcg / ideal)
  assert ranking.ndcg(found, 3) == pytest.approx(0.5 / ideal)
  assert ranking.reciprocal_rank(found, 10) == 1 / 3
  assert ranking.reciprocal_rank(found, 2) == 0
  assert ranking.recall(found, 3) == 1 / 3
  assert ranking.average_precision(found) == pytest.approx((1 / 3 + 2 / 4) / 3)


def test_measures_equal_trec_eval():
  """Of 1,000 random queries, with ties and passages that nobody judged."""
  pytrec_eval = pytest.importorskip("pytrec_eval")
  rng = np.random.default_rng(3)
  names = [f"d{i}" for i in range(40)]
  qrels, run = {}, {}
  for q in range(1000):
    judged = rng.choice(names, rng.integers(1, 15), replace=False)
    qrels[f"q{q}"] = {n: int(rng.integers(0, 4)) for n in judged}
    qrels[f"q{q}"][judged[0]] = 1  # One is right.
    ranked = rng.choice(names, rng.integers(1, 30), replace=False)
    run[f"q{q}"] = {n: float(rng.integers(0, 9)) / 8 for n in ranked}
  theirs = pytrec_eval.RelevanceEvaluator(
    qrels, {"ndcg_cut.10", "recall.10,100", "map", "recip_rank"}
  ).evaluate(run)
  for query, expected in theirs.items():
    found = ranking.ranking(run[query], qrels[query])
    assert expected == pytest.approx(
      {
        "ndcg_cut_10": ranking.ndcg(found, 10),
        "recall_10": ranking.recall(found, 10),
        "recall_100": ranking.recall(found, 100),
        "map": ranking.average_precision(found),
        "recip_rank": ranking.reciprocal_rank(found, 10**6),
      }
    )
  collection = beir.Collection({}, {}, qrels)
  assert ranking.measure(run, collection)["map"] == pytest.approx(
    np.mean([x["map"] for x in theirs.values()])
  )
  # A query without a ranking counts.
  assert ranking.measure({}, collection)["map"] == 0


# Scores of BM25, cosines -> both, in standard deviations from their means:
# [2, 0, 0] is [2, -1, -1] / sqrt(2), [-1, 0, 1] is sqrt(1.5) times that, [1, 0]
# is [1, -1], and one passage is the mean.
A, B = 0.5**0.5, 1.5**0.5
ZEROS = [
  ([2.0, 0, 0], [-1.0, 0, 1], [2 * A - B, -A, B - A]),
  ([2.0], [0.3], [0.0]),
  ([1.0, 0], [0.0, 1], [0.0, 0]),
]


@pytest.mark.parametrize(("scores", "cosines", "fused"), ZEROS)
def test_0_is_a_rank_by_both_alone(scores, cosines, fused, monkeypatch):
  monkeypatch.setattr(bm25, "index", lambda texts: lambda q: np.array(scores))
  monkeypatch.setattr(ranking, "cosines", lambda *args: [np.array(cosines)])
  names = "abc"[: len(scores)]
  collection = beir.Collection(
    {name: f"passage {name}" for name in names}, {"q": "a query"}, {}
  )
  runs = ranking.rank(object(), collection, by_words=True)
  both = dict(zip(names, fused, strict=True))
  assert runs == {
    "BM25": {"q": {"a": scores[0]}},
    "vectors": {"q": {n: x for n, x in zip(names, cosines, strict=True) if x}},
    "both": {"q": pytest.approx(both, abs=1e-12)},
  }


def test_evaluate(workdir, tmp_path, capsys):
  source, out = write(tmp_path), tmp_path / "run.txt"
  argv = ["evaluate", f"--checkpoint={workdir}", f"--data={source}", "--json"]
  assert main.main([*argv, f"--out={out}"]) == 0
  values = json.loads(capsys.readouterr().out)
  assert (values["queries"], values["passages"]) == (3, 4)
  lines = [line.split() for line in out.read_text().splitlines()]
  # q1 and q2 are passages; q3 is one of its own name, which is left out.
  assert [x[2] for x in lines if x[3] == "1"][:2] == ["d1", "d3"]
  assert all(x[0] != x[2] for x in lines)
  assert len(lines) == 4 + 4 + 3
  second = [x[2] for x in lines if x[0] == "q1"].index("d2")
  mean = (1 + 2 / (second + 1)) / 2
  third = [x[2] for x in lines if x[0] == "q3"].index("d2")
  assert values["map"] == pytest.approx((mean + 1 + 1 / (third + 1)) / 3)
  assert values["recall@10"] == 1
  model, found = (
    vectors.open_text_encoder(workdir),
    beir.read_collection(source),
  )
  run = ranking.rank(model, found, depth=2)["vectors"]
  assert [len(hits) for hits in run.values()] == [2, 2, 2]
  for option in "--mask_rate=0.2", "--batch_size=7":
    assert main.main([*argv, option]) == 2
    assert option in capsys.readouterr().err


def test_evaluate_without_bm25s(workdir, tmp_path, capsys, monkeypatch):
  """What is missing is said; with it, there are two columns more."""
  argv = ["evaluate", f"--checkpoint={workdir}", f"--data={write(tmp_path)}"]
  monkeypatch.setitem(sys.modules, "bm25s", None)
  assert main.main(argv) == 0
  printed = capsys.readouterr()
  assert printed.out.splitlines()[1].split() == ["vectors"]
  assert "no column BM25: pip install 'maskedlm[bm25]'" in printed.err
