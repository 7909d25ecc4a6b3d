"""One training step of ours against PyTorch + transformers, side by side.

  python benchmarks/pretrain_step.py --shapes small,base --json FILE

Both train BERT on MLM + NSP with dropout 0.1 and AdamW (clipping, decay) on
the same rows of 128 tokens, 20 of them predicted. Ours is what `maskedlm
pretrain` compiles; it masks within the step, the peer is given masked rows.
The peer runs eager and under torch.compile, each with its own head, over all
positions, and with the head over the predicted ones only, as ours has it.
float32 on a CPU; bfloat16 on a GPU, which both frameworks then must see.

Contenders take turns, one step (on a GPU, ten) at a time; medians count. On a
CPU the machine must be idle otherwise: with one of two cores taken by another
process the peer's step of the small shape took 7.1 s, not 2.0, as its OpenMP
threads wait for each other. A table made so says that it is not valid. Needs
the extra `peer`.
Read top-down: the comparison -> ours -> the peer.
"""

# ruff: noqa: E402

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import tempfile
import time
import types
from collections.abc import Callable, Mapping
from typing import NamedTuple

# The two frameworks share a GPU: neither may take all of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from maskedlm import malloc

malloc.keep_freed()  # As the command does; the peer gains from it too.

import jax
import numpy as np
import torch
import transformers
from torch.nn import functional

from maskedlm import config as config_lib
from maskedlm import objectives, optim, sharding
from maskedlm import step as steps
from maskedlm.corpus import store
from maskedlm.modeling.encoder import encoder_config
from maskedlm.modeling.flops import train_flops
from maskedlm.task import Task

LENGTH, SLOTS, VOCAB, DROPOUT = 128, 20, 30_522, 0.1
NUM_BATCHES = 4  # Different ones, in turn.


class Shape(NamedTuple):
  """A model and its batch."""

  layers: int
  width: int
  heads: int
  mlp_width: int
  rows: int
  vocab: int = VOCAB


SHAPES = {
  "small": Shape(4, 256, 4, 1024, rows=32),
  "base": Shape(12, 768, 12, 3072, rows=8),
}


class Contender(NamedTuple):
  """Something that trains."""

  run: Callable[[int], float]  # Takes that many steps; the last one's loss.
  row_flops: float  # Matmul FLOPs that it executes for a row.


def main() -> None:
  """Measures, prints a table for each shape, writes the JSON."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--shapes", default="small,base", help="comma-separated")
  parser.add_argument("--steps", type=int, default=15, help="turns of each")
  parser.add_argument("--rows", type=int, help="rows in a batch, if others")
  parser.add_argument("--json", metavar="FILE", help="where to write the table")
  args = parser.parse_args()
  names = args.shapes.split(",")
  if not set(names) <= set(SHAPES) or args.steps < 1:
    parser.error(f"--shapes: of {', '.join(SHAPES)}; --steps: 1 or more")
  on_gpu = jax.default_backend() == "gpu"
  if on_gpu != torch.cuda.is_available():
    parser.error(
      f"jax runs on {jax.default_backend()}, but torch.cuda.is_available() is "
      f"{torch.cuda.is_available()}: install both for one device, or set "
      "JAX_PLATFORMS=cpu CUDA_VISIBLE_DEVICES= for the CPU."
    )
  print(machine())
  records = []
  for name in names:
    shape = SHAPES[name]._replace(rows=args.rows or SHAPES[name].rows)
    dtype = "bfloat16" if on_gpu else "float32"
    block = 10 if on_gpu else 1
    records += compare(shape, dtype, rounds=args.steps, block=block)
  if args.json:
    with open(args.json, "w", encoding="utf-8") as file:
      json.dump(records, file, indent=2)


def compare(shape: Shape, dtype: str, *, rounds: int, block: int) -> list[dict]:
  """Measures one shape and prints its table; a JSON record for each peer."""
  config = configure(shape, dtype)
  with tempfile.TemporaryDirectory() as directory:
    task = objectives.make(config, random_corpus(directory))
    batches = [task.batch_at("train", i) for i in range(NUM_BATCHES)]
  real_share = float(np.mean([batch["segment_ids"] > 0 for batch in batches]))
  ours = our_step(config, task, batches)
  peers = peer_steps(shape, dtype, masked(task, batches))
  contenders = {"maskedlm": ours, **peers}
  seconds, others = measure(contenders, rounds=rounds, block=block)

  work = f"{shape.layers}x{shape.width} B{shape.rows} S{LENGTH} {dtype}"
  if others > 0.1:
    work += f" (NOT VALID: other processes kept {others:.1f} cores busy)"
  print(f"\n{work}, {real_share:.1%} of the tokens are real\n")
  print("| | ms a step | rows/s | real tokens/s | GFLOP/s | FLOPs | time |")
  print("|---|---|---|---|---|---|---|")
  tokens = {
    name: shape.rows * LENGTH * real_share / taken
    for name, taken in seconds.items()
  }
  for name, taken in seconds.items():
    flops = contenders[name].row_flops
    print(
      f"| {name} | {taken * 1e3:,.1f} | {shape.rows / taken:,.1f} "
      f"| {tokens[name]:,.0f} | {shape.rows * flops / taken / 1e9:,.0f} "
      f"| x{flops / ours.row_flops:.2f} | x{taken / seconds['maskedlm']:.2f} |"
    )
  return [
    {
      "work": f"training step, {work}, against {name}",
      "ours": round(tokens["maskedlm"], 1),
      "peer": round(tokens[name], 1),
      "ratio": round(tokens["maskedlm"] / tokens[name], 3),
      "unit": "real tokens/s",
    }
    for name in tokens
    if name in peers
  ]


def measure(
  contenders: Mapping[str, Contender], *, rounds: int, block: int
) -> tuple[dict[str, float], float]:
  """Median seconds of a step by name, and the cores that others kept busy.

  A compiled contender that can't start is left out, with a message.
  """
  seconds: dict[str, list[float]] = {}
  for name, contender in contenders.items():
    try:  # Compiles, and warms the caches.
      loss = contender.run(2)
    except Exception as error:
      if "compiled" not in name:  # torch.compile has many ways to fail.
        raise
      print(f"{name}: left out, {type(error).__name__}: {str(error)[:300]}")
      continue
    if not math.isfinite(loss):
      raise SystemExit(f"{name}: its loss is {loss}")
    seconds[name] = []
  start, others = time.perf_counter(), others_seconds()
  for _ in range(rounds):
    for name, taken in seconds.items():
      began = time.perf_counter()
      contenders[name].run(block)
      taken.append((time.perf_counter() - began) / block)
  others = (others_seconds() - others) / (time.perf_counter() - start)
  medians = {name: statistics.median(taken) for name, taken in seconds.items()}
  return medians, others


def others_seconds() -> float:
  """CPU seconds that other processes used up to now; 0 where unknown."""
  if not os.path.exists("/proc/stat"):
    return 0.0
  with open("/proc/stat", encoding="utf-8") as file:
    user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
  busy = (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
  return busy - sum(os.times()[:4])


def machine() -> str:
  """What this is measured on."""
  name = platform.processor() or platform.machine()
  if torch.cuda.is_available():
    name = torch.cuda.get_device_name()
  elif os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
      models = [line.split(":")[1] for line in file if "model name" in line]
    name = models[0].strip() if models else name
  return (
    f"{name}, {os.cpu_count()} cores; jax {jax.__version__}, torch "
    f"{torch.__version__}, transformers {transformers.__version__}"
  )


# Ours.


def configure(shape: Shape, dtype: str):
  """The config that trains the shape."""
  config = config_lib.default("mlm_nsp")
  config.model.num_layers = shape.layers
  config.model.width = shape.width
  config.model.num_heads = shape.heads
  config.model.mlp_width = shape.mlp_width
  config.model.dropout = config.model.attention_dropout = DROPOUT
  config.model.dtype = dtype
  config.objective.max_predictions = SLOTS
  config.data.length = LENGTH
  config.data.batch_size = shape.rows
  config.train.eval_rows = 0
  config.optimizer.warmup_steps = 0
  return config


def our_step(config, task: Task, batches: list) -> Contender:
  """The step as train.py compiles it, on one device."""
  mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
  params = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optim.make(config.optimizer, config.train.num_steps, params)
  init = steps.make_init(task, tx, config.seed)
  shardings = sharding.tree_shardings(jax.eval_shape(init), mesh)
  step = jax.jit(
    steps.make_step(
      task,
      tx,
      schedule,
      seed=config.seed,
      accumulate=config.train.accumulate,
    ),
    in_shardings=(shardings, sharding.rows(mesh)),
    out_shardings=(shardings, sharding.replicated(mesh)),
    donate_argnums=0,
  )
  state = jax.jit(init, out_shardings=shardings)()
  turn = itertools.cycle(batches)

  def run(count: int) -> float:
    nonlocal state
    for _ in range(count):
      state, metrics = step(state, sharding.place(next(turn), mesh))
    jax.block_until_ready(state)
    return float(metrics["loss"][0])

  return Contender(run, task.flops(0) / config.data.batch_size)


def random_corpus(directory: str):
  """2,000 documents of 30 sentences of 5 to 35 tokens, with no text behind."""
  rng = np.random.default_rng(0)
  sentences = np.cumsum([0, *rng.integers(5, 36, 2_000 * 30)])
  documents = np.arange(0, len(sentences), 30)
  tokens = rng.integers(1_000, VOCAB, sentences[-1]).astype(np.uint16)

  def concat(array):
    size = np.array([0, len(array)])
    return store.Concat((array,), size, np.zeros(1, array.dtype))

  split = store.Split(*map(concat, (tokens, sentences, documents)))
  tokenizer = types.SimpleNamespace(
    vocab_size=VOCAB,
    special=types.SimpleNamespace(pad=0, unk=100, cls=101, sep=102, mask=103),
    special_ids=np.arange(1_000),  # [unusedN] too, as in BERT's vocabulary.
  )
  return types.SimpleNamespace(
    path=directory,
    fingerprint="random",
    parts=(),
    train=split,
    heldout=split,
    token_counts=np.bincount(tokens, minlength=VOCAB),
    tokenizer=tokenizer,
  )


# The peer.


def masked(task: Task, batches: list) -> list[dict]:
  """The batches as the peer reads them: masked, label -100 = no label."""
  corrupt = jax.jit(task.corrupt)
  out = []
  for i, batch in enumerate(batches):
    batch = jax.device_get(corrupt(batch, jax.random.key(i)))
    chosen = batch["masked_weights"] > 0
    slot_labels = np.where(chosen, batch["masked_labels"], -100)
    labels = np.full_like(batch["input_ids"], -100)
    row, slot = np.nonzero(chosen)
    labels[row, batch["masked_positions"][row, slot]] = slot_labels[row, slot]
    arrays = {**batch, "slot_labels": slot_labels, "labels": labels}
    out.append(
      {k: torch.from_numpy(np.array(v)).long() for k, v in arrays.items()}
    )
  return out


def peer_steps(
  shape: Shape, dtype: str, batches: list[dict]
) -> dict[str, Contender]:
  """Its variants. They train one model in turn: weights don't change speed."""
  device = "cuda" if torch.cuda.is_available() else "cpu"
  torch.manual_seed(0)
  architecture = transformers.BertConfig(
    vocab_size=shape.vocab,
    num_hidden_layers=shape.layers,
    hidden_size=shape.width,
    num_attention_heads=shape.heads,
    intermediate_size=shape.mlp_width,
    hidden_dropout_prob=DROPOUT,
    attention_probs_dropout_prob=DROPOUT,
  )
  model = transformers.AutoModelForPreTraining.from_config(
    architecture, attn_implementation="sdpa"
  )
  model.to(device).train()
  named = dict(model.named_parameters())
  kept = [p for n, p in named.items() if "bias" in n or "LayerNorm" in n]
  decayed = [p for p in named.values() if all(p is not k for k in kept)]
  optimizer = torch.optim.AdamW(
    [{"params": decayed}, {"params": kept, "weight_decay": 0.0}],
    lr=1e-4,
    weight_decay=0.01,
    fused=True,  # The fastest of its implementations.
  )

  def train_step(loss_of, batch) -> torch.Tensor:
    batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
    bf16 = dtype == "bfloat16"
    with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
      loss = loss_of(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()

  def contender(loss_of, slots: int) -> Contender:
    turn = itertools.cycle(batches)

    def run(count: int) -> float:
      for _ in range(count):
        loss = train_step(loss_of, next(turn))
      if device == "cuda":
        torch.cuda.synchronize()
      return float(loss)

    return Contender(run, row_flops(shape, slots))

  compiled = torch.compile(full_loss), torch.compile(gathered_loss)
  return {
    "transformers, eager": contender(full_loss, LENGTH),
    "transformers, eager, gathered": contender(gathered_loss, SLOTS),
    "transformers, compiled": contender(compiled[0], LENGTH),
    "transformers, compiled, gathered": contender(compiled[1], SLOTS),
  }


def full_loss(model, batch) -> torch.Tensor:
  """transformers' own loss: logits for every position."""
  return model(
    input_ids=batch["input_ids"],
    attention_mask=batch["segment_ids"],
    token_type_ids=batch["token_type_ids"],
    labels=batch["labels"],
    next_sentence_label=batch["nsp_labels"],
  ).loss


def gathered_loss(model, batch) -> torch.Tensor:
  """The same loss, with logits for the predicted positions only."""
  hidden, pooled = model.bert(
    input_ids=batch["input_ids"],
    attention_mask=batch["segment_ids"],
    token_type_ids=batch["token_type_ids"],
    return_dict=False,
  )
  rows = torch.arange(len(hidden), device=hidden.device)[:, None]
  mlm, nsp = model.cls(hidden[rows, batch["masked_positions"]], pooled)
  loss_of = functional.cross_entropy
  mlm_loss = loss_of(mlm.flatten(0, 1), batch["slot_labels"].flatten())
  return mlm_loss + loss_of(nsp, batch["nsp_labels"])


def row_flops(shape: Shape, slots: int) -> float:
  """Counted as ours are, with the head over `slots` positions."""
  model = configure(shape, "float32").model
  cfg = encoder_config(model, shape.vocab, LENGTH)
  return train_flops(cfg, LENGTH, num_slots=slots)


if __name__ == "__main__":
  main()
