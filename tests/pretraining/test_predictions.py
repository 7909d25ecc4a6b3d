"""A run with nothing to predict ends before its first step."""

import numpy as np
import pytest

from helpers import splits, stub_objective
from helpers.stub_objective import UNK, V
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.pretraining import objectives, predictions

NAMES = ["mlm_nsp", "spanbert", "causal"]


def make_corpus(tmp_path, make_ids):
  """Returns a corpus of 30 documents; 6 are held out. Ids from 100 begin none.

  make_ids is (rng, size) -> ids.
  """
  rng = np.random.default_rng(4)
  documents = [
    [make_ids(rng, rng.integers(5, 30)).tolist() for _ in range(3)]
    for _ in range(30)
  ]
  corpus = stub_objective.make_corpus()
  made = splits.make_corpus(tmp_path, documents[6:], documents[:6])
  vars(corpus).update({**vars(made), "tokenizer": corpus.tokenizer})
  corpus.tokenizer.tokens = str
  ids = [token for doc in documents[6:] for text in doc for token in text]
  corpus.token_counts = np.bincount(ids, minlength=V)
  return corpus


def unknown(rng, size):
  return np.full(size, UNK)


def rarely_known(rng, size):
  return np.where(rng.random(size) < 0.01, rng.integers(5, V, size), UNK)


def words(rng, size):
  return rng.integers(5, V, size)


def no_starts(rng, size):
  return rng.integers(100, V, 50 * size)


def check(corpus, name, **options):
  """Returns the lines that check_rows logs."""
  config = stub_objective.make_config(name)
  config.objective.update(options)
  config.train.eval_rows = 16
  task, lines = objectives.make_task(config, corpus), []
  predictions.check_rows(
    config.objective, task, corpus, seed=config.seed, log=lines.append
  )
  return lines


@pytest.mark.parametrize("name", NAMES)
def test_text_without_a_known_token_is_refused(tmp_path, name):
  corpus = make_corpus(tmp_path, unknown)
  with pytest.raises(CorpusError, match=r"special ones.*tokenizer.path"):
    predictions.check_corpus(corpus)
  random = {} if name == "causal" else {"random_tokens": "uniform"}
  with pytest.raises(ConfigError, match=r"^train: 0 of [\d,]+ tokens"):
    check(corpus, name, **random)


@pytest.mark.parametrize("name", NAMES)
def test_text_with_few_known_tokens_gets_a_warning(tmp_path, name):
  corpus = make_corpus(tmp_path, rarely_known)
  predictions.check_corpus(corpus)
  line = check(corpus, name)[0]
  assert line.startswith("warning: train: ")


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_text_gets_no_line(tmp_path, name):
  corpus = make_corpus(tmp_path, words)
  predictions.check_corpus(corpus)
  assert check(corpus, name) == []


@pytest.mark.parametrize("choose", ["words", "spans", "ngrams"])
def test_words_longer_than_the_budget_are_never_chosen(tmp_path, choose):
  """Rows of 13 predict 2 tokens; only where a text ends, a word is as short."""
  corpus = make_corpus(tmp_path, no_starts)
  line = check(corpus, "roberta", choose=choose)[0]
  assert line.startswith("warning: train: ")
  assert "objective.choose=tokens" in line
  assert check(corpus, "roberta", choose="tokens") == []


def test_a_held_out_set_with_nothing_to_predict_gets_a_warning(tmp_path):
  corpus = make_corpus(tmp_path, words)
  corpus.heldout = make_corpus(tmp_path / "other", unknown).heldout
  (line,) = check(corpus, "roberta")
  assert line.startswith("warning: heldout: 0 of ")


def test_the_counts_are_those_of_the_masks(tmp_path):
  """A mask_rate of 1 predicts each token that is not special."""
  corpus = make_corpus(tmp_path, words)
  config = stub_objective.make_config("roberta")
  config.objective.mask_rate = 1.0
  task = objectives.make_task(config, corpus)
  found = predictions.count_predictions(
    task, corpus, "train", task.corrupt, num_batches=3, seed=5
  )
  batches = [task.batch_at("train", i) for i in range(3)]
  assert found == (
    sum((batch["segment_ids"] > 0).sum() for batch in batches),
    sum((batch["input_ids"] >= 5).sum() for batch in batches),
  )
