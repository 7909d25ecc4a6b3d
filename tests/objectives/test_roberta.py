"""RoBERTa's objective: its rows, its loss, and isolated documents."""

import dataclasses
import json
import types

import jax
import numpy as np
import pytest

from helpers import any_task, splits, stub_objective
from helpers.repository import CONFIGS
from helpers.stub_objective import CLS, PAD, SEP, B, L, V
from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import flops
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.objectives import roberta
from maskedlm.training import step
from maskedlm.training.step import totals


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


def compiled_loss(task):
  return jax.jit(
    lambda params, batch: totals(task.loss(params, batch, None, False))
  )


def test_init_has_two_subtrees(corpus):
  task = make_task(corpus)
  params = jax.eval_shape(task.init, jax.random.key(0))
  assert set(params) == {"encoder", "mlm_head"}


def test_an_untrained_model_knows_nothing(corpus):
  task = make_task(corpus)
  batch = jax.jit(task.corrupt)(task.batch_at("train", 3), jax.random.key(1))
  params = task.init(jax.random.key(0))
  terms, metrics = compiled_loss(task)(params, batch)
  assert set(terms) == {"mlm"}
  assert set(metrics) == {"mlm_loss", "mlm_accuracy"}
  total, weight = terms["mlm"]
  assert total / weight == pytest.approx(np.log(V), abs=0.05)
  # Full rows of 13 tokens: 15% are 1.95.
  assert weight == 2 * B
  assert (batch["segment_ids"] == 1).all()


def test_whole_words_and_another_heldout_rate(corpus):
  """Tokens 2k + 1 and 2k + 2 are a word: both are masked, or neither."""
  rows = np.arange(5, 5 + B * (L - 2)).reshape(B, -1)
  ids = np.full((B, L), CLS, np.int32)
  ids[:, 1:-1], ids[:, -1] = rows, SEP
  batch = {
    "input_ids": ids,
    "segment_ids": np.ones_like(ids),
    "example_weights": np.ones(B, np.float32),
  }
  tokenizer = types.SimpleNamespace(**vars(corpus.tokenizer))
  tokenizer.starts_word = np.arange(V) % 2 == 1
  corpus = types.SimpleNamespace(**{**vars(corpus), "tokenizer": tokenizer})
  task = make_task(
    corpus, choose="words", mask_rate=0.45, heldout_mask_rate=0.15
  )
  key = jax.random.key(1)
  train = jax.device_get(jax.jit(task.corrupt)(batch, key))
  heldout = jax.device_get(jax.jit(task.corrupt_heldout)(batch, key))
  # 45% of 13 tokens are 5.85, 15% are 1.95. A row has five words of two tokens
  # and one of a single token, so 5 or 6, and 1 or 2, are masked.
  assert set(train["masked_weights"].sum(1)) == {5, 6}
  assert set(heldout["masked_weights"].sum(1)) <= {1, 2}
  for made in (train, heldout):
    for row, places, weights in zip(
      ids, made["masked_positions"], made["masked_weights"], strict=True
    ):
      masked = {int(p) for p, w in zip(places, weights, strict=True) if w}
      for place in masked:
        other = place + 1 if row[place] % 2 else place - 1
        assert other in masked or row[other] in (CLS, SEP)


def test_heldout_rows_are_the_same_for_every_seed(corpus):
  one, two = (make_task(corpus, make_config(seed=seed)) for seed in (3, 4))
  for index in range(one.num_heldout_batches):
    np.testing.assert_array_equal(
      one.batch_at("heldout", index)["input_ids"],
      two.batch_at("heldout", index)["input_ids"],
    )
  assert not np.array_equal(
    one.batch_at("train", 0)["input_ids"], two.batch_at("train", 0)["input_ids"]
  )


def test_rows_of_weight_0_count_nothing(corpus):
  task = make_task(corpus)
  last = task.num_heldout_batches - 1
  batch = task.batch_at("heldout", last)
  filler = batch["example_weights"] == 0
  assert filler.any() and not filler.all()
  batch = jax.jit(task.corrupt)(batch, jax.random.key(1))
  weights = np.asarray(batch["masked_weights"])
  assert (weights[filler] == 0).all()
  assert weights[~filler].sum() >= (~filler).sum()
  params = task.init(jax.random.key(0))
  whole, _ = compiled_loss(task)(params, batch)
  kept = {name: x[~filler] for name, x in batch.items()}
  alone, _ = compiled_loss(task)(params, kept)
  np.testing.assert_allclose(whole["mlm"], alone["mlm"], rtol=1e-5)


def test_an_isolated_document_is_encoded_as_if_alone(corpus):
  task = make_task(corpus, isolate_documents=True)
  cfg = EncoderConfig(**task.describe["encoder"])
  params = task.init(jax.random.key(0))["encoder"]
  batch = task.batch_at("train", 0)
  names = ("input_ids", "token_type_ids", "segment_ids", "positions")

  @jax.jit
  def encode(*arrays):
    return Encoder(cfg).apply({"params": params}, *arrays, train=False)

  together = np.asarray(encode(*(batch[name] for name in names)))
  several = 0
  for i in range(B):
    segment_ids = batch["segment_ids"][i]
    several += segment_ids.max() > 1
    for segment in range(1, segment_ids.max() + 1):
      at = np.flatnonzero(segment_ids == segment)
      ids = np.full((1, L), PAD)
      ids[0, : len(at)] = batch["input_ids"][i, at]
      real = (np.arange(L) < len(at)).astype(np.int32)[None]
      alone = encode(ids, 0 * ids, real, np.arange(L)[None])
      np.testing.assert_allclose(
        together[i, at], alone[0, : len(at)], atol=1e-5
      )
  assert several >= 4


def test_many_rows_a_step_through_accumulation(corpus):
  """The gradients of 64 rows, at once and in 8 microbatches, are equal."""
  config = make_config()
  config.data.batch_size = 64
  task = make_task(corpus, config)
  params = task.init(jax.random.key(0))
  batch = jax.jit(task.corrupt)(task.batch_at("train", 1), jax.random.key(1))
  gradient = jax.jit(
    lambda *args: step.gradient_of(task, *args), static_argnums=3
  )
  once, parts = (
    gradient(params, batch, jax.random.key(2), parts) for parts in (1, 8)
  )
  np.testing.assert_allclose(once[1], parts[1], rtol=1e-5)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), once[0], parts[0]
  )


def test_split_over_8_devices_it_is_the_same(corpus):
  task = make_task(corpus, isolate_documents=True)
  params, batch = task.init(jax.random.key(0)), task.batch_at("train", 0)
  any_task.check_split_over_8_devices(task, params, batch)


def test_hosts_read_their_part(corpus):
  config = make_config(seed=9)
  whole = make_task(corpus, config).batch_at("train", 5)
  parts = [
    make_task(corpus, config, (i, 2)).batch_at("train", 5) for i in (0, 1)
  ]
  np.testing.assert_array_equal(
    np.concatenate([part["input_ids"] for part in parts]), whole["input_ids"]
  )


def test_every_parameter_learns(corpus):
  task = make_task(corpus)
  any_task.check_every_parameter_learns(task, task.batch_at("train", 0))


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


def test_description_rebuilds_the_encoder(corpus):
  described = json.loads(json.dumps(make_task(corpus).describe))
  assert described["objective"] == "roberta"
  cfg = EncoderConfig(**described["encoder"])
  assert dataclasses.asdict(cfg) == described["encoder"]


@pytest.mark.parametrize(
  ("options", "expected"),
  [
    ({"mask_rate": 0.0}, r"objective\.mask_rate=0\.0"),
    ({"max_predictions": 1}, "max_predictions=1 .*13 tokens.*at least 2"),
    ({"random_share": 0.3}, r"random_share=0\.3"),
    ({"random_tokens": "unigrams"}, 'did you mean "unigram"'),
  ],
)
def test_wrong_options_are_named(corpus, options, expected):
  with pytest.raises(ConfigError, match=expected):
    make_task(corpus, **options)


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


def test_defaults_are_those_of_the_paper():
  assert config_lib.default("roberta").objective.to_dict() == {
    "name": "roberta",
    "mask_rate": 0.15,
    "heldout_mask_rate": 0.0,
    "max_predictions": 0,
    "mask_share": 0.8,
    "random_share": 0.1,
    "random_tokens": "unigram",
    "choose": "tokens",
    "max_span_words": 10,
    "corruption": "mask",
    "isolate_documents": False,
    "whole_sentences": False,
  }


def test_whole_sentences_leave_padding_where_full_rows_do_not(corpus):
  # Each document is one sentence; with its [SEP] it has 2 to 30 tokens.
  whole, full = (
    make_task(corpus, whole_sentences=on).batch_at("train", 0)
    for on in (True, False)
  )
  assert np.mean(full["segment_ids"] == 0) == 0
  assert 0 < np.mean(whole["segment_ids"] == 0) < 0.5
  ids, real = whole["input_ids"], whole["segment_ids"].sum(axis=1)
  # A row ends with a sentence, so with its document's [SEP] and its own, unless
  # it is full of a piece of a longer one.
  ends = ids[np.arange(len(ids))[:, None], real[:, None] - [2, 1]]
  assert (ends[real < ids.shape[1]] == SEP).all()
