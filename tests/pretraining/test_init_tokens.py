"""Pretraining that starts with word vectors as token embeddings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import untrained
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.data.word_vectors.files import WordVectors
from maskedlm.pretraining.initial import init_tokens
from maskedlm.training.checkpoints import load


def test_rows_are_scaled_to_the_size_of_random_ones():
  """Root mean squares: of the table 2, of the vectors used 5."""
  table = jnp.array([[2.0, -2], [2, 2], [-2, 2]])
  values = np.float32([[9, 9], [7, 1], [1, 7]])
  made = init_tokens.replace_rows(table, {2: 1, 0: 2}, values)
  wanted = [[2 / 5, 14 / 5], [2, 2], [14 / 5, 2 / 5]]
  np.testing.assert_allclose(made, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_whole_words_are_matched(kind):
  """Neither parts of words nor special tokens are."""
  tokenizer = untrained.make_tokenizer(kind)
  spelt = [tokenizer.decode([i]) for i in range(tokenizer.vocab_size)]
  word = next(
    i
    for i, text in enumerate(spelt)
    if tokenizer.follows_space[i] and text.strip().isalpha() and len(text) > 2
  )
  name = spelt[word].strip()
  found = WordVectors(("zzqq", name, "[PAD]"), np.ones((3, 2), np.float32))
  assert init_tokens.match_words(tokenizer, found) == {word: 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  path = untrained.pretrained(tmp_path_factory.mktemp("run") / "run")
  return load.open_checkpoint(path)


def write(folder, model, *, width=None, word=None):
  path = folder / "vectors.txt"
  V, E = model.params["encoder"]["embeddings"]["token"]["embedding"].shape
  token = next(
    i
    for i in range(V)
    if model.tokenizer.follows_space[i] and model.tokenizer.tokens(i).isalpha()
  )
  numbers = " ".join(["1"] + ["0"] * ((width or E) - 1))
  path.write_text(f"{word or model.tokenizer.tokens(token)} {numbers}\n")
  return path, token


def test_only_the_rows_of_words_change(model, tmp_path):
  path, token = write(tmp_path, model)
  lines = []
  begin = init_tokens.initial_tokens(
    str(path), model.tokenizer, log=lines.append
  )
  made = begin(jax.device_put(model.params))
  old, new = (
    np.array(x["encoder"]["embeddings"]["token"]["embedding"])
    for x in (model.params, made)
  )
  changed = np.flatnonzero((old != new).any(axis=1))
  assert changed.tolist() == [token]
  assert new[token, 0] > 0 and not new[token, 1:].any()
  np.testing.assert_allclose(
    np.sqrt(np.mean(new[token] ** 2)), np.sqrt(np.mean(old**2)), rtol=1e-5
  )
  np.testing.assert_array_equal(
    made["mlm_head"]["bias"], model.params["mlm_head"]["bias"]
  )
  assert "1 of 90 tokens" in lines[-1]


def check(path, params, **options):
  config = defaults.default()
  config.init_tokens = str(path)
  config.update(options)
  init_tokens.check(config, params)


def test_what_does_not_fit_is_refused(model, tmp_path):
  path, _ = write(tmp_path, model)
  check(path, model.params)
  with pytest.raises(ConfigError, match="init_from"):
    check(path, model.params, init_from="runs/other")
  with pytest.raises(ConfigError, match="no embeddings"):
    check(path, {"encoder": {"embeddings": {}}})
  with pytest.raises(ConfigError, match="no such file"):
    check(tmp_path / "none", model.params)
  path, _ = write(tmp_path, model, width=3)
  with pytest.raises(ConfigError, match=r"3 numbers.*model\.width"):
    check(path, model.params)
  path, _ = write(tmp_path, model, word="zzqqx")
  begin = init_tokens.initial_tokens(str(path), model.tokenizer, log=print)
  with pytest.raises(ConfigError, match="'zzqqx'"):
    begin(model.params)
