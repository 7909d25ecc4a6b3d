"""`maskedlm finetune KIND`: a pretrained encoder is put to work.

One run, a sweep (config.sweep) or a suite (config.suite, as the tasks of
configs/glue.py:all). Run again, each continues where it was stopped.
"""

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Sequence

from ml_collections import ConfigDict

from maskedlm.cli import main as cli
from maskedlm.config import overrides as flags
from maskedlm.core.errors import ConfigError
from maskedlm.finetune import config as configs
from maskedlm.runtime import buckets, startup


def main(argv: Sequence[str], *, kind: str | None = None) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog=f"maskedlm finetune{'' if kind is None else ' ' + kind}",
    description="Fine-tunes an encoder as a config says; run again, it "
    "continues. docs/guides/finetune/overview.md has the tasks, with their "
    "options and a "
    "tutorial for each; maskedlm/finetune/config.py the options of all.",
  )
  if kind is None:
    parser.add_argument("kind", help="classification, tagging, ...")
  parser.add_argument(
    "--workdir", help="checkpoints, logs, results; default: runs/<name>"
  )
  args, overrides = flags.split(parser, argv)

  def load(path: str) -> ConfigDict:
    return flags.load_config(path, overrides, validate=configs.validate)

  config = load(args.config)
  kind = kind or args.kind
  if kind != config.task.kind:
    configs.load_kind(kind)  # Perhaps it is only misspelt.
    raise ConfigError(
      f"{args.config} is for {config.task.kind!r}, not for {kind!r}: `maskedlm "
      f"finetune {config.task.kind} --config={args.config}`."
    )
  workdir = args.workdir or f"runs/{config.name}"
  if not config.suite:
    _run(config, workdir)
    return 0
  file = args.config.partition(":")[0]
  results = {
    name: _run(load(f"{file}:{name}"), f"{workdir}/{name}")
    for name in config.suite
  }
  if all(results.values()):  # On host 0, that is.
    _print_suite(results, config.suite_without, buckets.origin(workdir))
  return 0


def run_kind(kind: str) -> None:
  """`python -m maskedlm.finetune.KIND`: exits as `maskedlm finetune KIND`."""
  sys.exit(cli.run(functools.partial(main, kind=kind)))


@startup.connected()
def _run(config: ConfigDict, workdir: str) -> dict:
  """One run, or the sweep that the config asks for; returns its result."""
  from maskedlm.finetune import run, sweep
  from maskedlm.runtime import multihost

  startup.enable_compile_cache()
  with multihost.workdir(workdir) as folder:
    if any(config.sweep[name] for name in config.sweep):
      multihost.check_alone("a sweep")
      return sweep.sweep(config, folder)
    result = run.finetune(config, folder)
  if not multihost.is_primary():
    return {}
  print(f"{config.name}, best checkpoint on the development set:")
  run.describe_result(result, print)
  print(f"  these figures        {buckets.origin(workdir) / 'result.json'}")
  return result


def _print_suite(
  results: dict, without: Sequence[str], workdir: pathlib.Path
) -> None:
  """The table of all tasks, with the average of their chosen metrics.

  An average is told with what it lacks: the variants `without` files, and what
  was scored besides (MNLI's mismatched part).
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
    print(f"not in the average, for they were not run: {', '.join(without)}")
  for name, result in results.items():
    for file, scores in result.get("also_scored", {}).items():
      metric = result["best_metric"]
      print(
        f"not in the average: {name}, {file}: {metric} {scores[metric]:.4f}"
      )
  table = {"average": average, "without": list(without), "tasks": results}
  (workdir / "suite.json").write_text(json.dumps(table, indent=2) + "\n")
