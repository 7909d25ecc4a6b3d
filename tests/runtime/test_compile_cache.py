"""Compiled programs are cached, shared by processes, and compiled only once."""

import os
import subprocess
import sys
from collections import Counter

import jax
import pytest

import maskedlm
from helpers import finetune_runs, in_process, toy, untrained
from helpers.compilations import compiled_programs
from helpers.toy_runs import make_config, run
from maskedlm.config import defaults
from maskedlm.data.batches import placeholder_corpus
from maskedlm.finetune import config as finetuning
from maskedlm.finetune import run as finetune
from maskedlm.inference.vectors import vectors
from maskedlm.pretraining import objectives
from maskedlm.runtime import startup
from maskedlm.training import sharding

PROGRAM = """
from maskedlm.runtime import startup
startup.enable_compile_cache()
import jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
print(float(jax.jit(lambda x: jnp.sum(jnp.sort(x) * 2))(jnp.arange(7.0))))
print(found.count("/jax/compilation_cache/cache_hits"))
"""


def start(cache, **environ):
  environ = {**os.environ, "XDG_CACHE_HOME": str(cache), **environ}
  environ.pop("JAX_COMPILATION_CACHE_DIR")
  return subprocess.Popen(
    [sys.executable, "-c", PROGRAM],
    env=environ,
    text=True,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
  )


def finish(process):
  """Returns (result, number of cache hits, stderr)."""
  out, err = process.communicate(timeout=120)
  assert process.returncode == 0, err
  result, hits = out.split()
  return float(result), int(hits), err


def test_processes_share_the_users_cache(tmp_path):
  folder = tmp_path / "maskedlm" / "jax"
  # Two at once, with an empty cache.
  made = [finish(p) for p in [start(tmp_path), start(tmp_path)]]
  entries = sorted(folder.iterdir())
  assert entries and all(result == 42 for result, _, _ in made)
  # A file that a kill or a full disk cut short is ignored.
  entries[0].write_bytes(entries[0].read_bytes()[:100])
  result, hits, err = finish(start(tmp_path))
  assert result == 42 and hits == len(entries) - 1
  assert "Error reading persistent compilation cache" in err


def test_the_cache_can_be_moved(monkeypatch, tmp_path):
  before = jax.config.jax_compilation_cache_dir
  try:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    startup.enable_compile_cache()  # conftest.py has set the folder.
    assert jax.config.jax_compilation_cache_dir == before
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    startup.enable_compile_cache()
    found = jax.config.jax_compilation_cache_dir
    assert found == str(tmp_path / "x" / "maskedlm" / "jax")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    startup.enable_compile_cache()
    found = jax.config.jax_compilation_cache_dir
    assert found == str(tmp_path / ".cache" / "maskedlm" / "jax")
  finally:
    jax.config.update("jax_compilation_cache_dir", before)


def test_nothing_is_compiled_after_the_first_steps(tmp_path):
  # A second run has three times the steps, evaluations and checkpoints.
  counts = []
  for num_steps in (4, 12):
    c = make_config(
      num_steps=num_steps, eval_every=2, checkpoint_every=2, log_every=2
    )
    mesh = sharding.make_mesh(c.mesh, jax.devices()[:1])
    jax.clear_caches()
    with compiled_programs() as names:
      run(c, toy.make_task(), tmp_path / str(num_steps), mesh)
      counts.append(Counter(names))
    assert [counts[-1][n] for n in ("step", "heldout_step")] == [1, 1], counts
  assert counts[0] == counts[1]


@pytest.mark.parametrize(
  "objective", ["mlm_nsp", "roberta", "spanbert", "electra"]
)
def test_all_batches_have_the_same_shapes(objective):
  config = defaults.default(objective)
  config.tokenizer.vocab_size = 300
  config.data.update(length=21, batch_size=5)
  config.train.update(num_steps=40, eval_rows=12)
  task = objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )

  def shapes(split, step):
    batch = task.batch_at(split, step)
    return {name: (x.shape, x.dtype) for name, x in batch.items()}

  for split, count in (("train", 40), ("heldout", task.num_heldout_batches)):
    assert all(shapes(split, i) == shapes(split, 0) for i in range(count))


# Fine-tuning and inference: every shape is compiled once. Which shapes there
# are is worked out by hand.


def the(count):
  """Returns a text of that many tokens."""
  return " ".join(["the"] * count)


def test_fine_tuning_compiles_each_shape_once(tmp_path):
  encoder = finetune_runs.make_encoder(tmp_path / "encoder")
  sizes = {"train": [3, 7] * 11 + [3], "dev": [1] * 8 + [6] * 3 + [18] * 2}
  for name, of_rows in sizes.items():
    rows = [f"{the(n)}\t{'ab'[i % 2]}\n" for i, n in enumerate(of_rows)]
    (tmp_path / f"{name}.tsv").write_text("text\tlabel\n" + "".join(rows))
  config = finetuning.default("classification")
  config.init_from = str(encoder)
  config.data.update(
    train=str(tmp_path / "train.tsv"), dev=str(tmp_path / "dev.tsv")
  )
  config.data.update(length=24, batch_size=8, pack=False)
  config.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  config.train.epochs = 3.0

  jax.clear_caches()
  with in_process.devices(), compiled_programs() as names:
    finetune.finetune(finetuning.typed(config), tmp_path / "run")
    counts = Counter(names)
  # All 9 batches are 8 rows of 24, and so are the two of the 13 held-out texts,
  # whose program scores the best checkpoint, too.
  assert counts == dict.fromkeys(
    ("init", "step", "add", "heldout_step", "_all_finite"), 1
  )


def test_embedding_compiles_one_shape_once(tmp_path):
  model = maskedlm.load(untrained.pretrained(tmp_path / "run"))
  # Two of each length from 3 to 32: 1,050 tokens, packed into rows of 128, each
  # a batch.
  texts = [the(n) for n in range(1, 31)] * 2
  options = vectors.VectorOptions("sentence")

  encoder = vectors.make_text_encoder(model.opened, batch_tokens=128)

  def embed(texts):
    made = vectors.embed(encoder, texts, options)
    return len(vectors.collect(made).values)

  jax.clear_caches()
  with compiled_programs() as names:
    assert embed(texts) == 60
    assert names.count("encode") == 1, names
    names.clear()
    assert embed(texts[7:] + texts[:7]) == 60
    assert not names


def test_inference_compiles_nothing_twice(tmp_path):
  pretrained = maskedlm.load(untrained.pretrained(tmp_path / "run"))
  tagger = maskedlm.load(untrained.finetuned(tmp_path / "pos", "pos"))
  # Rows of 32 are cut from 110 tokens: three of 32 and one of 22; with batches
  # of 2 rows one shape. Tags: with [CLS] and [SEP], batches of 4 + 31, 13 + 29
  # and 7 + 14 tokens, all computed as two rows of 32.
  documents = [the(110)]
  sentences = [{"tokens": the(n).split()} for n in (2, 5, 11, 12, 27, 29)]
  masked = "the [MASK] sat on the [MASK]"

  def run():
    pretrained.evaluate(documents, batch_size=2)
    tagger.predict(sentences, batch_size=2)
    pretrained.fill_mask(masked)
    pretrained.score(["the cat sat", "a good film"])
    pretrained.embed(["the cat sat", "a good film"], unit="word")
    pretrained.attend("the cat sat")

  jax.clear_caches()
  with compiled_programs() as names:
    run()
    found = [names.count(n) for n in ("scores", "corrupt", "outputs")]
    assert found == [1, 1, 1], names
    names.clear()
    run()
    assert not names
