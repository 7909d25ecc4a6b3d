"""Measures each way of masking alone, as a share of a training step.

  python benchmarks/corruption.py

BERT-base, 32 rows of 512 tokens. A step takes at least as long as its matmuls
at the rate at which this device multiplies matrices of that size, which is
measured too; a real step is slower, so the true share is smaller. The function
timed is the one that the objectives put into the step. The shortest turn
counts, so that other processes matter little; on a GPU a turn is many calls,
as starting one and waiting for it takes longer than the call itself.
"""

import argparse
import functools
import time
import types

import arguments
import jax
import jax.numpy as jnp
import numpy as np
import table

from maskedlm.config import defaults as config_lib
from maskedlm.modeling import architecture, flops
from maskedlm.modeling.masking import masking
from maskedlm.modeling.masking.options import CorruptionOptions

ROWS, LENGTH, VOCAB, RATE = 32, 512, 30_522, 0.15
OPTIONS = (
  ("mask", "tokens"),
  ("mask", "words"),
  ("mask", "ngrams"),
  ("mask", "spans"),
  ("substitute", "tokens"),
  ("shuffle", "tokens"),
  ("delete", "tokens"),
  ("insert", "tokens"),
)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--turns", type=arguments.count, default=20)
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args(argv)
  return args


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  step = step_seconds(args.turns)
  kind = jax.devices()[0].device_kind
  print(f"{kind}, {jax.device_count()} device(s); a step: {step:.3f} s or more")
  rows = []
  for corruption, choose in OPTIONS:
    seconds = best(make_corruption(corruption, choose), args.turns)
    rows.append(
      table.Row(
        f"corruption={corruption}, choose={choose}: share of a step's matmuls",
        *(1e3 * seconds, 1e3 * step, seconds / step, "ms"),
      )
    )
  print(table.show(rows))
  table.write(args.json, rows)


def best(run, turns: int) -> float:
  """Returns the seconds of a compiled call in the shortest turn."""
  jax.block_until_ready(run())
  calls = 1 if jax.default_backend() == "cpu" else 50
  seconds = []
  for _ in range(turns):
    began = time.perf_counter()
    jax.block_until_ready([run() for _ in range(calls)])
    seconds.append((time.perf_counter() - began) / calls)
  return min(seconds)


def step_seconds(turns: int) -> float:
  """Returns the seconds of a step's matmuls at the rate of one of them."""
  cfg = architecture.encoder_config(config_lib.default().model, VOCAB, LENGTH)
  row = flops.train_flops(cfg, LENGTH, num_predictions=round(RATE * LENGTH))
  dtype = jnp.float32 if jax.default_backend() == "cpu" else jnp.bfloat16
  # Random, as a GPU is faster on equal numbers (matmuls.py).
  keys = jax.random.split(jax.random.key(0))
  x = jax.random.normal(keys[0], (ROWS * LENGTH, cfg.width), dtype)
  w = jax.random.normal(keys[1], (cfg.width, cfg.mlp_width), dtype)
  seconds = best(functools.partial(jax.jit(jnp.matmul), x, w), turns)
  return ROWS * row * seconds / (2 * x.size * cfg.mlp_width)


def make_corruption(corruption: str, choose: str):
  """Returns a call that corrupts a batch; 30% of the tokens continue a word."""
  rng = np.random.default_rng(0)
  ids = rng.integers(1_000, VOCAB, (ROWS, LENGTH)).astype(np.int32)
  ids[:, 0], ids[:, 200], ids[:, -1] = 101, 102, 102
  batch = {
    "input_ids": ids,
    "segment_ids": np.ones_like(ids),
    "token_type_ids": np.zeros_like(ids),
    "example_weights": np.ones(ROWS, np.float32),
  }
  tokenizer = types.SimpleNamespace(
    vocab_size=VOCAB,
    special=types.SimpleNamespace(pad=0, mask=103),
    special_ids=np.arange(1_000),
    starts_word=rng.random(VOCAB) < 0.7,
  )
  made = masking.make_masking(
    tokenizer,
    LENGTH,
    CorruptionOptions(corruption=corruption, choose=choose, mask_rate=RATE),
    token_counts=rng.integers(1, 1_000, VOCAB),
  )
  return functools.partial(
    jax.jit(made.corrupt), jax.device_put(batch), jax.random.key(0)
  )


if __name__ == "__main__":
  main()
