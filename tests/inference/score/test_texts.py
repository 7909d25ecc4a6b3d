"""Scores of texts: equal to one call a token, by this model or transformers."""

from collections import Counter

import jax
import numpy as np
import pytest

from helpers import bert_peer, untrained
from helpers.model_logits import mlm_logits, one_row
from maskedlm.inference import fill_mask, token_model
from maskedlm.inference.score import rows, texts

TEXTS = [
  "the cat sat on the mat.",
  "the souvenirs weren't sold",
  "",
  "she ran",
  "a man saw the house and the cat sold the book " * 4,  # Over 48 tokens.
]


@pytest.fixture
def model(pretrained):
  return pretrained


def word_ends(tokenizer, words):
  """Returns the end of each token's word; a word keeps its space before it."""
  ends = []
  for word in words:
    ids = tokenizer.encode(word).ids
    # Byte-level BPE puts a space, Ġ, before a text.
    added = not word.startswith(" ") and tokenizer.tokens(int(ids[0])) == "Ġ"
    count = len(ids) - (added and bool(ends))
    ends += [len(ends) + count] * count
  return ends


def loop(model, ids, ends, log_softmax):
  """Returns log-probabilities [n] by one call a token."""
  special = model.tokenizer.special
  found = []
  for i, end in enumerate(ends):
    row = np.array([special.cls, *ids, special.sep])
    row[i + 1 : end + 1] = special.mask
    found.append(log_softmax(row)[i + 1][ids[i]])
  return found


def torch_rows(theirs):
  """Returns a function from ids [l] to log-probabilities [l, V]."""
  torch = pytest.importorskip("torch")

  def log_softmax(row):
    with torch.no_grad():
      out = theirs(input_ids=torch.tensor(np.int64(row))[None])
    logits = getattr(out, "prediction_logits", None)
    logits = out.logits if logits is None else logits
    return torch.log_softmax(logits[0], -1).numpy()

  return log_softmax


@pytest.mark.parametrize("architecture", ["Bert", "Roberta"])
def test_equals_a_loop_over_transformers(architecture, imported):
  theirs, model = imported(architecture)
  tokenizer = model.tokenizer
  log_softmax = torch_rows(theirs)
  text = "a JSON encoder, decoded."
  words = ["a", " JSON", " encoder", ",", " decoded", "."]
  ends, ids = word_ends(tokenizer, words), model.tokenize(text).ids
  for pll, stops in (("original", np.arange(len(ids)) + 1), ("l2r", ends)):
    made = model.score([text, "is a", text], pll=pll)
    expected = loop(model, ids, stops, log_softmax)
    for one in made[::2]:
      np.testing.assert_allclose(one.log_probabilities, expected, atol=1e-4)
      assert one.log_likelihood == pytest.approx(np.sum(expected), abs=1e-4)
      mean = np.mean(one.log_probabilities, dtype=np.float64)
      assert one.perplexity == pytest.approx(np.exp(-mean))
  assert max(np.array(ends) - np.arange(len(ids))) > 2  # A word of 3 tokens.


def test_a_causal_model_equals_transformers(causal):
  transformers = pytest.importorskip("transformers")
  torch = pytest.importorskip("torch")
  cfg, params = causal.cfg, causal.opened.params
  theirs = transformers.BertLMHeadModel(
    transformers.BertConfig(
      vocab_size=cfg.vocab_size,
      num_hidden_layers=cfg.num_layers,
      hidden_size=cfg.width,
      num_attention_heads=cfg.num_heads,
      intermediate_size=cfg.mlp_width,
      max_position_embeddings=cfg.max_positions,
      layer_norm_eps=cfg.norm_epsilon,
      is_decoder=True,
    )
  )
  state = bert_peer.encoder_state(params["encoder"], cfg, "bert")
  head, at = params["mlm_head"], "cls.predictions"
  transform = head["transform"]
  bert_peer.dense(
    state,
    f"{at}.transform.dense",
    transform["kernel"],
    transform["bias"],
    cfg.width,
  )
  bert_peer.norm(state, f"{at}.transform.LayerNorm", head["norm"])
  state[f"{at}.bias"] = head["bias"][: cfg.vocab_size]
  state = {k: torch.tensor(np.ascontiguousarray(v)) for k, v in state.items()}
  assert not theirs.load_state_dict(state, strict=False).unexpected_keys
  theirs.tie_weights()
  log_softmax = torch_rows(theirs.eval())
  for made in causal.score(TEXTS[:4]):
    row = [causal.tokenizer.special.cls, *made.ids]
    table = log_softmax(np.array(row))
    expected = [table[i][token] for i, token in enumerate(made.ids)]
    np.testing.assert_allclose(made.log_probabilities, expected, atol=1e-4)


def test_a_score_is_of_its_text_alone(model):
  """Whatever shares its batch, and however the rows are divided into chunks."""
  seen = Counter()
  scorer = token_model.make_token_model(
    model.opened, model.path, batch_tokens=150
  )
  made = list(texts.score(scorer, iter(TEXTS), seen=seen))
  assert [one.text for one in made] == TEXTS
  for text, one in zip(TEXTS[:-1], made, strict=False):
    (alone,) = model.score([text])
    np.testing.assert_allclose(
      one.log_probabilities, alone.log_probabilities, atol=2e-5
    )
  assert seen["scored"] == 5 and seen["long"] == 1
  assert seen["tokens"] == sum(len(one.ids) for one in made)
  total = sum(one.log_likelihood for one in made)
  assert seen["log_likelihood"] == pytest.approx(total)
  assert made[2].log_likelihood == 0 and np.isnan(made[2].perplexity)


def test_a_long_text_is_read_in_windows(model, causal, capsys):
  long = TEXTS[-1]
  ids = model.tokenize(long).ids
  n, length = len(ids), untrained.POSITIONS
  assert n > length
  (made,) = model.score([long])
  assert f"1 text of more than {length} tokens" in capsys.readouterr().err
  # The first token is predicted in the first window, the last in the last.
  inside = ids[: length - 2], ids[-(length - 2) :]
  special = model.tokenizer.special
  for window, at, place in ((inside[0], 0, 0), (inside[1], -1, -1)):
    row = [special.cls, *window, special.sep]
    position = 1 if at == 0 else len(row) - 2
    row[position] = special.mask
    logits = mlm_logits(
      model.opened.params, model.cfg, one_row(row), np.array([[position]])
    )
    expected = float(jax.nn.log_softmax(logits[0, 0])[ids[place]])
    assert made.log_probabilities[place] == pytest.approx(expected, abs=1e-4)
  capsys.readouterr()
  (left,) = causal.score([long])
  assert f"more than {length} tokens" in capsys.readouterr().err
  begin = causal.score([causal.tokenizer.decode(ids[: length - 1])])[0]
  np.testing.assert_allclose(
    left.log_probabilities[: length - 1], begin.log_probabilities, atol=1e-4
  )


def test_causal_windows_keep_half_a_row_of_context(causal):
  tokenizer = causal.tokenizer
  ids = np.arange(30, 53, dtype=np.int32)  # 23 tokens.
  made = list(rows.UNMASKED["left"](tokenizer, ids, 9))
  assert [places for _, places in made] == [
    *(slice(0, 8), slice(8, 12), slice(12, 16)),
    *(slice(16, 20), slice(20, 23)),
  ]
  for row, places in made:
    assert row.ids[0] == tokenizer.special.cls and len(row.ids) <= 8
    np.testing.assert_array_equal(row.labels, ids[places])
    seen = row.ids[1:]  # The label follows what precedes its position.
    for position, label in zip(row.positions, row.labels, strict=True):
      before = ids[list(ids).index(label) - 1] if label > 30 else None
      assert position == 0 or seen[position - 1] == before
  assert all(min(row.positions) >= 4 for row, _ in made[1:])


def test_from_the_right_each_token_is_predicted_from_those_after_it(from_right):
  # One call a token: row and head by hand.
  (made,) = from_right.score(["the cat sat"])
  special, params = from_right.tokenizer.special, from_right.opened.params
  params = {"encoder": params["encoder"], "mlm_head": params["mlm_head"]}
  row = [special.cls, *made.ids, special.sep]
  for i, token in enumerate(made.ids):
    # What precedes can't matter.
    batch = one_row([special.mask] * (i + 2) + row[i + 2 :])
    logits = mlm_logits(params, from_right.cfg, batch, np.array([[i + 2]]))
    expected = float(jax.nn.log_softmax(logits[0, 0])[token])
    assert made.log_probabilities[i] == pytest.approx(expected, abs=1e-4)


def probabilities(model, row, place):
  """Returns those [V] of the token at a place of a row [1, l], one call."""
  filler = token_model.make_token_model(model.opened, model.path)
  special_ids = (*model.tokenizer.special_ids,)
  # Of one length, so that it is compiled once.
  beyond = untrained.POSITIONS - row.shape[1]
  row, real = (np.pad(x, ((0, 0), (0, beyond))) for x in (row, row * 0 + 1))
  batch = {
    "input_ids": row,
    "token_type_ids": np.zeros_like(row),
    "segment_ids": real,
    "masked_positions": np.array([[place]]),
  }
  fill = fill_mask.make_probabilities(filler.cfg, special_ids)
  return np.asarray(fill(filler.params, batch))[0, 0]


def test_from_the_right_masks_are_filled_from_the_last(from_right, capsys):
  filled = from_right.fill_mask("the cat [MASK] [MASK] sat", top=1)
  assert "only what is to the right of [MASK]" in capsys.readouterr().err
  tokenizer = from_right.tokenizer
  row = np.array([tokenizer.encode("[MASK] [MASK] sat", specials=True).ids])
  special = tokenizer.special
  row = np.concatenate([[[special.cls]], row, [[special.sep]]], axis=1)
  for place in (2, 1):  # One call a mask.
    row[0, place] = probabilities(from_right, row, place).argmax()
  words = [fill_mask.token_text(tokenizer, int(i)) for i in row[0, 1:3]]
  assert [mask[0][0] for mask in filled] == words


# A causal model fills masks.


def next_of(causal, ids):
  """Returns the probabilities of the token after [CLS] ids, by `score`."""
  tokenizer = causal.tokenizer
  row = np.array([[tokenizer.special.cls, *ids, tokenizer.special.mask]])
  return probabilities(causal, row, row.shape[1] - 1)


def test_masks_at_the_end_are_the_greedy_continuation(causal):
  prompt = "the man sold her "
  found = causal.fill_mask(prompt + "[MASK][MASK][MASK]", top=4)
  ids = list(causal.tokenize(prompt).ids)
  for candidates in found:
    p = next_of(causal, ids)
    best = int(np.argmax(p))
    word = fill_mask.token_text(causal.tokenizer, best)
    assert candidates[0] == (word, pytest.approx(p[best], rel=1e-4))
    assert len(candidates) == 4
    # And the probability is the one that `score` has, before special tokens
    # are left out.
    ids.append(best)


def test_what_follows_a_mask_is_not_read(causal, capsys):
  end = causal.fill_mask("please turn your [MASK]")
  assert not capsys.readouterr().err
  middle = causal.fill_mask("please turn your [MASK] .")
  assert "causal" in capsys.readouterr().err
  assert [word for word, _ in end[0]] == [word for word, _ in middle[0]]


def test_of_a_long_text_the_left_of_the_mask_is_read(causal):
  text = "the cat sat on the mat " * 20 + "[MASK] and she ran"
  length = causal.cfg.max_positions
  row = fill_mask.mask_row(
    causal.tokenizer, text, length=length, reads=causal.cfg.reads
  )
  assert len(row) == untrained.POSITIONS
  assert row[-2] == causal.tokenizer.special.mask
