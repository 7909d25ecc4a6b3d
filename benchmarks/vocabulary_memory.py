"""The memory of a training step, by the size of the vocabulary.

  python benchmarks/vocabulary_memory.py --remat none,full --json FILE

BERT-base's encoder under an MLM head, with 30,522 words as in BERT, and with
250,002 as in XLM-R: the logits of all words at once, or in blocks of 32,768
(model.vocab_block). 32 rows of 512 tokens, 77 of them predicted, float32; all
that `maskedlm pretrain` compiles: masking, dropout, gradient, AdamW.

Nothing is executed. The step is compiled ahead of time for one device, and what
is printed is XLA's own account of it (memory_analysis), in GB:

  state        arguments: the parameters and their two moments, and the batch;
               of a larger table, more by itself
  temporaries  all else, at its peak: activations, logits, gradients, and what
               the optimizer holds until it knows that the update is finite
  together     the two, and the results that don't take an argument's place

What XLA calls its peak (peak_memory_in_bytes) is in the JSON only: on a CPU it
is the arguments alone.
"""

import argparse
import json
import os
import pathlib
import platform
import time

import jax
import writable

from maskedlm import objectives
from maskedlm.config import overrides
from maskedlm.data.batches import placeholder_corpus
from maskedlm.training import optimizer, sharding
from maskedlm.training import step as steps

CONFIG = pathlib.Path(__file__).parent.parent / "configs" / "xlmr_base.py"
LENGTH, BERT, XLMR, BLOCK = 512, 30_522, 250_002, 32_768
# What is compared: name -> words, and of how many the logits exist at once.
MODELS = {
  f"{BERT:,} words": (BERT, BERT + 128),
  f"{XLMR:,} words, in blocks of {BLOCK:,}": (XLMR, BLOCK),
  f"{XLMR:,} words, all at once": (XLMR, XLMR + 128),
}


def main() -> None:
  """Compiles each step, prints a table, writes the JSON."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rows", type=int, default=32, help="in a batch")
  parser.add_argument("--dtype", default="float32", help="of activations")
  parser.add_argument("--remat", default="none", help="none, dots, full")
  parser.add_argument("--json", **writable.TABLE)
  args = parser.parse_args()
  print(
    f"{platform.machine()}, {os.cpu_count()} cores; jax {jax.__version__}, "
    f"{jax.devices()[0].device_kind}"
  )
  records = []
  for remat in args.remat.split(","):
    records += compare(remat, args.rows, args.dtype)
  if args.json:
    with args.json.open("w", encoding="utf-8") as file:
      json.dump(records, file, indent=2)


def compare(remat: str, rows: int, dtype: str) -> list[dict]:
  """Prints a table of the models; a JSON record of each."""
  work = f"12x768 B{rows} L{LENGTH} {dtype} remat={remat}"
  print(
    f"\n{work}\n\n| | state | temporaries | | together | |\n"
    "|---|---:|---:|---:|---:|---:|"
  )
  records = []
  for name, (vocab_size, block) in MODELS.items():
    config = configure(vocab_size, block, remat=remat, rows=rows, dtype=dtype)
    start = time.perf_counter()
    found = memory(config)
    seconds = round(time.perf_counter() - start, 1)
    records.append({"work": work, "model": name, **found, "seconds": seconds})
    columns = [f"{found['state'] / 1e9:.2f} GB"]
    for key in ("temporaries", "together"):
      columns += [f"{found[key] / 1e9:.2f} GB"]
      columns += [f"x{found[key] / records[0][key]:.2f}"]
    print(f"| {name} | {' | '.join(columns)} |", flush=True)
  return records


def configure(vocab_size: int, block: int, *, remat, rows, dtype):
  """configs/xlmr.py:base on one device, with another vocabulary."""
  config = overrides.load_config(str(CONFIG))
  config.tokenizer.vocab_size = vocab_size
  config.model.update(vocab_block=block, dtype=dtype, remat=remat)
  config.data.batch_size = rows
  config.train.eval_rows = 0
  return config


def memory(config) -> dict[str, int]:
  """Bytes of its training step, by XLA's account."""
  task = objectives.make(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  params = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optimizer.make(
    config.optimizer, config.train.num_steps, params
  )
  state = jax.eval_shape(steps.make_init(task, tx, config.seed))
  shardings = sharding.tree_shardings(state, mesh)
  step = jax.jit(
    steps.make_step(
      task,
      tx,
      schedule,
      seed=config.seed,
      accumulate=1,
      gather=lambda params: sharding.gather(params, mesh),
    ),
    in_shardings=(shardings, sharding.rows(mesh)),
    out_shardings=(shardings, sharding.replicated(mesh)),
    donate_argnums=0,
  )
  batch = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
    dict(task.batch_at("train", 0)),
  )
  found = step.lower(state, batch).compile().memory_analysis()
  state, temporaries = found.argument_size_in_bytes, found.temp_size_in_bytes
  results = found.output_size_in_bytes - found.alias_size_in_bytes
  return {
    "state": state,
    "temporaries": temporaries,
    "together": state + temporaries + results,
    "peak_memory_in_bytes": found.peak_memory_in_bytes,
  }


if __name__ == "__main__":
  main()
