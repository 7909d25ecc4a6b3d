"""DeBERTa-v3: the mask decoder, the head, embeddings apart, two norms."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers import shrunk_configs, stub_objective
from helpers.killed_runs import killed_after
from helpers.stub_objective import B, L, jitted_loss, random_params
from maskedlm import in_python
from maskedlm.config import overrides, presets
from maskedlm.data.batches import text_rows
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import restored
from maskedlm.pretraining.objectives import deberta, electra
from maskedlm.training import optimizer
from maskedlm.training.checkpoints import load
from maskedlm.training.step import totals


@pytest.fixture
def make_task(monkeypatch):
  asked = stub_objective.stub_batches(
    monkeypatch,
    text_rows,
    "full_sentence_batches",
    batch_at=lambda split, step: make_batch(),
  )

  def make(options=None, **model):
    config = stub_objective.make_config(
      "deberta",
      **{"position": "disentangled", "type_vocab_size": 0, "num_layers": 6}
      | {"dropout": 0.0, "attention_dropout": 0.0}
      | model,
    )
    made = deberta.Options(**(options or {}))
    task = deberta.make_task(config, stub_objective.make_corpus(), (0, 1), made)
    assert asked["isolate_documents"] is False
    return task

  return make


def make_batch():
  return stub_objective.single_text_rows(L - np.arange(B))


def sizes(task):
  described = json.loads(json.dumps(task.describe))
  return [restored(described[name]) for name in ("encoder", "generator")]


@functools.partial(jax.jit, static_argnums=0)
def encode(cfg, params, batch):
  return masked_lm.encode(cfg, params, batch, None, False)


def test_the_generator_has_half_of_the_layers(make_task):
  cfg, small = sizes(make_task())
  # 3 of 6: two below, and one that the mask decoder applies twice.
  assert small == dataclasses.replace(cfg, num_layers=2, mask_decoder=True)
  params = jax.eval_shape(make_task().init, jax.random.key(0))
  qkv = params["generator"]["layers"]["attention"]["qkv"]["kernel"]
  assert qkv.shape == (2, 24, 3, 3, 8)
  last = params["generator"]["mask_decoder"]["attention"]["qkv"]["kernel"]
  assert last.shape == (24, 3, 3, 8)
  # An encoder that knows positions has none to add.
  _, plain = sizes(make_task(position="learned"))
  assert (plain.num_layers, plain.mask_decoder) == (3, False)


def test_all_chosen_tokens_are_masked(make_task):
  task = make_task({"mask_rate": 0.4})
  made = jax.device_get(jax.jit(task.corrupt)(make_batch(), jax.random.key(1)))
  counted = made["masked_weights"] > 0
  seen = np.take_along_axis(made["input_ids"], made["masked_positions"], 1)
  assert (seen[counted] == stub_objective.MASK).all() and counted.sum() > 20


def test_the_mask_decoder_is_transformers_last_layer_twice(tmp_path):
  peers = pytest.importorskip("helpers.peers")
  torch = peers.torch
  tokenizer = peers.train_tokenizer("wordpiece")
  model = peers.make_model("DebertaV2", "Model", tokenizer)
  place = np.float32(np.random.default_rng(1).standard_normal((18, 24)))
  batch = peers.make_batch(tokenizer, types=False)
  mask = torch.tensor(batch["segment_ids"])
  encoder = model.encoder
  with torch.no_grad():
    ids = torch.tensor(batch["input_ids"], dtype=torch.long)
    seen = model(ids, attention_mask=mask, output_hidden_states=True)
    states = seen.hidden_states[-2]
    query = states + torch.tensor(place[:L])
    relative = encoder.get_rel_pos(states)
    for _ in range(2):
      query, _ = encoder.layer[-1](
        states,
        encoder.get_attention_mask(mask),
        query_states=query,
        relative_pos=relative,
        rel_embeddings=encoder.get_rel_embedding(),
      )

  model.save_pretrained(tmp_path)
  found = peers.read_model(tmp_path)
  cfg = dataclasses.replace(found.cfg, num_layers=2, mask_decoder=True)
  params = dict(found.params["encoder"])
  layers = params["layers"]
  params["layers"] = jax.tree.map(lambda x: x[:2], layers)
  params["mask_decoder"] = jax.tree.map(lambda x: x[2], layers)
  params["decoder_position"] = {"embedding": place}
  fresh = jax.eval_shape(
    lambda key: masked_lm.init_encoder(cfg, key), jax.random.key(0)
  )
  assert stub_objective.shapes(params) == stub_objective.shapes(fresh)
  ours = encode(cfg, {"encoder": params}, batch)
  peers.assert_close({"x": ours}, {"x": query.numpy()}, batch)


def test_detection_by_numpy(make_task):
  task = make_task()
  params = random_params(task)
  cfg, small = sizes(task)
  batch = jax.device_get(jax.jit(task.corrupt)(make_batch(), jax.random.key(1)))
  batch["example_weights"] = np.float32([1, 1, 0, 1, 1, 1, 0, 1])
  generator = masked_lm.with_generator(params)
  own, shared = (p["encoder"]["embeddings"] for p in (generator, params))
  assert own is params["generator"]["embeddings"] is not shared
  hidden = encode(small, generator, batch)
  logits = masked_lm.predict(small, generator, batch, hidden)
  replaced, labels = electra.replace(batch, electra.sample(logits, batch))
  x = np.float64(encode(cfg, params, replaced))
  head = params["rtd_head"]
  x = x + x[:, :1]
  x = x - x.mean(-1, keepdims=True)
  x /= np.sqrt((x**2).mean(-1, keepdims=True) + cfg.norm_epsilon)
  x = x * head["norm"]["scale"] + head["norm"]["bias"]
  x = x @ head["transform"]["kernel"] + head["transform"]["bias"]
  x = np.asarray(jax.nn.gelu(x, approximate=False))
  scores = (x @ head["dense"]["kernel"] + head["dense"]["bias"])[..., 0]
  loss = np.logaddexp(0, np.where(labels > 0, -scores, scores))
  # [CLS] and [SEP] count; two rows have no weight.
  real = (batch["segment_ids"] > 0) * batch["example_weights"][:, None]
  terms, metrics = jitted_loss(task)(params, batch, None, False)
  assert 0 < np.sum(labels) < real.sum() == 58
  total = (loss * real).sum()
  np.testing.assert_allclose(
    terms["discriminator"], (10 * total, 58), rtol=1e-4
  )
  np.testing.assert_allclose(
    metrics["discriminator_loss"], (total, 58), rtol=1e-4
  )


def with_table(params, table):
  embeddings = params["encoder"]["embeddings"] | {"token": {"embedding": table}}
  return {**params, "encoder": params["encoder"] | {"embeddings": embeddings}}


def token_table(params, network):
  return params[network]["embeddings"]["token"]["embedding"]


def test_steps_are_those_of_two_networks_and_a_difference(make_task):
  """Plain optax on delta = E_D - E_G, with stop_gradient and two clips."""
  task = make_task(num_layers=2)
  fresh = jax.jit(task.init)(jax.random.key(0))
  tables = [token_table(fresh, n) for n in ("encoder", "generator")]
  np.testing.assert_array_equal(*tables)
  batch = jax.jit(task.corrupt)(make_batch(), jax.random.key(1))
  o = presets.adamw()
  o.update(weight_decay=0.3, clip_norm=0.05)
  o = optimizer.OptimizerOptions(**o.to_dict())
  rate = 0.01

  def total(terms):
    return sum(value / weight for value, weight in totals(terms).values())

  tx, _ = optimizer.make_optimizer(o, 2_000, fresh, task.networks)
  tx = optimizer.follow(tx, task.follows)

  @jax.jit
  def ours(params, state):
    gradient = jax.grad(lambda p: total(task.loss(p, batch, None, False)[0]))
    update, state = tx.update(gradient(params), state, params)
    return jax.tree.map(lambda p, u: p - rate * u, params, update), state

  decays = optimizer.decayed(fresh, o.no_decay)
  mask = jax.tree.map_with_path(
    lambda path, _: decays[optimizer.path_of(path)], fresh
  )
  plain = optax.chain(
    optax.scale_by_adam(o.b1, o.b2, o.eps),
    optax.add_decayed_weights(o.weight_decay, mask),
  )

  @jax.jit
  def theirs(params, state):  # encoder's table is delta.
    def loss(params):
      shared = jax.lax.stop_gradient(token_table(params, "generator"))
      table = shared + token_table(params, "encoder")
      return total(task.loss(with_table(params, table), batch, None, False)[0])

    slope, norms = jax.grad(loss)(params), []
    for names in (("generator", "mlm_head"), ("encoder", "rtd_head")):
      part = {name: slope[name] for name in names}
      norms.append(optax.tree.norm(part))
      scale = jnp.minimum(1, o.clip_norm / norms[-1])
      slope |= jax.tree.map(lambda x, s=scale: x * s, part)
    update, state = plain.update(slope, state, params)
    params = jax.tree.map(lambda p, u: p - rate * u, params, update)
    return params, state, norms

  mine, my_state = fresh, tx.init(fresh)
  other = with_table(fresh, jnp.zeros_like(tables[0]))
  other_state = plain.init(other)
  for _ in range(4):
    mine, my_state = ours(mine, my_state)
    other, other_state, norms = theirs(other, other_state)
    assert min(norms) > o.clip_norm
  delta = token_table(other, "encoder")
  assert np.abs(delta).max() > rate
  other = with_table(other, token_table(other, "generator") + delta)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), mine, other
  )


def test_flops_count_the_decoder_twice(make_task):
  cfg, small = sizes(make_task())
  task = make_task({"mask_rate": 0.3})
  generator = flops.train_flops(
    dataclasses.replace(small, num_layers=4), L, num_predictions=4
  )
  encoder = flops.train_flops(cfg, L, num_predictions=0)
  head = 6 * L * (24 * 24 + 24)
  assert task.flops(0) == pytest.approx(B * (generator + encoder + head))


def test_a_resumed_run_ends_with_the_same_bits(tiny, tmp_path, on_one):
  config = shrunk_configs.load("deberta_v3.py:xsmall")
  made = overrides.load_config(str(tiny[0]))
  config.corpus.update(made.corpus.to_dict() | {"path": str(tiny[1])})
  config.tokenizer.update(made.tokenizer.to_dict())
  config.model.update(num_layers=2, dtype="float32")
  config.optimizer.update(warmup_steps=0, learning_rate=1e-2)
  config.train.update(num_steps=2, checkpoint_every=1, eval_every=2)
  config.train.update(log_every=1, eval_rows=8)
  result = in_python.train(config, tmp_path / "run")
  assert np.isfinite(result["heldout_mlm_loss"])
  copy = killed_after(1, tmp_path / "run", tmp_path / "copy")
  again = in_python.train(config, copy)
  assert again["heldout_mlm_loss"] == result["heldout_mlm_loss"]
  whole, resumed = (
    load.load_params(tmp_path / name, step=2)[0] for name in ("run", "copy")
  )
  jax.tree.map(np.testing.assert_array_equal, whole, resumed)
  assert (
    token_table(whole, "encoder") != token_table(whole, "generator")
  ).any()
  # The mask decoder is part of the generator, which fills masks.
  model = in_python.load(tmp_path / "run")
  assert model.fill_mask("a [MASK] of text", top=3)
