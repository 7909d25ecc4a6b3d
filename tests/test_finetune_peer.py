"""benchmarks/finetune.py: its peer starts where ours does, and reads alike."""

import finetune_rows
import finetune_table
import numpy as np
import pytest
import runs

from maskedlm.finetune import conll
from maskedlm.interop import hf_export

pytest.importorskip("torch", reason="wants the extra `peer`")
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
  hf_export.export(encoder, tmp_path / "hf", part="encoder", log=print)
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
    assert max(rates) == 0.25  # Not the 0 of pretraining.
  parameter = next(model.base_model.parameters())
  parameter.data[:, :7] += 1.0
  with pytest.raises(AssertionError, match="not ours"):
    finetune_peer.start_difference(model, tokenizer, start)


def test_the_peer_reads_the_sentences_that_are_written(tmp_path):
  path = tmp_path / "x.conll"
  made = [(["a b", "\u2028c", "#"], ["O", "B-x", "O"]), (["d"], ["O"])]
  path.write_bytes(conll.write_columns(made).encode())
  assert finetune_peer.read_conll(str(path)) == made
  assert [list(s.words) for s in conll.read(path)] == [w for w, _ in made]


def test_answers_of_a_window():
  # [CLS] q [SEP] Ada met Bob [SEP], of "Ada met Bob".
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
