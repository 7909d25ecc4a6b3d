"""Prepares a corpus with Apache Beam: on Dataflow, Flink, Spark, or locally.

`make_runner` returns the `run` argument of prepare.prepare. The work is done by
stages.py, on pieces of the source. Here each stage is a map over the pieces,
and the search for duplicates groups their hashes. Between the stages, this
process makes the decisions that need all pieces, from arrays of a few bytes per
document.

All data passes through files in PATH.beam, which all workers must see under
that path (a shared or mounted disk, like the text itself). Finished work is not
repeated: a run that was killed continues.
"""

import contextlib
import functools
import io
import itertools
import logging
import os
import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError, did_you_mean
from maskedlm.data.corpus import domain_splits, manifest, shards, store
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import dedup, vocabulary_sample
from maskedlm.data.prepare.beam import piece_plan, stages
from maskedlm.data.prepare.beam.job import Job, is_done, list_pieces, start_job
from maskedlm.data.prepare.options import recorded_options
from maskedlm.data.sources import domains, reader
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.tokenizer import Tokenizer, open_tokenizer
from maskedlm.runtime import output_files, storage_errors

PIECE_BYTES = 1 << 26  # Bytes of files that a worker reads at a time.
GROUP_HASHES = 1 << 22  # Approximate number of hashes compared at a time.


class Machines(NamedTuple):
  """How the work is shared out: by Beam, or by loops in a test."""

  # (folder, log, stage, function, items): calls function(folder, *item) for
  # each item that has no result yet. An item begins with its result's name.
  run_stage: Callable[..., None]
  # (folder, number of documents, pieces, log): the stage `duplicates`.
  find_duplicates: Callable[..., None]


def make_runner(arguments: Sequence[str]) -> Callable[..., store.Corpus]:
  """Returns the `run` argument of prepare.prepare that uses Beam.

  Args:
    arguments: Beam's command-line options, such as --runner=FlinkRunner; by
      default, its local runner is used.

  Raises:
    ConfigError: apache-beam is not installed, or has no such option.
  """
  try:
    with _without_log():
      from apache_beam.options import pipeline_options
  except ImportError as error:
    raise ConfigError(
      f"--runner=beam needs Apache Beam ({error}): pip install "
      "'maskedlm[beam]'."
    ) from error
  arguments = [*_DEFAULTS, *arguments]  # Later ones override earlier ones.
  try:
    # On errors argparse prints its usage, a page long.
    with _without_log(), contextlib.redirect_stderr(io.StringIO()):
      options = pipeline_options.PipelineOptions(arguments)
      known = options.get_all_options()
      with_unknown = options.get_all_options(retain_unknown_options=True)
  except SystemExit as error:
    raise ConfigError(
      f"Beam rejects its options {' '.join(arguments)}; expected "
      "--beam.NAME=VALUE with a name and a value that its runner knows."
    ) from error
  for name in sorted(with_unknown.keys() - known.keys()):
    raise ConfigError(
      f"--beam.{name}: Beam has no such option{did_you_mean(name, known)}"
    )
  logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # See _execute.
  machines = Machines(_run_stage, _find_duplicates)
  machines = Machines(*(functools.partial(f, options) for f in machines))
  return functools.partial(run, machines)


@contextlib.contextmanager
def _without_log():
  """Hides Beam's warnings about Google packages, which aren't needed here."""
  handler = logging.NullHandler()
  logging.getLogger().addHandler(handler)
  try:
    yield
  finally:
    logging.getLogger().removeHandler(handler)


_DEFAULTS = (
  "--runner=DirectRunner",
  # Keeps the DirectRunner from looking for Prism, a Go program that it would
  # download; safe, since no trigger is used.
  "--allow_unsafe_triggers",
  "--default_sdk_harness_log_level=ERROR",
)


def run(
  machines: Machines, config: TextConfig, path: str, *, log: Callable
) -> store.Corpus:
  """Prepares the corpus at `path` on machines; see prepare.prepare.

  Raises:
    ConfigError, CorpusError, StorageError: as for prepare.prepare, or the
      pipeline failed.
  """
  folder = f"{path}.beam"
  _check_source(config)
  try:
    _prepare(machines, config, path, folder, log)
  except OSError as error:
    raise storage_errors.unreachable(folder, error) from error
  return store.open_corpus(path)


def _check_source(config: TextConfig) -> None:
  """Reads a document of each domain, so that errors are found at once."""
  if config.corpus.unique_lines:
    raise ConfigError(
      "corpus.unique_lines=True compares each line with all before it, which "
      "--runner=beam doesn't: use --runner=local, or leave it out."
    )
  for domain in domains.parse_domains(config.corpus):
    with domains.errors_of_domain(domain.name):
      documents = reader.read_documents(
        domain.source, text_field=config.corpus.text_field, report=Counter()
      )
      next(iter(documents))


def _prepare(
  machines: Machines, config: TextConfig, path: str, folder: str, log: Callable
) -> None:
  job = Job(folder, config, list_pieces(config, PIECE_BYTES))
  start_job(job)
  run_stage = functools.partial(machines.run_stage, folder, log)
  pieces = range(len(job.pieces))
  run_stage("survey", stages.survey, [(index,) for index in pieces])
  report: Counter = Counter()
  for index in pieces:
    report.update(stages.survey_report(folder, index))
  if dedup.is_enabled(config.corpus):
    if not is_done(folder, "duplicates", pieces):
      machines.find_duplicates(folder, report["documents"], pieces, log)
    for index in pieces:
      report.update(stages.count_dropped(folder, index))
  if not is_done(folder, "plan", pieces):
    piece_plan.write_plan(folder)
  tokenizer = _make_tokenizer(job, run_stage, log)
  items = [(index, tokenizer.vocab_size) for index in pieces]
  run_stage("encoded", stages.encode_piece, items)
  _assemble(job, run_stage, path, tokenizer, report)
  shutil.rmtree(folder)


def _find_duplicates(options, folder, num_documents, pieces, log) -> None:
  """Finds duplicates: groups hashes by value, then the duplicates by piece."""
  import apache_beam as beam

  log(f"beam: duplicates: {counted(num_documents, 'document')}")
  num_groups = -(-num_documents // GROUP_HASHES)

  def build(pipeline):
    items = pipeline | beam.Create(list(pieces)) | beam.Reshuffle()
    marks = (
      items
      | beam.FlatMap(
        functools.partial(stages.band_hashes, folder, num_groups)
      ).with_output_types(tuple[tuple[int, int], Any])
      | "by hash" >> beam.GroupByKey()
      | beam.FlatMapTuple(stages.mark_duplicates).with_output_types(
        tuple[int, Any]
      )
    )
    # Gives a group, and so a file, to pieces without duplicates.
    empty = items | beam.Map(lambda index: (index, None)).with_output_types(
      tuple[int, Any]
    )
    _ = (
      (marks, empty)
      | beam.Flatten()
      | "by piece" >> beam.GroupByKey()
      | beam.Map(functools.partial(_call_stage, stages.write_status, folder))
    )

  _execute(options, folder, build)


def _make_tokenizer(job: Job, run_stage: Callable, log: Callable) -> Tokenizer:
  """Loads tokenizer.path, or trains a tokenizer on the sample."""
  path = os.path.join(job.folder, "tokenizer")
  if os.path.exists(path):
    return open_tokenizer(path)
  with output_files.whole_folder(path) as work:
    tokenizer = vocabulary_sample.load_or_train(
      job.config, lambda: _train(job, run_stage, log), log=log
    )
    tokenizer.save(work)
  return tokenizer


def _train(job: Job, run_stage: Callable, log: Callable) -> Tokenizer:
  """Trains a tokenizer on the same sentences as local.py."""
  config, folder = job.config, job.folder
  max_bytes = vocabulary_sample.max_sample_bytes(config)
  names = [domain.name for domain, _ in job.pieces]
  items, counts = [], {}
  for name, group in itertools.groupby(range(len(names)), names.__getitem__):
    pieces = list(group)
    sizes = (piece_plan.load_sentence_sizes(folder, i)[1] for i in pieces)
    step, starts, counts[name] = piece_plan.choose_stride(sizes, max_bytes)
    items += [(i, start, step) for i, start in zip(pieces, starts, strict=True)]
  run_stage("sample", piece_plan.write_sample, items)
  lines: dict[str, list[str]] = {name: [] for name in counts}
  for index, name in enumerate(names):
    lines[name] += piece_plan.read_sample(folder, index)
  samples = vocabulary_sample.limit_samples(
    (
      vocabulary_sample.Sample(
        name, counts[name], vocabulary_sample.total_bytes(sample), sample
      )
      for name, sample in lines.items()
      if counts[name]
    ),
    max_bytes=max_bytes,
    alphas=[config.tokenizer.alpha],
  )
  return vocabulary_sample.train_on_samples(samples, config, log=log)


def _assemble(
  job: Job,
  run_stage: Callable,
  path: str,
  tokenizer: Tokenizer,
  report: Counter,
) -> None:
  config, folder = job.config, job.folder
  domain_counts = domain_splits.empty_counts(config.corpus)
  for index in range(len(job.pieces)):
    encoded = stages.load_encoded(folder, index)
    report.update(encoded["report"])
    for total_counts, piece_counts in zip(
      domain_counts, encoded["parts"], strict=True
    ):
      for split, name in itertools.product(shards.SPLITS, domain_splits.COUNTS):
        total_counts[split][name] += piece_counts[split][name]
  lost_text.refuse(report, config.corpus)
  work = os.path.join(folder, "corpus")
  os.makedirs(work, exist_ok=True)
  tokenizer.save(os.path.join(work, "tokenizer"))
  sizes = len(job.pieces), config.corpus.shard_tokens
  slices = {
    shards.shard_name(split, i): shard
    for split in shards.SPLITS
    for i, shard in enumerate(stages.plan_shards(folder, split, *sizes))
  }
  items = [
    (name, shard, tokenizer.vocab_size) for name, shard in slices.items()
  ]
  run_stage("shards", stages.write_shard, items)
  totals: dict[str, list[dict]] = {split: [] for split in shards.SPLITS}
  files: dict[str, dict] = {}
  hashes = {}
  token_counts = np.zeros(tokenizer.vocab_size, np.int64)
  for name in slices:
    split = name.partition("-")[0]
    total, shard_files, counts, digests = stages.load_shard(folder, name)
    hashes[f"{name}{shards.TOKENS}"] = digests
    totals[split].append(total)
    files.update(shard_files)
    if split == "train":
      token_counts += counts
  for name in set(os.listdir(work)) - files.keys() - {"tokenizer"}:
    os.remove(os.path.join(work, name))  # Left by a worker that was killed.
  manifest.finish_corpus(
    path,
    work,
    splits=shards.split_totals(totals),
    counts=token_counts,
    files=files,
    hashes=hashes,
    tokenizer=tokenizer,
    options=recorded_options(config, tokenizer, domains=bool(domain_counts)),
    report=report,
    domains=domain_counts,
  )


# Running


def _run_stage(
  options, folder: str, log: Callable, stage: str, function: Callable, items
) -> None:
  todo = [i for i in items if not is_done(folder, stage, i[:1])]
  done = len(items) - len(todo)
  log(
    f"beam: {stage}: {len(todo):,} of {len(items):,}"
    + (f" to do, {done:,} done before" if done else "")
  )
  if not todo:
    return
  import apache_beam as beam

  def build(pipeline):
    _ = (
      pipeline
      | beam.Create(todo)
      | beam.Reshuffle()
      | beam.Map(functools.partial(_call_stage, function, folder))
    )

  _execute(options, folder, build)


def _call_stage(function: Callable, folder: str, item: tuple) -> None:
  """Calls a stage and adds the counts that it returns to Beam's counters."""
  from apache_beam.metrics import Metrics

  for name, count in (function(folder, *item) or {}).items():
    Metrics.counter("maskedlm", name).inc(count)


def _execute(options, folder: str, build: Callable) -> None:
  import apache_beam as beam

  try:
    pipeline = beam.Pipeline(options=options)
    build(pipeline)
    state = pipeline.run().wait_until_finish()
  except Exception as error:  # Its type depends on Beam's runner.
    # The runner's message contains that of a worker's error.
    worker_error = _WORKER_ERROR.search(f"{type(error).__name__}: {error}")
    if worker_error:
      raise CorpusError(worker_error[1]) from error
    path = os.path.join(folder, "failure.txt")
    output_files.write_text(path, "".join(traceback.format_exception(error)))
    last = str(error).strip().splitlines()[-1:]
    raise CorpusError(
      f"the Beam pipeline failed: {type(error).__name__}: {''.join(last)}"
      f" ({path} has the traceback). Finished work is kept: the same command"
      " continues."
    ) from error
  if str(state) != "DONE":
    raise CorpusError(
      f"the Beam pipeline ended as {state}; see the runner's log. Finished work"
      " is kept: the same command continues."
    )


_WORKER_ERROR = re.compile(
  r"(?:Config|Corpus)Error: ([^\n]*?)( \[while running.*)?$", re.MULTILINE
)
