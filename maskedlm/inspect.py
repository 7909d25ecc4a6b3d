"""`maskedlm inspect`: what will be trained, before an hour is spent on it.

On the CPU, in seconds: sample rows with what was hidden in them, the measured
shares, the epochs, the learning rate, what decays, the parameters, the FLOPs
and the bytes. Facts come from the run's own Task and corpus (`facts_of_rows`)
or from its shapes alone (`facts_of_model`); inspect_html.py makes a page of
them.
"""

import argparse
import collections
import json
import math
import pathlib
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from maskedlm import cli, flags, inspect_html, optim, sharding
from maskedlm import step as steps
from maskedlm.config import ConfigError, load_objective
from maskedlm.corpus import standin, store
from maskedlm.task import Task

MEASURED_ROWS = 512  # Rows, about, over which shares are measured.
CURVE_POINTS = 61
COLOURS = {"mask": "\033[31m", "random": "\033[33m", "keep": "\033[32m"}


class Section(NamedTuple):
  """A heading and its lines, for the terminal and for the page."""

  title: str
  lines: list[str]


class Token(NamedTuple):
  """A token of a sample row."""

  text: str  # What stood there.
  shown: str  # What the model sees there.
  treatment: str  # "" | mask | random | keep.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm inspect",
    description="Shows what a config will train, before it is trained. Takes "
    "the corpus of --config.corpus.path or of --workdir, if one is there.",
  )
  parser.add_argument("--workdir", help="a run's folder, for its corpus")
  parser.add_argument("--rows", type=int, default=3, help="sample rows to show")
  parser.add_argument("--html", metavar="FILE", help="write a page as well")
  parser.add_argument(
    "--json", action="store_true", help="print the figures alone, as JSON"
  )
  args, config = flags.parse(parser, argv)
  if args.rows < 0:
    raise ConfigError(f"--rows={args.rows}: expected 0 or more.")
  corpus = _find_corpus(config, args.workdir)
  task = make_task(config, corpus or standin.corpus(config.tokenizer))
  figures, sections = facts_of_model(config, task)
  rows = []
  if corpus is None:
    sections.append(
      Section(
        "Rows",
        ["no corpus yet: `maskedlm prepare` makes one; then more is shown"],
      )
    )
  else:
    measured, more, rows = facts_of_rows(
      config, task, corpus, num_samples=args.rows
    )
    figures.update(measured)
    sections += more
  curve = rate_curve(config)
  if args.html:
    page = inspect_html.page(config.name, sections, rows, curve)
    pathlib.Path(args.html).write_text(page, encoding="utf-8")
  if args.json:
    print(json.dumps(figures, indent=2))
    return 0
  coloured = sys.stdout.isatty()
  for section in sections:
    print(f"\n{section.title}")
    for line in section.lines:
      print(f"  {line}")
  print(f"\nLearning rate over {config.train.num_steps:,} steps")
  print(f"  {sparkline([rate for _, rate in curve])}")
  for row in rows:
    print(f"\n{format_row(row, coloured)}")
  return 0


def make_task(config: ConfigDict, corpus: store.Corpus) -> Task:
  """The config's Task, as one host would have it."""
  options = config.objective.to_dict()
  return load_objective(options.pop("name")).make(
    config, corpus, (0, 1), **options
  )


def facts_of_model(
  config: ConfigDict, task: Task
) -> tuple[dict[str, Any], list[Section]]:
  """(figures, sections) that need no text: sizes, decay, FLOPs, bytes."""
  params = jax.eval_shape(task.init, jax.random.key(0))
  sizes = {p: math.prod(x.shape) for p, x in _paths(params).items()}
  total = sum(sizes.values())
  blocks: dict[str, int] = {}
  for path, size in sizes.items():
    block = "/".join(path.split("/")[:2])
    blocks[block] = blocks.get(block, 0) + size
  decays = optim.decayed(params, config.optimizer.no_decay)
  decaying = sum(sizes[path] for path, yes in decays.items() if yes)

  tx, _ = optim.make(config.optimizer, config.train.num_steps, params)
  state = jax.eval_shape(steps.make_init(task, tx, 0))
  mesh = planned_mesh(config.mesh)
  param_bytes = bytes_per_device(state.params, mesh)
  state_bytes = bytes_per_device(state, mesh) - param_bytes
  devices = math.prod(mesh.shape.values())
  parts = mesh.shape["data"] * mesh.shape["fsdp"] * config.train.accumulate
  rows = max(config.data.batch_size // parts, 1)
  activations = activation_bytes(config, rows)
  flops = task.flops(0)
  figures = {
    "parameters": total,
    "decaying_parameters": decaying,
    "flops_per_step": flops,
    "devices": devices,
    "parameter_bytes_per_device": param_bytes,
    "optimizer_bytes_per_device": state_bytes,
    "activation_bytes_per_device": activations,
  }
  o = config.optimizer
  sections = [
    Section(
      f"Parameters: {total:,}",
      [f"{size:>13,}  {block}" for block, size in blocks.items()],
    ),
    Section(
      f"Optimizer: {o.rule}, peak rate {o.learning_rate:g}, {o.schedule}, "
      f"{o.warmup_steps:,} steps of warm-up",
      [
        f"{decaying:,} parameters decay by {o.weight_decay:g}, "
        f"{total - decaying:,} don't:",
        *(f"  {path}" for path, yes in decays.items() if not yes),
      ],
    ),
    Section(
      f"A step on {devices} device(s), mesh {dict(mesh.shape)}",
      [
        f"{config.data.batch_size:,} rows of {config.data.length} tokens, "
        f"{rows} of them on a device at a time",
        f"{flops / 1e12:.3g} TFLOP (matmuls, forward and backward)",
        f"{_size(param_bytes)} of parameters, {_size(state_bytes)} of "
        f"optimizer state, about {_size(activations)} of activations a device",
      ],
    ),
  ]
  return figures, sections


def facts_of_rows(
  config: ConfigDict, task: Task, corpus: store.Corpus, *, num_samples: int
) -> tuple[dict[str, Any], list[Section], list[list[Token]]]:
  """(figures, sections, sample rows), measured on the first training steps."""
  tokenizer = corpus.tokenizer
  corrupt = jax.jit(task.corrupt)
  batches = []
  key = jax.random.key(config.seed)
  for step in range(-(-MEASURED_ROWS // config.data.batch_size)):
    plain = task.batch_at("train", step)
    hidden = jax.device_get(corrupt(plain, jax.random.fold_in(key, step)))
    batches.append((plain, hidden))
  figures = measure(batches, tokenizer)
  meta = corpus.meta["splits"]["train"]
  seen = figures["real_tokens_per_row"] * sum(
    len(task.row_ids("train", s)) for s in (0,)
  )
  tokens = seen * config.train.num_steps
  figures["tokens_per_step"] = seen
  figures["tokens_in_corpus"] = meta["tokens"]
  figures["epochs"] = tokens / max(meta["tokens"], 1)

  def percent(name):
    return "-" if figures[name] is None else f"{figures[name]:.2%}"

  spans = figures["span_length_mean"]
  mask = tokenizer.tokens(tokenizer.special.mask)
  lines = [
    f"{percent('mask_rate')} of the real tokens are predicted, in stretches "
    + ("-" if spans is None else f"of {spans:.2f} words"),
    f"{percent('mask_share')} of them became {mask}, "
    f"{percent('random_share')} another token, {percent('keep_share')} stayed",
    f"{percent('padding_share')} of the positions are padding, "
    f"{percent('unk_share')} of the tokens unknown",
  ]
  if figures["nsp_random_share"] is not None:
    lines.append(f"{percent('nsp_random_share')} of the pairs have a random B")
  sections = [
    Section(f"Rows, measured on {figures['rows_measured']:,}", lines),
    Section(
      "Text",
      [
        f"{meta['tokens']:,} tokens in {meta['documents']:,} documents; "
        f"{seen:,.0f} real tokens a step, {tokens:,.0f} in the run: "
        f"about {figures['epochs']:.3g} epochs",
      ],
    ),
  ]
  plain, hidden = batches[0]
  samples = [
    sample_row(plain, hidden, i, tokenizer)
    for i in range(min(num_samples, len(plain["input_ids"])))
  ]
  return figures, sections, samples


def measure(batches: Sequence[tuple], tokenizer) -> dict[str, Any]:
  """Shares over (plain, corrupted) batches; None for what a task hasn't.

  mask_rate is of the real tokens, specials included; the three treatments are
  of the predicted tokens. A random token that happens to be the one that stood
  there counts as kept. span_length_mean is in words: of adjacent predicted
  tokens, how many words they touch.
  """
  count: collections.Counter = collections.Counter()
  special = tokenizer.special
  for plain, hidden in batches:
    ids, real = plain["input_ids"], plain["segment_ids"] > 0
    count["rows"] += len(ids)
    count["real"] += real.sum()
    count["positions"] += real.size
    count["unk"] += (ids[real] == special.unk).sum()
    if "masked_positions" in hidden and np.shape(hidden["input_ids"]) == (
      ids.shape
    ):
      chosen = chosen_mask(hidden)
      seen = hidden["input_ids"]
      count["chosen"] += chosen.sum()
      count["mask"] += (chosen & (seen == special.mask)).sum()
      count["keep"] += (chosen & (seen == ids)).sum()
      starts = chosen & ~np.pad(chosen, ((0, 0), (1, 0)))[:, :-1]
      begins = np.asarray(tokenizer.starts_word)[ids]
      count["runs"] += starts.sum()
      count["words"] += (chosen & (starts | begins)).sum()
    if "nsp_labels" in plain:
      weight = np.broadcast_to(
        plain.get("segment_weights", np.ones_like(plain["nsp_labels"])),
        plain["nsp_labels"].shape,
      )
      count["pairs"] += weight.sum()
      count["random"] += (weight * plain["nsp_labels"]).sum()

  def share(part, whole):
    return float(count[part] / count[whole]) if count[whole] else None

  mask, keep = share("mask", "chosen"), share("keep", "chosen")
  real = share("real", "positions")
  return {
    "mask_rate": share("chosen", "real") if count["chosen"] else None,
    "mask_share": mask,
    "random_share": None if mask is None else 1 - mask - keep,
    "keep_share": keep,
    "span_length_mean": share("words", "runs"),
    "nsp_random_share": share("random", "pairs"),
    "padding_share": 1 - real,
    "unk_share": share("unk", "real"),
    "real_tokens_per_row": share("real", "rows"),
    "rows_measured": int(count["rows"]),
  }


def chosen_mask(hidden: Mapping[str, Any]) -> np.ndarray:
  """[B, L] bool: which positions are predicted."""
  chosen = np.zeros(hidden["input_ids"].shape, bool)
  row, slot = np.nonzero(hidden["masked_weights"] > 0)
  chosen[row, hidden["masked_positions"][row, slot]] = True
  return chosen


def sample_row(plain, hidden, index: int, tokenizer) -> list[Token]:
  """A row's real tokens, with what became of each."""
  ids, seen = plain["input_ids"][index], hidden["input_ids"][index]
  chosen = np.zeros(len(ids), bool)
  if "masked_positions" in hidden and len(seen) == len(ids):
    chosen = chosen_mask(hidden)[index]
  row = []
  for i in np.flatnonzero(plain["segment_ids"][index] > 0):
    treatment = ""
    if chosen[i]:
      treatment = "random"
      if seen[i] == tokenizer.special.mask:
        treatment = "mask"
      elif seen[i] == ids[i]:
        treatment = "keep"
    text = _piece(tokenizer, ids[i])
    row.append(Token(text, _piece(tokenizer, seen[i]).strip(), treatment))
  return row


def format_row(row: Sequence[Token], coloured: bool) -> str:
  """A row as text: {what stood there>what is seen} where it is predicted."""
  parts = []
  for token in row:
    if not token.treatment:
      parts.append(token.text)
      continue
    space = " " if token.text.startswith(" ") else ""
    text = f"{{{token.text.strip()}>{token.shown}}}"
    if coloured:
      text = f"{COLOURS[token.treatment]}{text}\033[0m"
    parts.append(space + text)
  return "".join(parts).strip()


def rate_curve(config: ConfigDict) -> list[tuple[int, float]]:
  """[(step, learning rate)] over the run."""
  num_steps = config.train.num_steps
  schedule = optim.make_schedule(config.optimizer, num_steps)
  points = np.linspace(0, num_steps - 1, CURVE_POINTS).astype(int)
  peak = min(config.optimizer.warmup_steps, num_steps - 1)
  points = np.unique([*points, peak])
  return [
    (int(s), float(r)) for s, r in zip(points, schedule(points), strict=True)
  ]


def sparkline(values: Sequence[float]) -> str:
  """Numbers from 0 to their largest, as a line of blocks."""
  top = max(values) or 1.0
  return "".join("▁▂▃▄▅▆▇█"[round(7 * v / top)] for v in values)


def planned_mesh(mesh) -> types.SimpleNamespace:
  """The sizes of config.mesh, for devices that need not be here.

  An axis of -1 is what this machine's devices leave for it, at least 1.
  """
  sizes = {axis: mesh[axis] for axis in sharding.AXES}
  known = math.prod(size for size in sizes.values() if size != -1)
  rest = max(jax.device_count() // max(known, 1), 1)
  return types.SimpleNamespace(
    shape={axis: rest if s == -1 else s for axis, s in sizes.items()}
  )


def bytes_per_device(tree, mesh) -> int:
  """What one device holds of a tree of shapes, by the sharding rules."""
  total = 0
  for path, x in _paths(tree).items():
    spec = sharding.spec_of(path, x.shape, mesh)
    parts = math.prod(mesh.shape[axis] for axis in spec if axis)
    total += math.prod(x.shape) * x.dtype.itemsize // parts
  return total


def activation_bytes(config: ConfigDict, rows: int) -> int:
  """An estimate of what backward keeps for `rows` rows on one device.

  By layer and token: 8 vectors of width D and 2 of the MLP's F, and 2 L
  attention probabilities a head; with remat only the layer's input (full), or
  the matmuls' outputs (dots). The MLM head's logits come twice, in float32.
  """
  m, L = config.model, config.data.length
  size = 2 if m.dtype == "bfloat16" else 4
  D, F, H = m.width, m.mlp_width, m.num_heads
  kept = {
    "none": 8 * D + 2 * F + 2 * H * L,
    "dots": 5 * D + F,
    "full": D,
  }[m.remat]
  slots = math.ceil(config.objective.get("mask_rate", 0.15) * L)
  layers = m.num_layers * rows * L * kept * size
  return layers + 2 * 4 * rows * slots * config.tokenizer.vocab_size


def _find_corpus(config: ConfigDict, workdir) -> store.Corpus | None:
  if config.corpus.path:  # A wrong path is an error, and not "no corpus".
    return store.open_corpus(config.corpus.path)
  path = pathlib.Path(workdir or f"runs/{config.name}", "corpus")
  return store.open_corpus(path) if path.is_dir() else None


def _paths(tree) -> dict[str, Any]:
  leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
  return {sharding.path_of(path): x for path, x in leaves}


def _piece(tokenizer, token_id) -> str:
  """A token as it stands in running text: a space where a word begins."""
  token_id = int(token_id)
  if token_id in tokenizer.special_ids:
    return f" {tokenizer.tokens(token_id)}"
  text = tokenizer.decode([token_id]).strip() or tokenizer.tokens(token_id)
  if tokenizer.starts_word[token_id]:
    return f" {text}"
  return text.removeprefix("##")


def _size(count: float) -> str:
  units = ["bytes", "kB", "MB", "GB", "TB"]
  while count >= 1000 and len(units) > 1:
    count, units = count / 1000, units[1:]
  return f"{count:.3g} {units[0]}"


if __name__ == "__main__":
  sys.exit(cli.run(main))
