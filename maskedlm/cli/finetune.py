"""`maskedlm finetune`: trains a pretrained encoder for a task.

It does one run, a sweep (config.sweep) or a suite (config.suite, such as the
tasks in configs/glue.py:all). Run again, each continues where it stopped.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maskedlm.cli import flags, frame, shared
from maskedlm.core import options
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import buckets, console, output_files

if TYPE_CHECKING:
  from maskedlm.finetune.options import FinetuneConfig


@dataclasses.dataclass(frozen=True)
class Finetune:
  """Fine-tunes an encoder as a config says; run again, it continues. TASK, the
  config's task, may be left out. docs/guides/finetune/overview.md has a
  tutorial for each task, docs/reference/options.md the options.
  """

  task: str = ""
  workdir: str | None = shared.workdir()
  config: str | None = flags.config_flag(example="configs/glue.py:sst2")
  overrides: tuple[str, ...] = ()

  @classmethod
  def parse(cls, command: str, argv: Sequence[str]) -> "Finetune":
    """Returns the verb of a command line; see frame.parse."""
    from maskedlm.config import overrides
    from maskedlm.finetune.config import sections

    task, argv = _split_task(argv)
    parser = frame.make_parser(cls, command)
    parser.usage = "%(prog)s [TASK] [--config FILE] [--workdir WORKDIR]"
    args, changes = overrides.split_arguments(parser, argv, sections=sections)
    return cls(
      task=task,
      workdir=args.workdir,
      config=args.config,
      overrides=tuple(changes),
    )

  def run(self) -> None:
    from maskedlm.config import overrides
    from maskedlm.data.sources import same_files
    from maskedlm.finetune import start
    from maskedlm.finetune.config import load_task, task_of, typed

    if self.config is not None:
      config = self._load(self.config)
    else:
      assert self.workdir  # Or split_arguments had refused the line.
      config = typed(start.continued_config(self.workdir, self.overrides))
    same = same_files.is_same("task.kind", self.task, config.task.kind)
    if self.task and not same:
      load_task(self.task)  # Raises if it is misspelt.
      raise ConfigError(
        f"{self.config or self.workdir} is for {config.task.kind!r}, not for "
        f"{self.task!r}: leave out {self.task}, or give another --config."
      )
    workdir = self.workdir or f"runs/{config.name}"
    given = overrides.given_options(self.overrides)
    _check_given(config, given, workdir)
    if not config.suite:
      _run(config, workdir)
      return
    file = (self.config or "").partition(":")[0]
    configs = {name: self._load(f"{file}:{name}") for name in config.suite}
    for member in configs.values():
      _check_given(member, given, workdir)
    results = {
      name: _run(member, f"{workdir}/{name}")
      for name, member in configs.items()
    }
    if all(results.values()):  # They are empty on hosts other than host 0.
      tasks = {member.task.kind: task_of(member) for member in configs.values()}
      print_suite(
        results,
        config.suite_without,
        buckets.origin(workdir),
        summaries=[task.summarise_suite(results) for task in tasks.values()],
      )

  def _load(self, path: str) -> "FinetuneConfig":
    from maskedlm.config import overrides
    from maskedlm.finetune.config import typed, validate

    return typed(overrides.load_config(path, self.overrides, validate=validate))


def _run(config: "FinetuneConfig", workdir: str) -> dict:
  """Does the run or the sweep of a config; returns its result."""
  from maskedlm.finetune import start
  from maskedlm.interop.huggingface import hub

  init_from = hub.pin(config.init_from, workdir)
  config = dataclasses.replace(config, init_from=init_from)
  return start.run_or_sweep(config, workdir)


def _check_given(
  config: "FinetuneConfig", given: Sequence[str], workdir: str
) -> None:
  """Raises ConfigError for options of the command line without an effect.

  If the workdir exists they are printed instead: the command that started a run
  must continue it.
  """
  from maskedlm.finetune.config import unused_options

  reasons = unused_options(config)
  messages = [
    f"{name}={options.value_of(config, name)!r} has no effect {reasons[name]}"
    for name in given
    if name in reasons
  ]
  if messages and not buckets.origin(workdir).exists():
    raise ConfigError(f"{messages[0]}: leave it out, or change the other.")
  for message in messages:
    console.log(message)


def _split_task(argv: Sequence[str]) -> tuple[str, list[str]]:
  """Splits argv into the task, "" if none is named, and the other arguments.

  As a positional, argparse would take VALUE in `--config.NAME VALUE` for it.
  """
  before = ""
  for i, token in enumerate(argv):
    is_value = before.startswith("-") and "=" not in before
    if not token.startswith("-") and not is_value:
      return token, [*argv[:i], *argv[i + 1 :]]
    before = token
  return "", list(argv)


def print_suite(
  results: dict,
  without: Sequence[str],
  workdir: pathlib.Path,
  *,
  summaries: Sequence[tuple[dict, list[str]]] = (),
) -> None:
  """Prints a table of all tasks and their average; writes suite.json.

  The average is that of the tasks' chosen metrics. What it lacks is printed
  below it: the variants that were not run (`without`), and further scored files
  (MNLI's mismatched part). The tasks' own `summaries` follow.
  """
  print("| task | metric | dev |")
  print("|---|---|---|")
  values = []
  for name, result in results.items():
    values.append(result[result["best_metric"]])
    print(f"| {name} | {result['best_metric']} | {values[-1]:.4f} |")
  average = sum(values) / len(values)
  print(f"| average of {len(values)} | | {average:.4f} |")
  if without:
    print(f"not in the average, because not run: {', '.join(without)}")
  for name, result in results.items():
    for file, scores in result.get("also_scored", {}).items():
      metric = result["best_metric"]
      print(
        f"not in the average: {name}, {file}: {metric} {scores[metric]:.4f}"
      )
  table: dict[str, Any] = {
    "average": average,
    "without": list(without),
    "tasks": results,
  }
  for fields, lines in summaries:
    table |= fields
    print("\n".join(lines))
  output_files.write_json(workdir / "suite.json", table)
