"""mteb evaluates a workdir: prompts, vectors, and a task made here."""

import sys
import types

import numpy as np
import pytest

from helpers import vector_encoder
from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.formats import beir
from maskedlm.inference.vectors import ranking, vectors
from maskedlm.interop import mteb_model

PASSAGES = {
  "d1": "the cat sat on the mat",
  "d2": "a film with a bad end",
  "d3": "where is the red book ?",
  "d4": "the old man from paris",
}
QUERIES = {"q1": "the cat on a mat", "q2": "a red book", "q3": "she sold it"}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 1, "d2": 1}, "q3": {"d4": 1}}
PROMPTS = {"query": "the ", "document": "a ", "STS": "it is ", "Own": "where "}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  return vector_encoder.make(tmp_path_factory.mktemp("mteb") / "run")


def with_prompts(model):
  own = model.encoder.sentences._replace(prompts=PROMPTS)
  return mteb_model.MtebModel(model.encoder._replace(sentences=own), "run")


def test_without_mteb_the_extra_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, "mteb", None)
  with pytest.raises(ConfigError, match=r"pip install 'maskedlm\[mteb\]'"):
    mteb_model.open_model("runs/x")


@pytest.mark.parametrize(
  ("task", "kind", "side", "prompt"),
  [
    ("Other", "Retrieval", "query", "the "),
    ("Other", "Retrieval", "document", "a "),
    ("Own", "STS", "query", "where "),
  ],
)
def test_prompts(workdir, task, kind, side, prompt):
  pytest.importorskip("mteb")
  from mteb.types import PromptType

  model = with_prompts(mteb_model.open_model(workdir))
  texts = [*PASSAGES.values()]
  made = model.encode(
    [{"text": texts[:3]}, {"text": texts[3:]}],
    task_metadata=types.SimpleNamespace(name=task, type=kind),
    hf_split="test",
    hf_subset="default",
    prompt_type=PromptType(side) if side else None,
    batch_size=2,
  )
  options = vectors.VectorOptions(unit="sentence")
  lines = [prompt + text for text in texts]
  expected = vectors.collect(vectors.embed(model.encoder, lines, options))
  np.testing.assert_allclose(made, expected.values, atol=1e-5)


def test_a_local_task_scores_as_our_ranking_does(workdir):
  mteb = pytest.importorskip("mteb")
  import datasets
  from mteb.abstasks.retrieval import AbsTaskRetrieval
  from mteb.models.models_protocols import EncoderProtocol

  class Own(AbsTaskRetrieval):
    metadata = mteb.TaskMetadata(
      name="Own",
      description="Made here.",
      dataset={"path": "none/here", "revision": "1"},
      type="Retrieval",
      category="t2t",
      eval_splits=["test"],
      eval_langs=["eng-Latn"],
      main_score="ndcg_at_10",
    )

    def load_data(self, **kwargs):
      def rows(texts):
        found = [{"id": i, "text": x, "title": ""} for i, x in texts.items()]
        return datasets.Dataset.from_list(found)

      self.dataset = {
        "default": {
          "test": {
            "corpus": rows(PASSAGES),
            "queries": rows(QUERIES),
            "relevant_docs": QRELS,
            "top_ranked": None,
          }
        }
      }
      self.data_loaded = True

  model = mteb_model.open_model(workdir)
  assert isinstance(model, EncoderProtocol)
  found = mteb.evaluate(model, [Own()], cache=None)
  (scores,) = found.task_results[0].scores["test"]
  collection = beir.Collection(PASSAGES, QUERIES, QRELS)
  own = ranking.measure(
    ranking.rank(model.encoder, collection)["vectors"], collection
  )
  for name, theirs in (
    ("ndcg@10", "ndcg_at_10"),
    ("mrr@10", "mrr_at_10"),
    ("recall@10", "recall_at_10"),
  ):
    assert scores[theirs] == pytest.approx(own[name], abs=1e-5)
  assert found.model_name == "maskedlm/run"
  # Results are cached by the revision: other vectors, another one.
  short = mteb_model.open_model(workdir, length=8)
  revisions = {x.mteb_model_meta.revision for x in (model, short)}
  assert len(revisions) == 2
  x = np.float32([[3, 4], [0, 2]])
  np.testing.assert_allclose(
    model.similarity(x, x), [[1, 0.8], [0.8, 1]], atol=1e-6
  )
  np.testing.assert_allclose(
    model.similarity_pairwise(x, x[::-1].copy()), [0.8, 0.8], atol=1e-6
  )
