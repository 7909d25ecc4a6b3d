"""Tests that finetune.py's peer starts, trains and reads as maskedlm does."""

import json

import finetune_rows
import finetune_table
import jax
import numpy as np
import pytest

from helpers import finetune_runs as runs
from maskedlm.data.labelled import columns
from maskedlm.data.labelled.formats import tags
from maskedlm.finetune import config as base
from maskedlm.finetune import run
from maskedlm.interop.huggingface import exporter, importer
from maskedlm.training import optimizer, sharding, step
from maskedlm.training.checkpoints import load

torch = pytest.importorskip("torch", reason="the extra `peer`")
transformers = pytest.importorskip("transformers", reason="the extra `peer`")
finetune_peer = pytest.importorskip("finetune_peer", reason="the extra `peer`")

MODERN = {
  "position": "rope",
  "norm_order": "pre",
  "skip_first_norm": True,
  "mlp": "gated",
  "biases": False,
  "type_vocab_size": 0,
}
DROPOUT = {"dropout": 0.25, "attention_dropout": 0.125}


@pytest.mark.parametrize("options", [{}, MODERN], ids=["bert", "modern"])
def test_both_start_from_the_same_vectors(tmp_path, options):
  encoder = runs.make_encoder(tmp_path / "encoder", **options)
  exporter.export_huggingface(
    encoder, tmp_path / "hf", part="encoder", log=print
  )
  finetune_rows.write_start(str(encoder), tmp_path / "start.npz", length=47)
  tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
  for model_class in (
    transformers.AutoModelForSequenceClassification,
    transformers.AutoModelForTokenClassification,
    transformers.AutoModelForQuestionAnswering,
  ):
    model = finetune_peer.load(tmp_path / "hf", model_class, 2, DROPOUT)
    start = tmp_path / "start.npz"
    assert finetune_peer.start_difference(model, tokenizer, start) < 1e-4
    rates = {x.p for x in model.modules() if type(x).__name__ == "Dropout"}
    assert max(rates) == 0.25  # Not pretraining's 0.
  parameter = next(model.base_model.parameters())
  parameter.data[:, :7] += 1.0
  with pytest.raises(AssertionError, match="not maskedlm"):
    finetune_peer.start_difference(model, tokenizer, start)


SENTENCES = [
  ("the cat sat on the mat", "O B-x I-x O O B-y"),
  ("a man from new york", "O B-y O B-y I-y"),
  ("the red book is on the table", "O O B-y O O O O"),
  ("she sold her house to a company in paris", "O O O O O O B-x O B-y"),
  ("where is the dog ?", "O O O B-y O"),
  ("a good film", "O O B-x"),
  ("the dog ran to the house , said she", "O B-y O O O B-x O O O"),
  ("it is on the old table in the room .", "O O O O B-x I-x O O B-y O"),
]


def test_same_weights_as_pytorch(tmp_path, on_one):
  """Checks that without dropout seven steps give the same weights.

  Both start from the same head. A batch has all sentences, so that their order
  makes no difference.
  """
  made = runs.make_encoder(tmp_path / "made", init_stddev=0.1, **MODERN)
  hf, encoder = tmp_path / "hf", tmp_path / "encoder"
  exporter.export_huggingface(made, hf, part="encoder", log=print)
  importer.import_model(hf, encoder, log=print)
  words = [(text.split(), found.split()) for text, found in SENTENCES]
  path = tmp_path / "all.conll"
  path.write_bytes(columns.format_columns(words).encode())
  config = base.default("tagging")
  config.init_from = str(encoder)
  config.task.decode = "words"
  config.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  config.data.update(train=str(path), dev=str(path), length=48, batch_size=8)
  # Adam's first steps are the gradient's sign, which is arbitrary where the
  # gradient is only rounding; a larger epsilon keeps such steps small.
  config.optimizer.update(learning_rate=3e-3, eps=1e-5)
  # 6.5 epochs of one batch are seven steps; only the last is scored and saved.
  config.train.update(epochs=6.5, evals_per_epoch=0.1)
  run.finetune(base.typed(config), tmp_path / "run")
  ours = load.open_best(tmp_path / "run")

  prepared = run.prepare_run(base.typed(config))
  task, filled = run.make_task(
    prepared, base.typed(config), sharding.make_mesh(config.mesh)
  )
  shapes = jax.eval_shape(task.init, jax.random.key(0))
  tx, _ = optimizer.make_optimizer(filled.optimizer, 7, shapes)
  head = step.make_init(task, tx, config.seed)().params["tagger"]
  job = json.loads(config.to_json_best_effort())
  tokenizer = transformers.AutoTokenizer.from_pretrained(hf)
  peer = finetune_peer.tagging(job, tokenizer)
  model = finetune_peer.load(hf, peer.model_class, 5, job["model"])
  labels = prepared.label_info["labels"]
  order = [labels.index(label) for label in sorted(labels)]  # The peer's order.

  def pairs(head, params):
    """Yields (a tensor of the peer, the array of maskedlm it must equal)."""
    yield model.classifier.weight, np.asarray(head["dense"]["kernel"]).T[order]
    transform = head["transform"]["dense"]["kernel"]
    yield model.head.dense.weight, np.asarray(transform).T
    if params:
      embedding = params["encoder"]["embeddings"]["token"]["embedding"]
      theirs = model.get_input_embeddings().weight
      yield theirs, np.asarray(embedding)[: len(theirs)]

  for tensor, array in pairs(head, None):
    tensor.data.copy_(torch.tensor(array))
  before = [tensor.detach().numpy().copy() for tensor, _ in pairs(head, {})]
  assert finetune_peer.train(model, peer, job) == 7
  params = ours.params
  after = [
    (tensor.detach().numpy(), array)
    for tensor, array in pairs(params["tagger"], params)
  ]
  for (theirs, mine), start in zip(after, before, strict=False):
    assert np.abs(theirs - start).max() > 3e-3  # It has learned.
    np.testing.assert_allclose(mine, theirs, atol=3e-5)
  np.testing.assert_allclose(*reversed(after[-1]), atol=3e-5)


def test_the_peer_reads_the_sentences_that_are_written(tmp_path):
  path = tmp_path / "x.conll"
  made = [(["a b", "\u2028c", "#"], ["O", "B-x", "O"]), (["d"], ["O"])]
  path.write_bytes(columns.format_columns(made).encode())
  assert finetune_peer.read_conll(str(path)) == made
  assert [list(s.words) for s in tags.read_file(str(path))] == [
    w for w, _ in made
  ]


def test_answers_of_a_window():
  # [CLS] q [SEP] Ada met Bob [SEP], with places in "Ada met Bob".
  places = [None, None, None, (0, 3), (4, 7), (8, 11), None]
  span = finetune_peer.answer_span
  assert span({"text": "met Bob", "answer_start": 4}, places) == (4, 5)
  assert span({"text": "da", "answer_start": 1}, places) == (3, 3)
  assert span({"text": "x", "answer_start": 12}, places) == (0, 0)
  start = np.float32([9, 9, 9, 3, 1, 0, 9, 9])  # The last is padding.
  end = np.float32([9, 9, 9, 1, 0, 2, 9, 9])
  found = list(finetune_peer.answers_of(start, end, places, "Ada met Bob"))
  assert max(found) == (5.0, "Ada met Bob")
  assert len(found) == 6  # No span ends before it begins.


def test_verdict_is_in_pooled_deviations():
  verdict = finetune_table.verdict
  assert verdict((50.0, 3.0), (53.5, 4.0)) == "within 1 sd"  # 5 / sqrt(2).
  assert verdict((50.0, 3.0), (53.6, 4.0)) == "worse"
  assert verdict((53.6, 3.0), (50.0, 4.0)) == "better"
  assert verdict(None, (50.0, 4.0)) == ""
