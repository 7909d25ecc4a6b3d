"""Compares how objectives and PyTorch's MLM learn from the same tokens.

  python benchmarks/learning.py --positions 8e6 --json FILE --png FILE

All have the same small model (4 layers x 256), English novels, tokenizer, rows
of 128 tokens, number of positions, optimizer and schedule. All are measured on
one probe: held-out rows of running text with 15% of the tokens masked as in
BERT, the same rows and masks for all. maskedlm draws random tokens by
frequency, transformers' collator from the whole vocabulary; the loss at the
probe's [MASK]s alone is fair to both, and is printed beside the whole loss.
The peer is transformers' BertForMaskedLM with its own masking collator (extra
`peer`); --png needs matplotlib. ELECTRA's curve is its generator's; `modern` is
roberta's objective with ModernBERT's layers and as many parameters, and
`modern_small` the same by the recipe of configs/modern_small.py; a name with
`+muon`, such as `roberta+muon`, has Muon as the optimizer.

Each contender trains in a folder of --workdir, which keeps its curve: finished
ones are only printed, maskedlm's resume where they were stopped. Wall time and
CPU time are printed, as other work on the machine affects the first much more.
"""

import argparse
import json
import os
import pathlib
import time
from typing import NamedTuple

import arguments
import jax
import numpy as np

from maskedlm.config import defaults as config_lib
from maskedlm.config import overrides
from maskedlm.core.task import Task
from maskedlm.data.prepare import prepare
from maskedlm.modeling import losses, masked_lm
from maskedlm.modeling.architecture import encoder_config
from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.pretraining import objectives
from maskedlm.training import loop as train
from maskedlm.training import phases, sharding

ROOT = pathlib.Path(__file__).parent.parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)
LENGTH, ROWS, PROBE_ROWS, VOCAB = 128, 16, 512, 8_192
PEER, MODERN, MUON = "transformers", "modern", "+muon"
SMALL = "modern_small"  # configs/modern_small.py: modern, by its own recipe.
KNOWN = ("roberta", "mlm_nsp", "spanbert", "electra", "causal", PEER)
# ModernBERT's layers (arXiv:2412.13663), without its local attention.
MODERN_MODEL = {
  "position": "rope",
  "norm_order": "pre",
  "skip_first_norm": True,
  "mlp": "gated",
  "mlp_width": 704,  # Three matrices instead of two of 1,024.
  "biases": False,
  "type_vocab_size": 0,
  "init_stddev": 0.02,
}


class Point(NamedTuple):
  """A point of a curve."""

  positions: int
  nats: float  # Loss on the probe.
  accuracy: float
  seconds: float
  cpu_seconds: float
  mask_token_nats: float | None = None  # At the probe's [MASK]s alone.


class Clock:
  """Wall and CPU seconds since it was made."""

  def __init__(self):
    self._began = time.perf_counter(), time.process_time()

  def read(self) -> tuple[float, float]:
    wall, cpu = self._began
    return time.perf_counter() - wall, time.process_time() - cpu


def make_config(objective: str, num_steps: int, evaluations: int, seed: int):
  """Returns the config of a contender; only the objective differs."""
  config = config_lib.default(objective)
  config.name = objective
  config.seed = seed
  config.corpus.source = f"text:{DATA / 'text' / 'en_novels.txt'}"
  config.corpus.sentences = "lines"
  config.tokenizer.vocab_size = VOCAB
  config.model.update(
    num_layers=4, width=256, num_heads=4, mlp_width=1024, max_positions=LENGTH
  )
  # To leave the unigram plateau within minutes, a small model needs many small
  # steps, a wider initialization than 0.02, and no dropout in its only epoch.
  config.model.update(init_stddev=0.05, dropout=0.0, attention_dropout=0.0)
  config.data.update(length=LENGTH, batch_size=ROWS)
  config.optimizer.update(
    learning_rate=1e-3, b2=0.98, warmup_steps=min(100, num_steps // 4)
  )
  config.train.update(
    num_steps=num_steps,
    log_every=max(num_steps // 50, 1),
    eval_every=max(num_steps // evaluations, 1),
    checkpoint_every=max(num_steps // evaluations, 1),
    eval_rows=PROBE_ROWS,
  )
  return config


def make_probe(corpus) -> dict[str, np.ndarray]:
  """Returns corrupted held-out rows: input_ids [n, L], masked_positions [n, P].

  mask_token_weights [n, P] are the masked_weights where the input is [MASK].
  """
  config = make_config("roberta", 1, 1, seed=0)
  task = objectives.make_task(config, corpus)
  batches = [
    jax.device_get(
      task.corrupt(task.batch_at("heldout", i), jax.random.key(1_000 + i))
    )
    for i in range(task.num_heldout_batches)
  ]
  probe = {
    name: np.concatenate([batch[name] for batch in batches])
    for name in batches[0]
  }
  inputs = np.take_along_axis(
    probe["input_ids"], probe["masked_positions"], axis=1
  )
  is_mask = inputs == corpus.tokenizer.special.mask
  return {**probe, "mask_token_weights": probe["masked_weights"] * is_mask}


def on_probe(task: Task, probe, cfg_of) -> Task:
  """Returns the task with the probe's MLM as its held-out loss."""
  num_batches = len(probe["input_ids"]) // ROWS

  def batch_at(split, step):
    if split == "train":
      return task.batch_at(split, step)
    part = slice(step * ROWS, (step + 1) * ROWS)
    return {f"probe_{name}": values[part] for name, values in probe.items()}

  def loss(params, batch, key, train):
    if "probe_input_ids" not in batch:
      return task.loss(params, batch, key, train)
    batch = {n.removeprefix("probe_"): x for n, x in batch.items()}
    cfg, params = cfg_of(params)
    x = masked_lm.encode(cfg, params, batch, key, False)
    scores = masked_lm.loss_and_correct(cfg, params, batch, x)
    terms, stats = masked_lm.terms_and_metrics(scores, batch)
    at_mask = losses.weighted_sum(scores[0], batch["mask_token_weights"])
    return terms, {**stats, "mask_token_loss": at_mask}

  return task._replace(
    batch_at=batch_at,
    heldout=((lambda batch, key: batch, loss),),  # It is corrupted already.
    loss=loss,
    num_heldout_batches=num_batches,
  )


def train_ours(config, corpus, probe, folder) -> list[Point]:
  """Trains maskedlm and returns its curve; causal's is of next tokens."""
  objective, num_steps = config.objective.name, config.train.num_steps
  parts = phases.split(config, objectives.switched)
  tasks = [objectives.make_task(part.config, corpus) for part in parts]
  cfg = encoder_config(config.model, VOCAB, LENGTH)

  def with_mlm_head(params):
    """Returns (architecture, parameters) of the MLM."""
    if "generator" not in params:
      return cfg, params
    generator = EncoderConfig(**tasks[0].describe["generator"])
    return generator, masked_lm.with_generator(params)

  if objective != "causal":
    tasks = [on_probe(task, probe, with_mlm_head) for task in tasks]
  corpus.tokenizer.save(folder / "tokenizer")  # To fine-tune from the folder.
  mesh = sharding.make_mesh(config.mesh)
  clock = Clock()
  result = train.run(
    parts,
    tasks,
    folder,
    mesh=mesh,
    frozen=config_lib.frozen_options(config),
    identity={
      "config": json.loads(config.to_json_best_effort()),
      "corpus": corpus.fingerprint,
      "tokenizer": corpus.tokenizer.sha256,
    },
  )
  spent = folder / "seconds.jsonl"  # One line for each start.
  with spent.open("a") as file:
    file.write(json.dumps(clock.read()) + "\n")
  if result.interrupted:
    raise SystemExit(75)
  times = [json.loads(line) for line in spent.read_text().splitlines()]
  wall, cpu = (sum(column) for column in zip(*times, strict=True))
  kind = "lm" if objective == "causal" else "mlm"
  lines = (folder / "metrics.jsonl").read_text().splitlines()
  logged = [x for x in map(json.loads, lines) if "heldout/loss" in x]
  return [
    Point(
      x["step"] * ROWS * LENGTH,
      x[f"heldout/{kind}_loss"],
      x[f"heldout/{kind}_accuracy"],
      wall * x["step"] / num_steps,
      cpu * x["step"] / num_steps,
      x.get("heldout/mask_token_loss"),
    )
    for x in logged
  ]


def train_peer(config, corpus, probe, folder) -> list[Point]:
  """Trains transformers on roberta's rows and returns its curve."""
  import learning_peer  # In this folder; needs the extra `peer`.

  curve, clock = [], Clock()
  task = objectives.make_task(config, corpus)
  for step, nats, accuracy, at_mask in learning_peer.train(
    config, corpus, task, probe, folder
  ):
    point = Point(step * ROWS * LENGTH, nats, accuracy, *clock.read(), at_mask)
    curve.append(point)
    print(
      f"{PEER}: {step:,}, {nats:.3f} nats, {accuracy:.1%}; "
      f"{at_mask:.3f} at [MASK]",
      flush=True,
    )
  return curve


def parse(name: str) -> tuple[str, bool]:
  """Splits a contender's name into (one of KNOWN, ModernBERT's layers?)."""
  if name == SMALL:
    return "roberta", True
  name = name.removesuffix(MUON)
  is_modern = name == MODERN or name.startswith(f"{MODERN}-")
  base = name.removeprefix(MODERN).removeprefix("-") if is_modern else name
  base = base or "roberta"
  if base not in KNOWN:
    raise SystemExit(
      f"--contenders: {name!r} is unknown; known: {', '.join(KNOWN)}"
    )
  return base, is_modern


def plot(curves, path: pathlib.Path) -> None:
  """Plots probe loss over positions seen, with a panel for each layer type."""
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot

  titles = {False: "BERT's layers", True: "ModernBERT's layers"}
  kinds = sorted({parse(name)[1] for name in curves})
  figure, panels = pyplot.subplots(
    ncols=len(kinds),
    figsize=(1 + 5 * len(kinds), 5),
    sharey=True,
    sharex=True,
    squeeze=False,
  )
  axes_of = dict(zip(kinds, panels[0], strict=True))
  for name, curve in curves.items():
    base, is_modern = parse(name)
    axes_of[is_modern].plot(
      [p.positions / 1e6 for p in curve],
      [p.nats for p in curve],
      marker="o",
      color=f"C{KNOWN.index(base)}",
      linestyle="--" if name.endswith(MUON) else "-",
      label=f"{name} (next tokens)" if base == "causal" else name,
    )
  for kind, axes in axes_of.items():
    axes.set_title(titles[kind])
    axes.set_xlabel("positions seen, millions")
    axes.grid(alpha=0.3)
    axes.legend()
  panels[0, 0].set_ylabel("held-out MLM loss, nats")
  figure.tight_layout()
  figure.savefig(path, dpi=120)


def train_contender(
  name: str, num_steps, evaluations, seed, corpus, probe, workdir
):
  """Returns the curve, from the folder's curve.json if it is finished."""
  base, is_modern = parse(name)
  objective = "roberta" if base == PEER else base
  config = make_config(objective, num_steps, evaluations, seed)
  if is_modern:
    config.model.update(MODERN_MODEL)
  if name == SMALL:
    small = overrides.load_config(str(ROOT / "configs" / f"{SMALL}.py"))
    for section in ("objective", "optimizer", "phases"):
      config[section] = small[section]
    config.optimizer.warmup_steps = min(100, num_steps // 4)
  if name.endswith(MUON):
    config.optimizer.update(rule="muon", b1=0.95, learning_rate=2e-3)
  folder = workdir / f"{name}-{num_steps}-seed{seed}"
  folder.mkdir(parents=True, exist_ok=True)
  finished = folder / "curve.json"
  if not finished.exists():
    run = train_peer if base == PEER else train_ours
    curve = run(config, corpus, probe, folder)
    finished.write_text(json.dumps(curve))
  return [Point(*values) for values in json.loads(finished.read_text())]


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--positions", type=arguments.amount, default=16e6)
  parser.add_argument("--evaluations", type=arguments.count, default=8)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument(
    "--contenders",
    default=",".join([*KNOWN, *(f"{MODERN}-{name}" for name in KNOWN)]),
  )
  parser.add_argument(
    "--workdir", type=pathlib.Path, default=pathlib.Path("runs/learning")
  )
  parser.add_argument("--json", **arguments.TABLE)
  parser.add_argument("--png", type=pathlib.Path)
  args = parser.parse_args()
  contenders = args.contenders.split(",")
  for name in contenders:
    parse(name)  # Ends the program if it is unknown.
  num_steps = max(int(args.positions // (ROWS * LENGTH)), 1)
  workdir = args.workdir.resolve()
  workdir.mkdir(parents=True, exist_ok=True)
  settings = num_steps, args.evaluations, args.seed
  corpus = prepare.prepare(
    make_config("mlm_nsp", *settings), workdir / "corpus"
  )
  probe = make_probe(corpus)
  curves = {
    name: train_contender(name, *settings, corpus, probe, workdir)
    for name in contenders
  }
  print(f"\n{num_steps:,} steps of {ROWS} rows of {LENGTH} tokens\n")
  print(
    "| objective | held-out loss, nats | at [MASK] alone | accuracy "
    "| minutes | CPU minutes |"
  )
  print("|---|---|---|---|---|---|")
  rows = []
  for name, curve in curves.items():
    _, nats, accuracy, wall, cpu, at_mask = curve[-1]
    peer = f"{MODERN}-{PEER}" if parse(name)[1] else PEER
    reference = curves[peer][-1].nats if peer in curves else None
    print(
      f"| {name} | {nats:.3f} | {f'{at_mask:.3f}' if at_mask else ''} "
      f"| {accuracy:.1%} | {wall / 60:.1f} | {cpu / 60:.1f} |"
    )
    rows.append(
      {
        "work": f"{name}, {num_steps} steps",
        "ours": nats,
        "peer": reference,
        "ratio": nats / reference if reference else None,
        "unit": "nats of the held-out probe",
        "curve": [point._asdict() for point in curve],
      }
    )
  if args.json:
    args.json.write_text(json.dumps(rows, indent=2) + "\n")
  if args.png:
    plot(curves, args.png)


if __name__ == "__main__":
  main()
