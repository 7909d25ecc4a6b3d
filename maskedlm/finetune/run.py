"""One run of fine-tuning: data -> rows -> Task -> loop.run -> files.

Tasks are used through contract.py, never by name.
"""

import dataclasses
import functools
import math
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from maskedlm.core import own_file
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, DataError, StoppedError
from maskedlm.core.measured import to_json
from maskedlm.core.options import changed
from maskedlm.core.parse_json import parse_json
from maskedlm.core.task import Params, Task
from maskedlm.data.batches import batch_costs
from maskedlm.data.labelled import labels
from maskedlm.data.tokenizers.tokenizer import save_if_absent
from maskedlm.finetune import (
  initial_params,
  predict,
  results,
  row_checks,
  splits,
)
from maskedlm.finetune.common import batching, cut_texts, packing
from maskedlm.finetune.common.labels import keep_labelled
from maskedlm.finetune.config import frozen_options, task_of
from maskedlm.finetune.contract import (
  Application,
  Example,
  FinetuneTask,
  Rows,
  Setup,
)
from maskedlm.finetune.options import COUNTS, FinetuneConfig
from maskedlm.finetune.teacher import add_teacher
from maskedlm.modeling import flops, masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import console, multihost, output_files
from maskedlm.training import distil, loop, phases, sharding
from maskedlm.training.checkpoints import load, resume


class Prepared(NamedTuple):
  """Everything that a run needs before training starts."""

  task: FinetuneTask
  label_info: Mapping[str, Any]
  app: Application
  start: load.LoadedCheckpoint
  cfg: EncoderConfig
  heads: Params  # Those that don't start from random parameters.
  train: Sequence[Example]
  dev: Sequence[Example]
  also: Mapping[str, Sequence[Example]]  # data.also_score, by file.
  train_rows: Rows
  dev_rows: Rows


def finetune(config: FinetuneConfig, workdir: pathlib.Path) -> dict[str, Any]:
  """Starts or resumes a run in workdir; returns the contents of result.json.

  Writes config.json, tokenizer/, checkpoints/, metrics.jsonl, tensorboard/
  and, at the end, result.json, predictions.jsonl (the best checkpoint's, on the
  development set) and the task's tables.

  Raises:
    DataError: labelled data can't be used.
    ConfigError, CheckpointError: see loop.run and checkpoints/load.py.
    StoppedError: a signal stopped the run; the same command resumes it.
  """
  config = changed(config, own_file.pins(dataclasses.asdict(config)))
  mesh = sharding.make_mesh(config.mesh)
  sharding.check_batch(config.data.batch_size, config.train.accumulate, mesh)
  multihost.check_shared(workdir)
  values = dataclasses.asdict(config)
  multihost.run_on_all_hosts(lambda: resume.check_workdir(workdir, values))
  run = multihost.run_on_all_hosts(lambda: prepare_run(config), facts=_facts)
  task, config = make_task(run, config, mesh)
  if multihost.is_primary():  # Makes the checkpoints self-contained.
    save_if_absent(run.start.tokenizer, workdir / "tokenizer")
  values["train"] |= {name: getattr(config.train, name) for name in COUNTS}
  began = time.perf_counter()
  result = loop.run(
    phases.single(config),
    [task],
    workdir,
    mesh=mesh,
    frozen=frozen_options(config),
    identity={
      "config": parse_json(to_json(values)),
      "corpus": splits.fingerprint(run.train, run.dev),
      "tokenizer": run.start.tokenizer.sha256,
      **distil.identity(config.teacher),
    },
    start_from=(
      initial_params.from_checkpoint(
        run.start, run.heads, reinit_layers=config.model.reinit_layers
      )
      if config.pretrained
      else lambda fresh: fresh
    ),
  )
  if result.interrupted:
    raise StoppedError(
      f"interrupted; step {result.step:,} is saved: the same command continues"
    )
  seconds = time.perf_counter() - began
  best = load.open_best(workdir)
  outputs = _heldout_by_row(task, result.heldout_outputs(best.params))
  if not multihost.is_primary():
    return {}
  if result.tokens_per_second is None:  # The run had finished before.
    seconds = output_files.read_result(workdir).get("train_seconds", seconds)
  return _finish(run, config, workdir, best, outputs, seconds)


def prepare_run(config: FinetuneConfig) -> Prepared:
  """Reads the data and the checkpoint, and checks all options.

  Raises:
    DataError: labelled data can't be used.
    ConfigError: an option is wrong.
    CheckpointError: config.init_from can't be read.
  """
  task = task_of(config)
  if not config.init_from:
    raise ConfigError(
      "init_from is empty: give the workdir of a pretrained encoder, "
      "--config.init_from=runs/bert, or hf:NAME on the Hugging Face Hub."
    )
  start = load.open_best(config.init_from)
  data = config.data
  cfg = initial_params.resolve_architecture(start, config.model, data.length)
  examples, dev = splits.split_examples(task, data)
  label_info = task.describe_labels(examples)
  labels.report_alike(label_info.get("labels", ()), data.train)
  app = task.make_application(
    Setup(start.tokenizer, cfg, label_info, data.length)
  )
  initial_params.check_sentence_pooling(
    start, task.sentence_pooling, console.log
  )
  examples, dev = (
    keep_labelled(part, app.has_label, name)
    for name, part in (("train", examples), ("dev", dev))
  )
  app.require_labels(dev)  # Raises before training rather than after an epoch.
  also = {
    name: predict.read_labelled(task, app, name) for name in data.also_score
  }
  run = Prepared(
    task=task,
    label_info=label_info,
    app=app,
    start=start,
    cfg=cfg,
    heads=initial_params.initial_heads(
      start, config, task, label_info, app, console.log
    ),
    train=examples,
    dev=dev,
    also=also,
    train_rows=app.make_rows(examples),
    dev_rows=app.make_rows(dev),
  )
  if run.train_rows.lost:
    raise DataError(f"train: nothing can be learnt: {run.train_rows.lost}")
  for name, part, rows in (
    ("train", examples, run.train_rows),
    ("dev", dev, run.dev_rows),
  ):
    lengths = rows.sequence_lengths(np.arange(len(rows.example)))
    several = f" of {lengths.shape[1]} texts" if lengths.shape[1] > 1 else ""
    console.log(
      f"{name}: {counted(len(part), 'example')} in "
      f"{counted(len(lengths), 'row')}{several}, "
      f"{float(np.mean(lengths)):.1f} tokens on average; "
      f"{cut_texts.cut_count(rows.cut)} data.length={data.length}"
    )
    unknown = row_checks.unknown_notes(rows, start.tokenizer)
    for note in (*rows.notes, *unknown):
      console.log(f"{name}: {note}")
  return run


def make_task(
  run: Prepared, config: FinetuneConfig, mesh: Mesh
) -> tuple[Task, FinetuneConfig]:
  """Returns the Task of a run, and its config as the loop reads it."""
  data, app, cfg = config.data, run.app, run.cfg
  shape: dict[str, Any] = {
    "batch_size": data.batch_size,
    "pad": run.start.tokenizer.special.pad,
    "shard": sharding.data_shard(mesh),
  }
  batches, heldout = _make_batches(run, config, mesh, shape)
  train = config.train.in_steps(batches.num_steps)
  config = dataclasses.replace(config, train=train)
  batches = batching.with_ramp(batches, app.ramp * train.num_steps)
  parts = {"train": batches, "heldout": heldout}
  pooling = {**run.task.sentence_pooling, "length": data.length}

  def score(outputs):
    outputs = _heldout_by_row(task, outputs)
    tuned = app.calibrate(run.dev, run.dev_rows, outputs)
    predictions = app.decode(run.dev, run.dev_rows, outputs, tuned)
    return {**tuned, **app.score(run.dev, predictions)}

  def train_flops(step: int) -> float:
    count, length = batches.shape_at(step)
    return count * row_flops(length)

  @functools.cache
  def row_flops(length: int) -> float:
    return flops.train_flops(cfg, length, num_predictions=0)

  def init(key):
    encoder_key, head_key = jax.random.split(key)
    if config.model.reinit_layers or not config.pretrained:
      encoder = masked_lm.init_encoder(cfg, encoder_key)
    else:  # Replaced: to trace and compile its random numbers takes seconds.
      encoder = jax.tree.map(jnp.zeros_like, run.start.params["encoder"])
    return {"encoder": encoder, **app.init(head_key)}

  task = Task(
    batch_at=lambda split, step: parts[split].batch_at(step),
    row_ids=lambda split, step: parts[split].row_ids(step),
    num_heldout_batches=heldout.num_steps,
    init=init,
    corrupt=lambda batch, key: batch,
    loss=app.loss,
    flops=train_flops,
    describe={
      "objective": config.task.kind,
      "kind": config.task.kind,
      "options": dataclasses.asdict(run.task.options),
      "about": run.label_info,  # Its name in every checkpoint.
      "length": data.length,
      "encoder": dataclasses.asdict(cfg),
      **({"sentences": pooling} if run.task.sentence_pooling else {}),
    },
    rows_per_epoch=len(run.train_rows.example),
    outputs=app.outputs,
    score=score,
    best=app.best,
    vectors=app.vectors,
    loss_of_vectors=app.loss_of_vectors,
  )
  if app.vectors:  # Other tasks report rows without a weight in Rows.lost.
    row_checks.check_batches(
      task, num_batches=batches.num_steps, accumulate=config.train.accumulate
    )
  return add_teacher(task, run, config) if config.teacher else task, config


def _make_batches(
  run: Prepared, config: FinetuneConfig, mesh: Mesh, shape: Mapping[str, Any]
) -> tuple[batching.RowBatches, batching.RowBatches]:
  """Returns the training and held-out batches; logs training's padding."""
  data, rows = config.data, run.train_rows
  on_cpu = mesh.devices.flat[0].platform == "cpu"
  microbatches = packing.microbatch_rows(
    data.batch_size,
    mesh.shape["data"] * mesh.shape["fsdp"],
    config.train.accumulate,
  )
  lengths = rows.sequence_lengths(np.arange(len(rows.example)))

  def longest(rows: Rows) -> int:
    """Returns L: heads read each example in a row of its own, padded to it."""
    return min(-(-int(rows.lengths.max()) // 8) * 8, data.length)

  if data.pack:
    layout = batching.fit_layout(
      rows,
      batch_size=data.batch_size,
      microbatches=microbatches,
      length=data.length,
      width=run.cfg.width,
      costs=packing.ON_CPU if on_cpu else packing.ELSEWHERE,
      num_steps=config.train.in_steps(
        math.ceil(len(rows.lengths) / data.batch_size)
      ).num_steps,
    )
  else:
    layout = packing.unpacked_layout(
      microbatches.shape[1] * lengths.shape[1], data.length
    )
  batches = batching.train_batches(
    rows,
    seed=config.seed,
    length=longest(rows),
    layout=layout,
    microbatches=microbatches,
    **shape,
  )
  heldout = batching.heldout_batches(
    run.dev_rows,
    length=longest(run.dev_rows),
    row_length=layout.length,
    microbatches=microbatches,
    **shape,
  )
  share = batching.estimate_padding_share(rows, batches)
  unpacked = 1 - float(np.mean(lengths)) / data.length
  counts = sorted({len(microbatches) * count for count in layout.counts})
  num_rows = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else counts[0]
  alternative = ("data.pack=False", unpacked) if data.pack else ()
  console.log(
    f"{batch_costs.format_padding(share, *alternative)} "
    f"({lengths.shape[1] * data.batch_size} texts share {num_rows} rows of "
    f"{layout.length} tokens)"
  )
  return batches, heldout


def _heldout_by_row(task: Task, outputs: Sequence) -> Mapping[str, Any]:
  """Returns the outputs of the held-out batches in the order of dev_rows."""
  steps = range(task.num_heldout_batches)
  return predict.by_row([task.row_ids("heldout", i) for i in steps], outputs)


def _facts(run: Prepared) -> dict[str, str]:
  """Returns the facts that must be equal on all hosts (run_on_all_hosts)."""
  data = splits.fingerprint(run.train, run.dev)
  return {"the data": data, **load.facts(run.start)}


def _finish(
  run: Prepared,
  config: FinetuneConfig,
  workdir: pathlib.Path,
  best: load.LoadedCheckpoint,
  outputs: Mapping[str, Any],
  seconds: float,
) -> dict[str, Any]:
  """Scores the best checkpoint and writes the files; returns the result."""
  path = workdir / "result.json"
  model = predict.make_model(best, workdir)
  predictions = run.app.decode(run.dev, run.dev_rows, outputs, model.tuned)
  values = run.app.score(run.dev, predictions)
  result = {
    **{n: v for n, v in model.tuned.items() if n not in values},
    **values,
    "best_metric": run.app.best,
    "examples": len(run.train),
    "dev_examples": len(run.dev),
    "steps": config.train.num_steps,
    "train_seconds": seconds,
    "degenerate": results.is_degenerate(
      workdir / "metrics.jsonl", config.train.log_every
    ),
  }
  results.write_predictions(run.dev, predictions, workdir / "predictions.jsonl")
  for name, text in run.task.format_tables(run.dev, predictions).items():
    output_files.write_text(workdir / name, text)
  # Written before the further files are scored, in case that fails.
  output_files.write_json(path, result)
  cut: list[int] = []
  result["also_scored"] = {
    name: run.app.score(examples, predict.predict(model, examples, cut=cut))
    for name, examples in run.also.items()
  }
  predict.log_cut(model, cut, option="--config.data.length={}")
  output_files.write_json(path, result)
  return result
