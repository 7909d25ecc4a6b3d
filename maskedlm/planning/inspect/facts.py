"""Collects what `maskedlm inspect` shows about a run before it starts.

That is sample rows with their masks, measured shares, epochs, the learning
rate, weight decay, parameters, FLOPs and bytes, and takes seconds on the CPU.
They come from the run's own Task and corpus (`facts_of_rows`) or from its
shapes alone (`facts_of_model`); html_page.py renders them as a page.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from maskedlm.core.counts import counted
from maskedlm.core.task import Params, Task
from maskedlm.data.batches import batch_costs
from maskedlm.data.corpus import store
from maskedlm.planning.inspect import languages, step_sizes
from maskedlm.planning.inspect.rows import (
  NOTHING,
  Token,
  measure_rows,
  sample_row,
)
from maskedlm.pretraining import epochs, objectives
from maskedlm.pretraining.config import PretrainConfig
from maskedlm.pretraining.initial import grow, init_from
from maskedlm.training import optimizer, sharding
from maskedlm.training import step as steps
from maskedlm.training.checkpoints import load
from maskedlm.training.phases import Phase

MEASURED_ROWS = 512  # Rows, at least, on which shares are measured.


class Section(NamedTuple):
  """A heading and its lines, for the terminal and the page."""

  title: str
  lines: list[str]


def facts_of_model(
  phases: Sequence[Phase], tasks: Sequence[Task]
) -> tuple[dict[str, Any], list[Section]]:
  """Returns (figures, sections) about sizes, decay, FLOPs and bytes."""
  config, task = phases[0].config, tasks[0]
  params = jax.eval_shape(task.init, jax.random.key(0))
  sizes = {p: math.prod(x.shape) for p, x in sharding.by_path(params).items()}
  counts = parameter_figures(config, params)
  total = counts["parameters"]
  decays = optimizer.decayed(params, config.optimizer.no_decay)
  decaying = sum(sizes[path] for path, yes in decays.items() if yes)

  num_steps = phases[0].rates[1]
  tx, _ = optimizer.make_optimizer(config.optimizer, num_steps, params)
  warmup = optimizer.warmup_steps(config.optimizer, num_steps)
  average = config.train.ema_decay
  state = jax.eval_shape(steps.make_init(task, tx, 0, ema_decay=average))
  state = state._replace(fixed=task.fixed.shapes)
  step = step_sizes.step_figures(phases, tasks, state)
  figures = {**counts, "decaying_parameters": decaying, **step}
  o = config.optimizer
  sections = [
    Section(*format_parameters(counts)),
    Section(
      f"Optimizer: {o.rule}, peak rate {o.learning_rate:g}, {o.schedule}, "
      f"{counted(warmup, 'step')} of warm-up",
      [
        f"{decaying:,} parameters decay by {o.weight_decay:g}, "
        f"{total - decaying:,} don't" + (":" if total > decaying else "."),
        *(f"  {path}" for path, yes in decays.items() if not yes),
      ],
    ),
    *(
      Section(*step_sizes.format_step(phase.config, figures, phase_figures))
      for phase, phase_figures in zip(phases, figures["phases"], strict=True)
    ),
  ]
  return figures, sections


def parameter_figures(config: PretrainConfig, params: Params) -> dict[str, Any]:
  """Returns the numbers of parameters of the blocks of a model.

  Returns:
    parameters, the total; blocks, {"encoder/embeddings": ...}; and, with
    config.init_from, init_from: its path, and the names of the subtrees that
    are taken, new and unused (init_from.compare).

  Raises:
    CheckpointError, ConfigError: init_from can't be read, or doesn't fit.
  """
  blocks: dict[str, int] = {}
  for path, x in sharding.by_path(params).items():
    block = "/".join(path.split("/")[:2])
    blocks[block] = blocks.get(block, 0) + math.prod(x.shape)
  figures = {"parameters": sum(blocks.values()), "blocks": blocks}
  if config.init_from:
    path = config.init_from
    pretrained = jax.eval_shape(
      lambda old: grow.METHODS[config.grow](old, params),
      load.param_shapes(path),
    )
    parts = init_from.compare(path, pretrained, params)
    figures["init_from"] = {"path": path, **parts._asdict()}
  return figures


def format_parameters(figures: dict[str, Any]) -> tuple[str, list[str]]:
  """Returns (title, lines) of the result of `parameter_figures`."""
  blocks, start = figures["blocks"], figures.get("init_from")
  title = f"Parameters: {figures['parameters']:,}"
  if not start:
    return title, [f"{size:>13,}  {block}" for block, size in blocks.items()]
  new = {name: name.split("/")[0] in start["new"] for name in blocks}
  taken = sum(size for name, size in blocks.items() if not new[name])
  lines = [
    f"{size:>13,}  {name}  {'new' if new[name] else 'from init_from'}"
    for name, size in blocks.items()
  ]
  if start["unused"]:
    unused = ", ".join(start["unused"])
    lines.append(f"not used of init_from: {unused}")
  return f"{title}, of which {taken:,} are from {start['path']}", lines


def facts_of_rows(
  phases: Sequence[Phase],
  tasks: Sequence[Task],
  corpus: store.Corpus,
  *,
  num_samples: int,
) -> tuple[dict[str, Any], list[Section], list[list[Token]]]:
  """Returns (figures, sections, num_samples rows) of the first train steps.

  The corpus is that of the first phase.
  """
  config, task = phases[0].config, tasks[0]
  tokenizer = corpus.tokenizer
  batches = _first_batches(config, task)
  figures = measure_rows(batches, tokenizer)
  figures.update(_estimate_reading(config, task, corpus, figures))
  figures["epochs"] = epochs.count_epochs(phases, tasks)
  if hasattr(config.objective, "pack"):
    for pack in (False, True):
      share = _padding_share(config, corpus, pack)
      figures[f"padding_share_pack_{pack}".lower()] = share
  mask = tokenizer.tokens(tokenizer.special.mask)
  title = f"Rows, measured on {figures['rows_measured']:,}"
  sections = [
    Section(title, _lines_of_rows(config, figures, mask)),
    Section(
      "Text",
      [*_lines_of_text(task, corpus, figures), *epochs.warnings(phases, tasks)],
    ),
  ]
  if task.shares:
    table = languages.language_schedule(phases, tasks, corpus)
    figures["languages"] = table
    data = config.data
    drawn_by = f"data.alpha={data.alpha:g}"
    if data.shares:
      drawn_by = f"data.shares={data.shares}"
    title = f"Languages, drawn by {drawn_by}, over the run"
    sections.append(Section(title, languages.format_schedule(table)))
  plain, masked = batches[0]
  samples = [
    sample_row(plain, masked, i, tokenizer)
    for i in range(min(num_samples, len(plain["input_ids"])))
  ]
  return figures, sections, samples


def _first_batches(config: PretrainConfig, task: Task) -> list[tuple]:
  """Returns (plain, masked) batches of MEASURED_ROWS rows or more in total."""
  corrupt = jax.jit(task.corrupt)
  batches = []
  key = jax.random.key(config.seed)
  for step in range(-(-MEASURED_ROWS // config.data.batch_size)):
    plain = task.batch_at("train", step)
    masked = jax.device_get(corrupt(plain, jax.random.fold_in(key, step)))
    batches.append((plain, masked))
  return batches


def _estimate_reading(
  config: PretrainConfig, task: Task, corpus: store.Corpus, figures
) -> dict[str, Any]:
  """Estimates the tokens that a step and an epoch read, and the share cut."""
  batch_size, rows = config.data.batch_size, task.rows_per_epoch
  tokens = corpus.meta["splits"]["train"]["tokens"]
  epoch = figures["text_tokens_per_row"] * rows
  return {
    "tokens_per_step": figures["real_tokens_per_row"] * batch_size,
    "tokens_in_corpus": tokens,
    "tokens_per_epoch": epoch,
    # Tokens truncated, or in documents too short for a row: approximate, since
    # measured. Unknown with several languages, whose rows are dropped and
    # repeated.
    "truncated_share": (
      None if task.shares else max(0.0, 1 - epoch / max(tokens, 1))
    ),
  }


def _format_share(share: float | None) -> str:
  return "-" if share is None else f"{share:.2%}"


def _lines_of_rows(config: PretrainConfig, figures, mask: str) -> list[str]:
  """Formats what is masked in the rows, and what else is in them."""
  shown = {name: _format_share(x) for name, x in figures.items()}
  if figures["nothing_share"] is None:
    spans = figures["span_length_mean"]
    lines = [
      f"{shown['mask_rate']} of the real tokens are predicted, in stretches "
      + ("-" if spans is None else f"of {spans:.2f} words"),
      f"{shown['mask_share']} of them became {mask}, "
      f"{shown['random_share']} another token, {shown['keep_share']} stayed",
    ]
  else:
    lines = [
      f"tokens were moved; something is predicted at {shown['mask_rate']} of "
      f"those that are seen, {NOTHING} at {shown['nothing_share']} "
      "of these"
    ]
  option, other = "", 0.0
  if hasattr(config.objective, "pack"):
    pack = not config.objective.pack
    option = f"objective.pack={pack}"
    other = figures[f"padding_share_pack_{pack}".lower()]
  lines += [
    batch_costs.format_padding(figures["padding_share"], option, other),
    f"{shown['unk_share']} of the tokens are unknown",
  ]
  if figures["nsp_random_share"] is not None:
    lines.append(f"{shown['nsp_random_share']} of the pairs have a random B")
  return lines


def _lines_of_text(task: Task, corpus: store.Corpus, figures) -> list[str]:
  """Formats how much text there is, and how often the run reads it."""
  meta = corpus.meta["splits"]["train"]
  truncated = f", {_format_share(figures['truncated_share'])} truncated"
  return [
    f"{counted(meta['tokens'], 'token')} in "
    f"{counted(meta['documents'], 'document')}; "
    f"an epoch reads about {figures['tokens_per_epoch']:,.0f}"
    + ("" if task.shares else truncated),
    f"{figures['tokens_per_step']:,.0f} real tokens a step; "
    f"{_format_epochs(figures['epochs'])} epochs",
  ]


def _format_epochs(epochs: float) -> str:
  return f"{epochs:,.0f}" if epochs >= 100 else f"{epochs:.3g}"


def _padding_share(
  config: PretrainConfig, corpus: store.Corpus, pack: bool
) -> float:
  """Returns the share of padding in the objective's rows, packed or not."""
  batches = objectives.make_batches(config, corpus, pack=pack)
  steps_measured = -(-MEASURED_ROWS // config.data.batch_size)
  return batch_costs.padding_share(
    batches.batch_at, "train", range(steps_measured)
  )
