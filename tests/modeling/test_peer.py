"""The same weights in transformers' BERT give the same numbers."""

import jax
import numpy as np
import pytest

from helpers import encoder_reference, model_logits
from helpers.bert_peer import run_peer
from helpers.encoder_reference import B, P, V
from maskedlm.modeling import heads, losses, masked_lm
from maskedlm.modeling.encoder import Encoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def test_same_numbers_as_transformers():
  # No layer's vectors are dropped, although the model is trained with dropout.
  cfg = encoder_reference.config(dropout=0.3, attention_dropout=0.2)
  params, batch = (
    encoder_reference.make_params(cfg),
    encoder_reference.make_batch(),
  )
  real = batch["segment_ids"] > 0
  rng = np.random.default_rng(6)
  # Any real position of each row, and any labels.
  positions = rng.integers(0, real.sum(1, keepdims=True), (B, P))
  labels, nsp_labels = rng.integers(0, V, (B, P)), rng.integers(0, 2, B)

  theirs = run_peer(params, cfg, batch)

  @jax.jit
  def apply(params, batch):
    hidden = Encoder(cfg).apply(
      {"params": params["encoder"]},
      batch["input_ids"],
      batch["token_type_ids"],
      batch["segment_ids"],
      train=False,
    )
    pooled = heads.Pooler(cfg).apply({"params": params["pooler"]}, hidden)
    nsp = heads.NspHead(cfg).apply({"params": params["nsp_head"]}, pooled)
    layers = masked_lm.encode_layers(cfg, params, batch)
    return (
      hidden,
      layers,
      model_logits.mlm_logits(params, cfg, batch, positions),
      nsp,
    )

  hidden, layers, mlm, nsp = apply(params, batch)
  close = {"atol": 1e-4, "rtol": 1e-4}
  np.testing.assert_allclose(
    hidden[real], theirs.hidden_states[-1].numpy()[real], **close
  )
  for x, y in zip(layers, theirs.hidden_states, strict=True):
    np.testing.assert_allclose(x[real], y.numpy()[real], **close)
  at = np.arange(B)[:, None], positions
  expected_mlm = theirs.prediction_logits[at]
  np.testing.assert_allclose(mlm, expected_mlm.numpy(), **close)
  expected_nsp = theirs.seq_relationship_logits
  np.testing.assert_allclose(nsp, expected_nsp.numpy(), **close)
  # Label 1 is "random" for both: the losses are the same too.
  for ours, logits, targets in (
    (mlm, expected_mlm.reshape(-1, V), labels),
    (nsp, expected_nsp, nsp_labels),
  ):
    total, weight = losses.cross_entropy(
      ours, targets, weights=np.ones(targets.shape)
    )
    loss = torch.nn.functional.cross_entropy(
      logits, torch.tensor(targets.reshape(-1))
    )
    mean = total.sum() / weight.sum()
    np.testing.assert_allclose(mean, loss.item(), rtol=1e-4)
