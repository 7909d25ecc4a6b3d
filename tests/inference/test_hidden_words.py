"""The probability of hidden words: by maskedlm score, and by hand."""

import jax
import numpy as np
import pytest

from helpers import model_logits, untrained, workdirs
from maskedlm.inference import fill_mask, token_model
from maskedlm.modeling import masked_lm
from maskedlm.modeling.heads import SboHead
from maskedlm.pretraining.objectives import spanbert


@pytest.fixture
def model(pretrained):
  return pretrained


def predict(model, text, top_k=3):
  filler = token_model.make_token_model(model.opened, model.path)
  return fill_mask.predict_masked(filler, text, top_k=top_k)


def test_all_tokens_of_masked_words_are_hidden(model):
  made = predict(model, "the *cat* sat, *roasted* !")
  text = "the cat sat, roasted !"
  offsets = model.tokenize(text).offsets
  words = [text[a:b] for a, b in offsets]
  hidden = [i for i, (a, _) in enumerate(offsets) if 4 <= a < 7 or 13 <= a < 20]
  assert len(hidden) > 2
  assert [x.position - 1 for x in made.masked] == hidden
  assert [x.token.removeprefix("##") for x in made.masked] == [
    words[i] for i in hidden
  ]
  assert [i - 1 for i, t in enumerate(made.tokens) if t == "[MASK]"] == hidden
  assert made.tokens[0] == "[CLS]" and made.tokens[-1] == "[SEP]"
  assert made.loss == pytest.approx(np.mean([x.loss for x in made.masked]))


def test_a_single_mask_equals_score(model):
  (cat,) = predict(model, "the *cat* sat, roasted !").masked
  (score,) = model.score(["the cat sat, roasted !"])
  assert -cat.loss == pytest.approx(score.log_probabilities[1], abs=1e-4)
  assert cat.probability == pytest.approx(np.exp(-cat.loss))
  shares = [p for _, p in cat.best]
  assert len(shares) == 3 and shares == sorted(shares, reverse=True)


def test_a_word_in_the_place_of_another(model):
  made = predict(model, r"a \* *the|a* dog *cat|cat*")
  the, cat = made.masked
  assert (the.token, the.position, made.tokens[3]) == ("the", 3, "a")
  assert (cat.token, made.tokens[cat.position]) == ("cat", "cat")
  # By hand: the head's softmax of the text as it is read.
  special = model.tokenizer.special
  ids = model.tokenize("a * a dog cat").ids
  batch = model_logits.one_row([special.cls, *ids, special.sep])
  parts = {k: model.opened.params[k] for k in ("encoder", "mlm_head")}
  at = np.array([[3]])
  logits = model_logits.mlm_logits(parts, model.cfg, batch, at)
  p = np.exp(np.float64(logits[0, 0]))
  (label,) = model.tokenize("the").ids
  assert the.probability == pytest.approx(p[label] / p.sum(), rel=1e-4)


def test_a_span_is_predicted_from_its_boundary_too(tmp_path):
  """L_SBO of each token of "cat sat on" from "the" and "the", by the head."""
  tokenizer = untrained.make_tokenizer()
  cfg = workdirs.config(
    tokenizer, max_positions=untrained.POSITIONS, **untrained.SIZES
  )
  sbo = SboHead(cfg, 5, 7)
  shapes = jax.eval_shape(
    lambda key: spanbert.init(cfg, sbo, key), jax.random.key(0)
  )
  params = workdirs.clear_unused(workdirs.randomise(shapes, 1), cfg)
  path = workdirs.save(
    tmp_path / "run", params, cfg, tokenizer, objective="spanbert"
  )
  model = fill_mask.load_mask_filler(path)
  made = fill_mask.predict_masked(model, "the *cat sat on* the house", top_k=1)
  n = len(made.masked)
  assert [x.position for x in made.masked] == [*range(2, n + 2)] and n < 6
  ids = tokenizer.encode("the cat sat on the house").ids
  row = [tokenizer.special.cls, *ids, tokenizer.special.sep]
  labels = row[2 : n + 2]
  row[2 : n + 2] = [tokenizer.special.mask] * n
  batch = model_logits.one_row(row)
  encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
  hidden = encode(cfg, params, batch, None, False)
  table = masked_lm.token_embedding(params["encoder"])
  ends = [np.repeat(hidden[:, i : i + 1], n, 1) for i in (1, n + 2)]
  places = np.arange(n)[None]
  logits = jax.jit(sbo.apply)(
    {"params": params["sbo_head"]}, *ends, places, table
  )
  expected = -jax.nn.log_softmax(logits[0, :, : cfg.vocab_size])
  np.testing.assert_allclose(
    [x.sbo_loss for x in made.masked],
    expected[np.arange(n), labels],
    rtol=1e-4,
  )
  shown = fill_mask.format_masked(made)[0]
  total = made.masked[0].loss + made.masked[0].sbo_loss
  assert f"= {total:.3f}" in shown
  # Beside [CLS] there is no such loss, unless the model was trained with it.
  (at_edge,) = fill_mask.predict_masked(model, "*the* cat", top_k=1).masked
  assert at_edge.sbo_loss is None
  path = workdirs.save(
    tmp_path / "edges",
    params,
    cfg,
    tokenizer,
    objective="spanbert",
    sbo_at_edges=True,
  )
  model = fill_mask.load_mask_filler(path)
  (at_edge,) = fill_mask.predict_masked(model, "*the* cat", top_k=1).masked
  assert at_edge.sbo_loss > 0


def test_the_picture(run, tmp_path, verb):
  command = ["plot", "masks", f"--checkpoint={run}", f"--out={tmp_path}/a.png"]
  text = "The *$cat* sat on *the|a* mat and a *dog* ran *on* it ."
  shown = verb(*command, "--top_k=2", text).out
  assert shown.startswith(f"{tmp_path}/a.png:\n") and "mean loss" in shown
  assert "  the  " in shown and (tmp_path / "a.png").stat().st_size > 9_000
