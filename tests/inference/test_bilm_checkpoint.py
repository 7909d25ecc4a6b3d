"""What can be done with a checkpoint of two LSTMs, and what is refused."""

import jax
import numpy as np
import pytest

from helpers import model_logits, untrained, vector_encoder
from maskedlm.core.errors import InteropError
from maskedlm.inference import fill_mask
from maskedlm.inference.vectors import vectors
from maskedlm.interop.huggingface import exporter
from maskedlm.modeling import masked_lm

W = untrained.D // 2
encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))


@pytest.fixture
def path(bilm):
  return bilm.path


def test_transformers_has_no_such_model(path, tmp_path):
  with pytest.raises(InteropError, match=r"family='bilm'.*--to=onnx"):
    exporter.export_huggingface(path, tmp_path / "out", log=print)


def sides(bilm, text):
  """Returns the ids of a text and log-probabilities from left and right."""
  ids = bilm.tokenizer.encode(text, specials=True).ids
  special, params = bilm.tokenizer.special, bilm.opened.params
  batch = model_logits.one_row([special.cls, *ids, special.sep])
  hidden = encode(bilm.cfg, params, batch, None, False)[0]
  table = masked_lm.token_embedding(params["encoder"])[: bilm.cfg.vocab_size]
  bias = params["bilm_head"]["bias"][: bilm.cfg.vocab_size]
  # Token i stands at i + 1, between i and i + 2.
  halves = hidden[:-2, :W], hidden[2:, W:]
  return ids, [jax.nn.log_softmax(x @ table.T + bias) for x in halves]


def test_a_score_is_the_mean_of_both_directions(bilm):
  ids, (left, right) = sides(bilm, "the cat sat")
  (made,) = bilm.score(["the cat sat"])
  expected = [(left[i, k] + right[i, k]) / 2 for i, k in enumerate(ids)]
  np.testing.assert_allclose(made.log_probabilities, expected, atol=1e-5)
  mean = -np.mean(expected)
  assert made.perplexity == pytest.approx(np.exp(mean), rel=1e-5)


def test_a_long_text_is_scored_in_windows(bilm):
  long = "the cat sat on the house " * 20
  (made,) = bilm.score([long])
  length = untrained.POSITIONS
  assert len(made.ids) > length
  begin = bilm.tokenizer.decode(made.ids[: length - 2])
  _, (left, right) = sides(bilm, begin)
  expected = float(left[0, made.ids[0]] + right[0, made.ids[0]]) / 2
  assert made.log_probabilities[0] == pytest.approx(expected, abs=1e-4)


def test_words_are_proposed_by_the_geometric_mean_of_both(bilm):
  _, (left, right) = sides(bilm, "the [MASK] sat")
  shares = np.exp(np.float64(left[1] + right[1]) / 2)
  shares[[*bilm.tokenizer.special_ids]] = 0
  shares /= shares.sum()
  found = bilm.fill_mask("the [MASK] sat", top=4)
  best = np.argsort(-shares, kind="stable")[:4]
  assert [w for w, _ in found[0]] == [
    fill_mask.token_text(bilm.tokenizer, i) for i in best
  ]
  np.testing.assert_allclose([p for _, p in found[0]], shares[best], rtol=1e-4)


def test_cls_is_what_either_half_has_read(path):
  model = vectors.open_text_encoder(path)
  options = vectors.VectorOptions(
    unit="sentence", pool="cls", layers=(1, -1), combine="concat"
  )
  made = vectors.collect(vectors.embed(model, ["the cat sat"], options))
  x = vector_encoder.by_hand(model, model.tokenizer.encode("the cat sat").ids)
  expected = [(x[n, -1, :W], x[n, 0, W:]) for n in (1, -1)]
  np.testing.assert_allclose(made.values[0], np.ravel(expected), atol=1e-5)
