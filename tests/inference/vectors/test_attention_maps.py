"""The attention weights of a text, with readable tokens."""

import jax
import numpy as np
import pytest

from helpers import finetune_runs, model_logits
from maskedlm.core.errors import ConfigError
from maskedlm.inference.vectors import attention_maps, vectors
from maskedlm.modeling import masked_lm


def test_weights_of_a_text(model):
  text = "The cat, roasted [MASK] ž the"
  made = attention_maps.attend(model, text)
  assert made.tokens[:4] == ("[CLS]", "The", "cat", ",")
  assert made.tokens[-4:] == ("[MASK]", "[UNK]", "the", "[SEP]")
  roasted = "".join(made.tokens[4:-4])  # Several tokens: r ##o ##a ...
  assert roasted.replace("##", "") == "roasted" and "##" in roasted
  length = len(made.tokens)
  assert made.weights.shape == (2, 3, length, length)
  np.testing.assert_allclose(made.weights.sum(-1), 1, atol=1e-5)
  # The weights are the softmax of the scores, which are of any sign.
  raised = np.exp(made.scores)
  np.testing.assert_allclose(
    made.weights, raised / raised.sum(-1, keepdims=True), atol=1e-5
  )
  assert made.scores.min() < 0 < made.scores.max()
  # Equal to those of the row without padding.
  special = model.tokenizer.special
  ids = model.tokenizer.encode(text, specials=True).ids
  batch = model_logits.one_row([special.cls, *ids, special.sep])
  scores = jax.jit(masked_lm.attention_scores, static_argnums=0)(
    model.cfg, model.params, batch
  )
  expected = np.asarray(jax.nn.softmax(scores))[:, 0]
  np.testing.assert_allclose(made.weights, expected, atol=1e-5)


def test_tokens_of_byte_level_bpe(tmp_path):
  folder = finetune_runs.make_encoder(
    tmp_path / "bpe", kind="bpe", vocab_size=300
  )
  model = vectors.open_text_encoder(folder)
  made = attention_maps.attend(model, "the zebra, é")
  assert made.tokens[1] == "the" and "," in made.tokens
  # Readable text, not the vocabulary's spelling (Ġ, Ã).
  shown = "".join(made.tokens[1:-1]).replace("##", "")
  assert shown.replace("␣", "").startswith("thezebra,")
  assert not {"Ġ", "Ã"} & set("".join(made.tokens))


def test_limit(model):
  assert len(attention_maps.attend(model, "the the the", limit=5).tokens) == 5
  with pytest.raises(ConfigError, match="expected at most 4"):
    attention_maps.attend(model, "the the the", limit=4)
