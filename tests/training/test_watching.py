"""What is measured from inside of a step, and that it changes no number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import stub_objective, toy
from helpers.toy_runs import logged_lines, make_config, run
from maskedlm.data.batches import placeholder_corpus
from maskedlm.modeling import architecture, masked_lm
from maskedlm.pretraining import objectives
from maskedlm.training import sharding, watching
from maskedlm.training import step as steps


def test_a_watched_run_has_the_same_numbers(tmp_path, mesh):
  task = toy.make_task(bad_steps=(5,))
  plain = run(make_config(), task, tmp_path / "plain", mesh)
  c = make_config(watch_every=3)
  watched = run(c, task, tmp_path / "watched", mesh)
  same = jax.tree.map(np.array_equal, plain.params, watched.params)
  assert jax.tree.all(same) and plain.heldout == watched.heldout
  lines = [logged_lines(tmp_path / name) for name in ("plain", "watched")]
  found = {}
  for a, b in zip(*lines, strict=True):
    more = b.keys() - a.keys()
    found[b["step"]] = {name: b[name] for name in more}
    assert {n: x for n, x in b.items() if n not in more and n in steady(a)} == {
      n: x for n, x in a.items() if n in steady(a)
    }
  names = {f"watch/{w}_norm/dense" for w in ("gradient", "parameter", "update")}
  # Steps 3, 6 and 9 are watched; the gradient of step 6 is infinite.
  assert {s: found[s].keys() for s in found if found[s]} == {
    3: names,
    6: {"watch/parameter_norm/dense"},
    9: names,
  }
  # The log of step 3 is of that step alone.
  by_step = {x["step"]: x for x in lines[1] if "loss" in x}
  np.testing.assert_allclose(
    by_step[3]["watch/gradient_norm/dense"],
    by_step[3]["gradient_norm"],
    rtol=1e-6,
  )


def steady(line):
  return line.keys() - {"tokens_per_second"}


def test_norms_by_hand():
  tree = {
    "encoder": {
      "embeddings": {"token": {"embedding": jnp.full((5, 3), 2.0)}},
      "layers": {
        "mlp": {"kernel": jnp.array([[3.0, 0.0], [1.0, 1.0]])},
        "norm": {"bias": jnp.array([[4.0], [1.0]])},
      },
      "final_norm": {"scale": jnp.array([7.0])},
    },
    "generator": {"layers": {"kernel": jnp.array([[5.0], [6.0]])}},
    "mlm_head": {"bias": jnp.array([3.0]), "dense": {"bias": jnp.array([4.0])}},
  }
  found = watching.norms("n", tree)
  assert {name: float(x) for name, (x, _) in found.items()} == pytest.approx(
    {
      "n/embeddings": 60**0.5,
      "n/layer_1": 5.0,
      "n/layer_2": 3**0.5,
      "n/final_norm": 7.0,
      "n/generator/layer_1": 5.0,
      "n/generator/layer_2": 6.0,
      "n/mlm_head": 5.0,
    }
  )


def test_bands_by_hand():
  counts = np.zeros(101, int)
  counts[[7, 9, 100]] = 5, 6, 5
  names, band = watching.frequency_bands(counts)
  assert names == ["rank_1-10", "rank_11-100", "rank_101-1000"]
  # The first ten: 9, then 7 and 100, then tokens without a count by id.
  assert np.flatnonzero(band == 0).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 9, 100]
  assert np.flatnonzero(band == 2).tolist() == [99]


def make_task(name):
  config = stub_objective.make_config(name, dropout=0.0, attention_dropout=0.0)
  config.tokenizer.vocab_size = stub_objective.V
  config.optimizer.warmup_steps = 0
  corpus = placeholder_corpus.make_corpus(config.tokenizer)
  task = objectives.make_task(config, corpus)
  counts = np.random.default_rng(1).integers(0, 50, stub_objective.V)
  return config, task._replace(token_counts=counts)


@pytest.mark.parametrize("name", ["bilm", "causal", "electra"])
def test_what_each_objective_has(name, mesh):
  config, task = make_task(name)
  program = steps.over_mesh(config, task, mesh)
  batch = task.batch_at("train", 0)
  with jax.set_mesh(mesh):
    state = jax.eval_shape(program.init)
    found = jax.eval_shape(program.watch, state, batch)
  found = {n.removeprefix("watch/") for n in found}
  for what in ("gradient", "parameter", "update"):
    assert {f"{what}_norm/layer_1", f"{what}_norm/layer_2"} <= found
    assert f"{what}_norm/embeddings" in found
  entropy = {"attention_entropy/layer_1", "attention_entropy/layer_2"}
  assert (entropy <= found) == (name != "bilm")
  bands = {"rank_1-10", "rank_11-100", "rank_101-1000"}
  assert {n[9:] for n in found if n.startswith("accuracy/")} == bands


def test_a_masked_language_model_by_hand(mesh):
  config, task = make_task("roberta")
  config.train.accumulate = 2
  program = steps.over_mesh(config, task, mesh)
  cfg = architecture.restored(task.describe["encoder"])
  lengths = stub_objective.L - np.arange(stub_objective.B)
  batch = stub_objective.single_text_rows(lengths)
  with jax.set_mesh(mesh):
    state = program.init()
    params = stub_objective.random_params(task)
    placed = sharding.put_on_devices(params, program.state.params)
    state = state._replace(params=placed)
    placed = sharding.place(batch, mesh)
    pairs = program.watch(state, placed)
    after, stats = program.step(state, placed)
  found = {
    n.removeprefix("watch/"): float(s / w) for n, (s, w) in pairs.items()
  }

  key = jax.random.fold_in(jax.random.key(config.seed), steps.TRAIN)
  mask_key, _ = jax.random.split(jax.random.fold_in(key, 0))
  seen = jax.jit(task.corrupt)(batch, mask_key)
  scores = jax.jit(masked_lm.attention_scores, static_argnums=0)(
    cfg, params, seen
  )
  weights = np.asarray(jax.nn.softmax(scores), np.float64)
  log = np.log(np.where(weights > 0, weights, 1))
  entropy = -np.sum(weights * log, axis=-1).mean(axis=2)  # [N, B, L]
  real = np.asarray(seen["segment_ids"]) > 0
  assert not real.all()
  for n in range(2):
    expected = entropy[n][real].mean()
    assert found[f"attention_entropy/layer_{n + 1}"] == pytest.approx(
      expected, rel=1e-4
    )

  _, correct = jax.jit(lambda p: score(cfg, p, seen))(params)
  correct, labels = np.asarray(correct), np.asarray(seen["masked_labels"])
  there = np.asarray(seen["masked_weights"]) > 0
  names, band = watching.frequency_bands(task.token_counts)
  for i, name in enumerate(names):
    inside = there & (band[labels] == i)
    total, count = pairs[f"watch/accuracy/{name}"]
    assert (total, count) == (correct[inside].sum(), inside.sum())

  norm = float(stats["gradient_norm"][0])
  parts = [x for n, x in found.items() if n.startswith("gradient_norm/")]
  assert np.sqrt(np.sum(np.square(parts))) == pytest.approx(norm, rel=1e-4)
  change = jax.tree.map(lambda a, b: np.asarray(a) - b, after.params, params)
  change = change["encoder"]["layers"]
  squares = [np.square(x[1]).sum() for x in jax.tree.leaves(change)]
  assert found["update_norm/layer_2"] == pytest.approx(
    np.sqrt(sum(squares)), rel=1e-2
  )


def score(cfg, params, batch):
  hidden = masked_lm.encode(cfg, params, batch, None, False)
  return masked_lm.loss_and_correct(cfg, params, batch, hidden)
