"""RoBERTa's objective: its rows, its loss, and isolated documents."""

import jax
import numpy as np
import pytest

from helpers import splits, stub_objective
from helpers.repository import CONFIGS
from helpers.stub_objective import V
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.modeling import flops
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining.objectives import roberta


def make_config(**options):
  config = stub_objective.make_config(
    "roberta", dropout=0.0, attention_dropout=0.0
  )
  config.train.eval_rows = 20
  config.update(options)
  return config


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  """A corpus of 60 documents of 1 to 29 tokens; 12 are held out."""
  rng = np.random.default_rng(2)
  documents = [
    [rng.integers(5, V, rng.integers(1, 30)).tolist()] for _ in range(60)
  ]
  corpus = stub_objective.make_corpus()
  corpus.path = str(tmp_path_factory.mktemp("corpus"))
  corpus.fingerprint, corpus.meta = "made by hand", {}
  corpus.domains = ()
  corpus.train = splits.make_split(documents[12:])
  corpus.heldout = splits.make_split(documents[:12])
  return corpus


def make_task(corpus, config=None, shard=(0, 1), **options):
  return roberta.make_task(
    config or make_config(), corpus, shard, roberta.Options(**options)
  )


def test_flops_count_attention_within_documents(corpus):
  config = make_config()
  config.data.update(length=17, batch_size=3)
  task = make_task(corpus, config)
  cfg = EncoderConfig(**task.describe["encoder"])
  by_hand = 3 * flops.train_flops(cfg, 17, num_predictions=3)  # 2.55
  assert task.flops(0) == task.flops(9) == by_hand
  task = make_task(corpus, config, isolate_documents=True)
  segment_ids = task.batch_at("train", 0)["segment_ids"]
  pairs = sum(np.sum(np.bincount(row)[1:] ** 2) for row in segment_ids) / 3
  assert pairs < 0.9 * 17**2
  expected = 3 * flops.train_flops(cfg, 17, num_predictions=3, attended=pairs)
  assert task.flops(0) == task.flops(9) == pytest.approx(expected)


@pytest.mark.parametrize(
  ("size", "released", "numbers"),
  [
    ("base", 124_645_632, (2_048, 125_000, 5e-4, 10_000)),
    ("large", 355_359_744, (8_192, 500_000, 4e-4, 30_000)),
  ],
)
def test_configs_are_as_published(size, released, numbers):
  config = overrides.load_config(f"{CONFIGS}/roberta.py:{size}")
  config_lib.validate(config)
  optimizer = config.optimizer
  assert numbers == (
    config.data.batch_size,
    config.train.num_steps,
    optimizer.learning_rate,
    optimizer.warmup_steps,
  )
  assert (optimizer.b1, optimizer.b2, optimizer.eps) == (0.9, 0.98, 1e-6)
  assert (optimizer.weight_decay, optimizer.clip_norm) == (0.01, 0)
  assert config.data.length == 512 and config.phases == ()
  assert config.model.dropout == config.model.attention_dropout == 0.1
  assert config.tokenizer.kind == "bpe" and not config.tokenizer.lowercase
  cfg = encoder_config(config.model, config.tokenizer.vocab_size, 512)
  shapes = jax.eval_shape(lambda key: roberta.init(cfg, key), jax.random.key(0))
  count = sum(x.size for x in jax.tree.leaves(shapes["encoder"]))
  D = cfg.width
  count -= (cfg.padded_vocab_size - 50_265) * D
  # The released model has a pooler, two unused positions, one token type.
  assert count + D * D + D + 2 * D + D == released


def test_whole_sentences_leave_padding_where_full_rows_do_not(corpus):
  whole, full = (
    make_task(corpus, whole_sentences=on).batch_at("train", 0)
    for on in (True, False)
  )
  assert np.mean(full["segment_ids"] == 0) == 0
  assert 0 < np.mean(whole["segment_ids"] == 0) < 0.5
