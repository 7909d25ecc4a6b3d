"""`maskedlm inspect`: shows what a config will train, before it is trained."""

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence

from ml_collections import ConfigDict

from maskedlm.cli import options
from maskedlm.config import existing, overrides
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.data.batches import placeholder_corpus
from maskedlm.data.corpus import integrity, store, streamed
from maskedlm.data.prepare import prepare
from maskedlm.planning.inspect import html_page, schedules
from maskedlm.planning.inspect.facts import (
  Section,
  facts_of_model,
  facts_of_rows,
)
from maskedlm.planning.inspect.rows import format_row
from maskedlm.pretraining import objectives, predictions
from maskedlm.runtime import console, output_options, startup
from maskedlm.training import phases as phasing


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm inspect",
    description="Shows what a config will train, before it is trained. Uses "
    "the corpus of --config.corpus.path or of --workdir, if there is one.",
  )
  parser.add_argument(
    "--workdir",
    help="workdir of a run, to use its corpus unless --config.corpus.path is "
    "set, as pretrain does; without --config, also its config",
  )
  parser.add_argument(
    "--rows", type=int, help="sample rows to show; default: 3"
  )
  parser.add_argument("--html", metavar="FILE", help="also write an HTML page")
  options.add_json(parser, "print only the figures, as JSON")
  args, config = overrides.parse_config(
    parser,
    argv,
    fit=existing.fit_to_corpus,
    made=lambda args, config: args.workdir or f"runs/{config.name}",
  )
  options.check_at_least(args, rows=0)
  if args.rows is not None and args.json and not args.html:
    raise ConfigError(
      f"--rows={args.rows} has no effect with --json, which prints only the "
      "figures: leave it out, or add --html=FILE."
    )
  if args.html:
    output_options.check_file(args.html, option="--html")
  corpus = _find_corpus(config, args.workdir)
  if corpus:
    predictions.check_corpus(corpus)
    configs = [phase.config for phase in phasing.split(config)]
    objectives.resolve_packing(config, [(c, corpus) for c in configs])
  phases = phasing.split(config)
  tasks = [
    objectives.make_task(
      phase.config, corpus or placeholder_corpus.make_corpus(config.tokenizer)
    )
    for phase in phases
  ]
  if corpus:
    tasks = [
      task._replace(batch_at=store.check_batches(task.batch_at, corpus))
      for task in tasks
    ]
    predictions.check_rows(config, tasks[0], corpus, log=console.log)
  startup.enable_compile_cache()
  figures, sections = facts_of_model(phases, tasks)
  if len(phases) > 1:
    table = schedules.format_table(phases, tasks if corpus else None)
    sections.insert(0, Section("Phases", table))
  rows = []
  if corpus is None:
    sections.append(
      Section(
        "Rows",
        [
          "no corpus yet: run `maskedlm prepare` to see more. Packed rows were "
          "counted as full rows",
        ],
      )
    )
  else:
    num_samples = 3 if args.rows is None else args.rows
    with integrity.rows_of(corpus.path, corpus.meta):
      measured, more, rows = facts_of_rows(
        phases, tasks, corpus, num_samples=num_samples
      )
    figures.update(measured)
    sections += more
  curves = schedules.curves(phases)
  if args.html:
    page = html_page.render_page(config.name, sections, rows, curves)
    output_options.write_text(args.html, page, option="--html")
  if args.json:
    console.print_json(figures, indent=2)
    return 0
  coloured = console.is_terminal(sys.stdout)
  for section in sections:
    print(f"\n{section.title}")
    for line in section.lines:
      print(f"  {line}")
  print(f"\nOver {counted(config.train.num_steps, 'step')}, by tokens")
  width = max(len(curve.name) for curve in curves)
  for curve in curves:
    low, high = schedules.bounds(curve)
    line = schedules.sparkline(curve)
    print(f"  {curve.name:<{width}} {line} {low:g} to {high:g}")
  for row in rows:
    print(f"\n{format_row(row, coloured)}")
  return 0


def _find_corpus(config: ConfigDict, workdir) -> store.Corpus | None:
  path = config.corpus.path
  if not path:  # A wrong path is an error, rather than "no corpus".
    made = pathlib.Path(workdir or f"runs/{config.name}", "corpus")
    if not os.path.lexists(made):
      return None
    path = made
  # How an address is read is printed; a folder was named by the user.
  corpus = streamed.open_corpus(
    path, cache_gb=config.corpus.cache_gb, log=console.log
  )
  return prepare.check_tokenizer(config, corpus, log=lambda line: None)
