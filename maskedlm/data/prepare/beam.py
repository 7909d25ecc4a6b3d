"""`prepare` as Apache Beam pipelines: on Dataflow, Flink, Spark, or here.

`writer` makes what prepare.prepare takes as `write`. The work is in stages.py,
on pieces of the source; here each stage is a map over the pieces, and the
search for duplicates a grouping by hash. Between the stages this process makes
the decisions that need all pieces, of arrays of a few bytes a document.

Everything goes through files in PATH.beam, which all workers must see under
that path (a disk that is shared or mounted, like the text itself). What is
there is not done again: a run that was killed goes on where it was.
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
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError, CorpusError, did_you_mean
from maskedlm.data.corpus import language_parts, manifest, shards, store
from maskedlm.data.prepare import (
  dedup,
  piece_plan,
  prepare,
  stages,
  vocabulary_sample,
)
from maskedlm.data.prepare import job as job_lib
from maskedlm.data.sources import languages, reader
from maskedlm.data.tokenizers import tokenizer
from maskedlm.runtime import storage_errors

PIECE_BYTES = 1 << 26  # Of files, that a worker reads at a time.
GROUP_HASHES = 1 << 22  # That a worker compares at a time, about.


def writer(arguments: Sequence[str]) -> Callable[..., store.Corpus]:
  """The `write` of prepare.prepare, by Beam with its own options.

  Args:
    arguments: as Beam takes them: --runner=FlinkRunner ...; by default, its
      runner on this machine.

  Raises:
    ConfigError: apache-beam is missing, or has no such option.
  """
  try:
    with _quiet():
      from apache_beam.options import pipeline_options
  except ImportError as error:
    raise ConfigError(
      f"--runner=beam needs Apache Beam ({error}): pip install "
      "'maskedlm[beam]'."
    ) from error
  # Of an option that is given twice, the last one counts.
  arguments = [*_DEFAULTS, *arguments]
  try:
    # argparse prints its usage, a page of it.
    with _quiet(), contextlib.redirect_stderr(io.StringIO()):
      options = pipeline_options.PipelineOptions(arguments)
      known = options.get_all_options()
      given = options.get_all_options(retain_unknown_options=True)
  except SystemExit as error:
    raise ConfigError(
      f"Beam refuses its options {' '.join(arguments)}: expected "
      "--beam.NAME=VALUE with a name and a value that its runner knows."
    ) from error
  for name in sorted(given.keys() - known.keys()):
    raise ConfigError(
      f"--beam.{name}: Beam has no such option{did_you_mean(name, known)}"
    )
  # What goes wrong is told by `_run`.
  logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
  return functools.partial(_write, options)


@contextlib.contextmanager
def _quiet():
  """Importing Beam warns of packages of Google's that are not needed here."""
  handler = logging.NullHandler()
  logging.getLogger().addHandler(handler)
  try:
    yield
  finally:
    logging.getLogger().removeHandler(handler)


_DEFAULTS = (
  "--runner=DirectRunner",
  # Here it says: don't look for Prism, a program in Go to be downloaded. No
  # trigger is used.
  "--allow_unsafe_triggers",
  "--default_sdk_harness_log_level=ERROR",
)


def _write(
  options, config: ConfigDict, path: str, *, log: Callable, progress: bool
) -> store.Corpus:
  """Prepares by Beam; `progress` is for its runner to show."""
  folder = f"{path}.beam"
  _look(config)
  try:
    return _prepare(options, config, path, folder, log)
  except OSError as error:
    raise storage_errors.unreachable(folder, error) from error


def _prepare(
  options, config: ConfigDict, path: str, folder: str, log: Callable
) -> store.Corpus:
  job = job_lib.Job(folder, config, job_lib.cut(config, PIECE_BYTES))
  job_lib.start(job)
  each = functools.partial(_each, options, folder, log)
  pieces = range(len(job.pieces))
  each("survey", stages.survey, [(index,) for index in pieces])
  report = Counter()
  for index in pieces:
    report.update(stages.report_of(folder, index))
  if dedup.are_dropped(config.corpus):
    _find_duplicates(options, folder, report["documents"], pieces, log)
    for index in pieces:
      report.update(stages.dropped(folder, index))
  if not _is_done(folder, "plan", pieces):
    piece_plan.plan(folder)
  made = _tokenizer(job, each, log)
  each(
    "encoded",
    stages.encode_piece,
    [(index, made.vocab_size) for index in pieces],
  )
  _assemble(job, each, path, made, report)
  _remove(folder)
  return store.open_corpus(path)


def _remove(folder: str) -> None:
  shutil.rmtree(folder)


def _look(config: ConfigDict) -> None:
  """Reads a document of each part: what is wrong with a source is told now."""
  for part in languages.parse(config.corpus):
    with languages.naming(part.name):
      found = reader.documents(
        part.source, text_field=config.corpus.text_field, report=Counter()
      )
      next(iter(found))


def _find_duplicates(options, folder, num_documents, pieces, log) -> None:
  """stages.spread -> by hash -> stages.judge -> by piece -> stages.note."""
  if _is_done(folder, "fates", pieces):
    return
  import apache_beam as beam

  log(f"beam: fates: duplicates among {num_documents:,} documents")
  num_groups = -(-num_documents // GROUP_HASHES)

  def build(pipeline):
    items = pipeline | beam.Create(list(pieces)) | beam.Reshuffle()
    verdicts = (
      items
      | beam.FlatMap(
        functools.partial(_spread, folder, num_groups)
      ).with_output_types(tuple[tuple[int, int], Any])
      | "by hash" >> beam.GroupByKey()
      | beam.FlatMapTuple(stages.judge).with_output_types(tuple[int, Any])
    )
    nothing = items | beam.Map(_nothing).with_output_types(tuple[int, Any])
    _ = (
      (verdicts, nothing)
      | beam.Flatten()
      | "by piece" >> beam.GroupByKey()
      | beam.Map(functools.partial(_counted, stages.note, folder))
    )

  _run(options, folder, build)


def _spread(folder: str, num_groups: int, index: int):
  return stages.spread(folder, index, num_groups)


def _nothing(index: int) -> tuple[int, None]:
  return index, None


def _tokenizer(
  job: job_lib.Job, each: Callable, log: Callable
) -> tokenizer.Tokenizer:
  """tokenizer.path, or what is trained on the sample."""
  path = os.path.join(job.folder, "tokenizer")
  if os.path.exists(path):
    return tokenizer.load(path)
  with job_lib.new_folder(path) as work:
    made = prepare.make_tokenizer(
      job.config, lambda: _trained(job, each, log), log=log
    )
    made.save(work)
  return made


def _trained(
  job: job_lib.Job, each: Callable, log: Callable
) -> tokenizer.Tokenizer:
  """Trained on the sentences that the local runner takes, too."""
  config, folder = job.config, job.folder
  if config.corpus.parts:
    max_bytes = vocabulary_sample.budget(config)
  else:
    max_bytes = config.tokenizer.sample_bytes
  items, counts, names = [], {}, [part.name for part, _ in job.pieces]
  for name, group in itertools.groupby(range(len(names)), names.__getitem__):
    pieces = list(group)
    sizes = (piece_plan.lines_of(folder, index).sizes for index in pieces)
    step, starts, counts[name] = piece_plan.stride(sizes, max_bytes)
    items += [(i, at, step) for i, at in zip(pieces, starts, strict=True)]
  each("sample", piece_plan.sample, items)
  lines = {name: [] for name in counts}
  for index, name in enumerate(names):
    lines[name] += piece_plan.sampled(folder, index)
  if not config.corpus.parts:
    return vocabulary_sample.train_on(lines[""], config)
  samples = []
  for name, found in lines.items():
    if counts[name]:
      samples = vocabulary_sample.joined(
        samples,
        vocabulary_sample.Sample(
          name, counts[name], vocabulary_sample.size(found), found
        ),
        max_bytes=max_bytes,
        alphas=[config.tokenizer.alpha],
      )
  return vocabulary_sample.train_on_samples(samples, config, log=log)


def _assemble(
  job: job_lib.Job,
  each: Callable,
  path: str,
  made: tokenizer.Tokenizer,
  report: Counter,
) -> None:
  """Makes PATH of what was encoded."""
  config, folder = job.config, job.folder
  counted = language_parts.empty_counts(languages.parse(config.corpus))
  for index in range(len(job.pieces)):
    found = stages.encoded(folder, index)
    report.update(found["report"])
    for part, more in zip(counted, found["parts"], strict=True):
      for split, name in itertools.product(
        shards.SPLITS, language_parts.COUNTS
      ):
        part[split][name] += more[split][name]
  work = os.path.join(folder, "corpus")
  os.makedirs(work, exist_ok=True)
  made.save(os.path.join(work, "tokenizer"))
  runs = {
    shards.shard_name(split, i): runs
    for split in shards.SPLITS
    for i, runs in enumerate(
      stages.layout(folder, split, len(job.pieces), config.corpus.shard_tokens)
    )
  }
  each(
    "shards",
    stages.reshard,
    [(name, found, made.vocab_size) for name, found in runs.items()],
  )
  done, files = {split: [] for split in shards.SPLITS}, {}
  token_counts = np.zeros(made.vocab_size, np.int64)
  for name in runs:
    split = name.partition("-")[0]
    total, found, counts = stages.shard(folder, name)
    done[split].append(total)
    files.update(found)
    if split == "train":
      token_counts += counts
  for name in set(os.listdir(work)) - files.keys() - {"tokenizer"}:
    os.remove(os.path.join(work, name))  # Of a worker that was killed.
  manifest.finish(
    path,
    work,
    splits=shards.totals(done),
    counts=token_counts,
    files=files,
    tokenizer=made,
    options=prepare.recorded_options(config, made, parts=bool(counted)),
    report=report,
    parts=counted,
  )


# Running


def _is_done(folder: str, stage: str, names: Iterable) -> bool:
  return all(os.path.exists(job_lib.result(folder, stage, n)) for n in names)


def _each(
  options, folder: str, log: Callable, stage: str, function: Callable, items
) -> None:
  """function(folder, *item) for each item whose result isn't there yet.

  An item begins with the number or name of its result.
  """
  todo = [item for item in items if not _is_done(folder, stage, item[:1])]
  there = len(items) - len(todo)
  log(
    f"beam: {stage}: {len(todo):,} of {len(items):,}"
    + (f", {there:,} were done before" if there else "")
  )
  if not todo:
    return
  import apache_beam as beam

  def build(pipeline):
    _ = (
      pipeline
      | beam.Create(todo)
      | beam.Reshuffle()
      | beam.Map(functools.partial(_counted, function, folder))
    )

  _run(options, folder, build)


def _counted(function: Callable, folder: str, item: tuple) -> None:
  """Calls it; what it counts, Beam's own counters show as well."""
  from apache_beam.metrics import Metrics

  for name, count in (function(folder, *item) or {}).items():
    Metrics.counter("maskedlm", name).inc(count)


def _run(options, folder: str, build: Callable) -> None:
  """Runs a pipeline to its end; a CorpusError of a worker is one here."""
  import apache_beam as beam

  try:
    pipeline = beam.Pipeline(options=options)
    build(pipeline)
    state = pipeline.run().wait_until_finish()
  except Exception as error:  # Of any type: the runner's.
    # Of another process, it is told within the text.
    found = _OWN.search(f"{type(error).__name__}: {error}")
    if found:
      raise CorpusError(found[1]) from error
    path = os.path.join(folder, "failure.txt")
    with open(path, "w", encoding="utf-8") as file:
      file.writelines(traceback.format_exception(error))
    last = str(error).strip().splitlines()[-1:]
    raise CorpusError(
      f"the Beam pipeline failed: {type(error).__name__}: {''.join(last)}"
      f" ({path} has all of it). What is done is kept: the same command goes"
      " on."
    ) from error
  if str(state) != "DONE":
    raise CorpusError(
      f"the Beam pipeline ended as {state}; its runner's log says why. What is"
      " done is kept: the same command goes on."
    )


_OWN = re.compile(r"CorpusError: ([^\n]*?)( \[while running.*)?$", re.MULTILINE)
