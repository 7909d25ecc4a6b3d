"""Fine-tuning in which nothing can be learnt ends before its first step."""

import json

import jax
import pytest

from maskedlm.core.errors import DataError
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.training import sharding


def start(encoder, task, path, *, train=None, data=None, **options):
  """Makes the Task of a run that is trained and scored on a file."""
  config = configs.default(task)
  config.init_from = str(encoder)
  config.data.update(train=str(path), dev=str(path), batch_size=4)
  config.data.update({"length": 16, **(data or {})})
  config.train.update(train or {})
  config.task.update(options)
  config = configs.typed(config)
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  run.make_task(run.prepare_run(config), config, mesh)


QUERIES = {
  "a passage": [("the cat", "a dog"), ("the mat", "a dog")],
  "a query": [("the cat", "a dog"), ("the cat", "a mat")],
  "passages": [("the cat", "a dog"), ("the dog", "a cat")] * 4,
}


@pytest.mark.parametrize(
  ("name", "options"),
  [
    ("a passage", {}),
    ("a query", {}),
    ("passages", {"data": {"batch_size": 1}}),
  ],
)
def test_a_query_without_a_wrong_passage(encoder, file, name, options):
  rows = "".join(f"{q}\t{p}\n" for q, p in QUERIES[name])
  path = file(f"query\tpassage\n{rows}")
  with pytest.raises(DataError, match=r"nothing can be learnt.*batch_size"):
    start(encoder, "retrieval", path, **options)


def test_wrong_passages_of_a_row_or_a_batch_are_learnt_from(encoder, file):
  rows = "".join(f"{q}\t{p}\n" for q, p in QUERIES["passages"])
  path = file(f"query\tpassage\n{rows}")
  start(encoder, "retrieval", path)
  start(encoder, "retrieval", path, train={"accumulate": 4})
  path = file("query\tpassage\tnegative\nthe cat\ta dog\ta mat\n")
  start(encoder, "retrieval", path, data={"batch_size": 1})


def test_spans_that_are_all_too_wide(encoder, file):
  path = file("the\tO\ncat\tB-X\nsat\tI-X\n\nthe\tB-X\n\n", "f.conll")
  start(encoder, "spans", path, max_span_words=1)
  path = file("the\tO\ncat\tB-X\nsat\tI-X\n\n", "f.conll")
  start(encoder, "spans", path, max_span_words=2)
  with pytest.raises(DataError, match=r"1 of 1 span.*max_span_words=1"):
    start(encoder, "spans", path, max_span_words=1)


def test_answers_that_no_window_holds(encoder, file):
  text = "the cat sat on the mat and the dog ran to the house " * 2
  options = {"max_answer_length": 4, "stride": 4}

  def path(answer):
    answers = [{"text": answer, "answer_start": text.index(answer)}]
    asked = [{"id": "1", "question": "who ?", "answers": answers}]
    page = {"title": "", "paragraphs": [{"context": text, "qas": asked}]}
    return file(json.dumps({"data": [page]}), "f.json")

  start(encoder, "question_answering", path("cat"), **options)
  with pytest.raises(DataError, match=r"no window of data\.length=16 "):
    start(encoder, "question_answering", path(text.strip()), **options)
