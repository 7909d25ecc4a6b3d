"""`maskedlm inspect`: shows what a config will train, before it is trained."""

import dataclasses
import os
import pathlib
import sys
from typing import Any

from maskedlm.cli import shared
from maskedlm.cli.flags import config_flag, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


@dataclasses.dataclass(frozen=True)
class Inspect:
  """Shows what a config will train, before it is trained. Uses the corpus of
  --config.corpus.path or of --workdir, if there is one.
  """

  workdir: str | None = shared.workdir(
    "Workdir of a run, to use its corpus unless --config.corpus.path is set, "
    "as pretrain does; without --config, also its config."
  )
  rows: int | None = flag(None, "Sample rows to show; default: 3.", low=0)
  html: str | None = shared.out("Also write an HTML page.")
  json: bool = shared.json("Print only the figures, as JSON.")
  config: Any = config_flag(fits_corpus=True, folder="workdir")

  def check(self) -> None:
    """Checks that the rows are shown somewhere."""
    if self.rows is not None and self.json and not self.html:
      raise ConfigError(
        f"--rows={self.rows} has no effect with --json, which prints only the "
        "figures: leave it out, or add --html=FILE."
      )

  def run(self) -> None:
    from maskedlm.data.corpus import integrity
    from maskedlm.planning.inspect import facts, html_page, schedules
    from maskedlm.runtime import startup

    corpus = self._find_corpus()
    phases, tasks = self._make_tasks(corpus)
    startup.enable_compile_cache()
    figures, sections = facts.facts_of_model(phases, tasks)
    if len(phases) > 1:
      table = schedules.format_table(phases, tasks if corpus else None)
      sections.insert(0, facts.Section("Phases", table))
    rows: list = []
    if corpus is None:
      line = (
        "no corpus yet: run `maskedlm prepare` to see more. Packed rows were "
        "counted as full rows"
      )
      sections.append(facts.Section("Rows", [line]))
    else:
      with integrity.reading_rows(corpus.path, corpus.meta):
        measured, more, rows = facts.facts_of_rows(
          phases,
          tasks,
          corpus,
          num_samples=3 if self.rows is None else self.rows,
        )
      figures.update(measured)
      sections += more
    curves = schedules.curves(phases)
    if self.html:
      page = html_page.render_page(self.config.name, sections, rows, curves)
      output_options.write_text(self.html, page, option="--html")
    if self.json:
      console.print_json(figures, indent=2)
    else:
      self._print(sections, curves, rows)

  def _make_tasks(self, corpus) -> tuple:
    """Returns (phases, the task of each); decides how rows are packed."""
    from maskedlm.data.batches import placeholder_corpus
    from maskedlm.data.corpus import store
    from maskedlm.pretraining import objectives, predictions
    from maskedlm.pretraining.config import decide_packing, split

    if corpus:
      predictions.check_corpus(corpus)
      count = len(split(self.config))
      decide_packing(self.config, [corpus] * count, log=lambda line: None)
    phases = split(self.config)
    usual = corpus or placeholder_corpus.make_corpus(self.config.tokenizer)
    tasks = [objectives.make_task(phase.config, usual) for phase in phases]
    if corpus:
      tasks = [
        task._replace(batch_at=store.check_batches(task.batch_at, corpus))
        for task in tasks
      ]
      predictions.check_rows(
        phases[0].config.objective,
        tasks[0],
        corpus,
        seed=self.config.seed,
        log=console.log,
      )
    return phases, tasks

  def _print(self, sections, curves, rows) -> None:
    from maskedlm.planning.inspect import schedules
    from maskedlm.planning.inspect.rows import format_row

    for section in sections:
      print(f"\n{section.title}")
      for line in section.lines:
        print(f"  {line}")
    print(f"\nOver {counted(self.config.train.num_steps, 'step')}, by tokens")
    width = max(len(curve.name) for curve in curves)
    for curve in curves:
      low, high = schedules.bounds(curve)
      line = schedules.sparkline(curve)
      print(f"  {curve.name:<{width}} {line} {low:g} to {high:g}")
    for row in rows:
      print(f"\n{format_row(row, console.is_terminal(sys.stdout))}")

  def _find_corpus(self):
    from maskedlm.data.corpus import streamed
    from maskedlm.data.prepare import prepare

    path = self.config.corpus.path
    if not path:  # A wrong path is an error, rather than "no corpus".
      workdir = self.workdir or f"runs/{self.config.name}"
      path = pathlib.Path(workdir, "corpus")
      if not os.path.lexists(path):
        return None
    # How an address is read is printed; a folder was named by the user.
    corpus = streamed.open_corpus(
      path, cache_gb=self.config.corpus.cache_gb, log=console.log
    )
    return prepare.check_tokenizer(self.config, corpus, log=lambda line: None)
