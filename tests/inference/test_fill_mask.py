"""Which encoder and head of a checkpoint fill masks."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import model_logits
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.data.tokenizers import tokenizer
from maskedlm.inference import fill_mask, token_model
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import electra

V, D = 131, 24


def make_config():
  model = defaults.default().model
  model.update(
    num_layers=1, width=D, num_heads=3, mlp_width=40, max_positions=17
  )
  return EncoderConfig(vocab_size=V, **model)


def test_electra_fills_masks_with_its_generator():
  cfg = make_config()
  small = electra.generator_config(cfg, size=1 / 3, layers=1.0)
  params = jax.eval_shape(
    lambda key: electra.init(cfg, small, key), jax.random.key(0)
  )
  task = {
    "objective": "electra",
    "encoder": dataclasses.asdict(cfg),
    "generator": dataclasses.asdict(small),
  }
  filler, architecture = token_model.token_model(params, task, "here")
  assert architecture == small
  batch = {
    name: np.ones((1, 5), np.int32)
    for name in ("input_ids", "token_type_ids", "segment_ids")
  }
  logits = jax.eval_shape(
    lambda params: model_logits.mlm_logits(
      params, architecture, batch, np.array([[3, 1]])
    ),
    filler,
  )
  assert logits.shape == (1, 2, V)


def test_pieces_of_byte_level_bpe_are_shown_as_text():
  """The vocabulary spells ä, the bytes c3 and a4, as Ã¤."""
  made = tokenizer.train_tokenizer(
    ["Bär, Kär, Tär"] * 9, kind="bpe", vocab_size=270, lowercase=False
  )
  ids = range(made.vocab_size)
  shown = {made.tokens(i): fill_mask.token_text(made, i) for i in ids}
  assert (shown["Ã¤r"], shown[","], shown["ĠKÃ¤r"]) == ("är", ",", "Kär")
  assert [shown[x] for x in ("Ã", "Ġ", "Ċ", "Ā")] == ["Ã", "Ġ", "Ċ", "Ā"]


@pytest.mark.parametrize(
  ("words", "kept"),
  [
    ("a b [MASK] d e", "a b [MASK] d e"),  # 7 tokens fit.
    ("[MASK] b c d e f g", "[MASK] b c d e"),
    ("a b c d e f g [MASK]", "d e f g [MASK]"),
    ("a b c [MASK] e f [MASK] h i", "[MASK] e f [MASK] h"),
    ("[MASK] b c d e [MASK]", None),
  ],
)
def test_a_long_text_is_read_around_its_masks(capsys, words, kept):
  made = tokenizer.train_tokenizer(
    ["a b c d e f g h i"] * 9, kind="wordpiece", vocab_size=60, lowercase=False
  )

  def read():
    return fill_mask.mask_row(made, words, length=7, reads="both")

  if kept is None:
    with pytest.raises(ConfigError, match=r"has 8 tokens, .* takes 7: cut it"):
      read()
    return
  row = read()
  assert [made.tokens(int(x)) for x in row] == ["[CLS]", *kept.split(), "[SEP]"]
  shown = capsys.readouterr().err.splitlines()
  if kept == words:
    assert not shown
  else:
    (line,) = shown
    assert f"has {len(words.split()) + 2} tokens: the model read 7 " in line
