"""`maskedlm prepare`: turns text into a corpus on disk, or verifies one."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import exit_codes, options
from maskedlm.config import overrides
from maskedlm.core.errors import ConfigError, CorpusError, did_you_mean
from maskedlm.data.corpus import store
from maskedlm.data.prepare import local, prepare
from maskedlm.runtime import buckets, console


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm prepare",
    description="Reads --config.corpus.source, trains or loads the tokenizer "
    "and writes a corpus; with --verify instead of --config, checks a finished "
    "one.",
  )
  options.add_out(
    parser, "the corpus's directory; default: config.corpus.path", metavar="DIR"
  )
  parser.add_argument(
    "--verify",
    metavar="CORPUS",
    help="check every file of this corpus against its checksums",
  )
  parser.add_argument(
    "--runner",
    default="local",
    help="local: processes on this machine (default); beam: an Apache Beam "
    "pipeline (docs/guides/pretrain/preparing-text.md), whose own options are "
    "given as --beam.NAME=VALUE: --beam.runner=FlinkRunner",
  )
  for_beam = [token for token in argv if token.startswith("--beam.")]
  args, config = overrides.parse_config(
    parser,
    [t for t in argv if t not in for_beam],
    instead="verify",
    made=lambda args, config: args.out or config.corpus.path,
  )
  if config is None:
    unused = ["--out"] if args.out else []
    unused += ["--runner"] if args.runner != "local" else []
    if unused := [*unused, *for_beam]:
      raise ConfigError(
        f"{unused[0]} has no effect with --verify, which only reads a corpus: "
        "leave it out."
      )
    return _verify(args.verify)
  run = _find_runner(args.runner, for_beam)
  path = args.out or config.corpus.path
  if not path:
    raise CorpusError(
      "--out is missing: give the corpus's directory, as --out=DIR or "
      "--config.corpus.path=DIR."
    )
  if config.corpus.path not in ("", path):
    console.warn(
      f"corpus.path={config.corpus.path} has no effect with --out={path}"
    )
  if config.corpus.num_workers and args.runner != "local":
    console.warn(
      f"corpus.num_workers={config.corpus.num_workers} has no effect with "
      f"--runner={args.runner}"
    )
  corpus = prepare.prepare(config, buckets.folder(path), log=print, run=run)
  print(f"corpus {corpus.fingerprint[:12]} is ready in {path}")
  return 0


def _find_runner(runner: str, for_beam: Sequence[str]):
  """Returns the `run` argument of prepare.prepare."""
  if runner == "beam":
    from maskedlm.data.prepare.beam import runner as beam

    return beam.make_runner([t.replace("beam.", "", 1) for t in for_beam])
  if runner != "local":
    raise ConfigError(
      f"--runner={runner}: expected local or beam (Beam's own runner is given "
      f"as --runner=beam --beam.runner={runner})"
      f"{did_you_mean(runner, ('local', 'beam'))}"
    )
  if for_beam:
    raise ConfigError(f"{for_beam[0]}: only --runner=beam takes it; add that.")
  return local.run


def _verify(path: str) -> int:
  problems = store.verify_corpus(buckets.folder(path))
  for problem in problems:
    console.warn(f"error: {problem}")
  if not problems:
    print(f"{path}: every file matches its checksum")
  return exit_codes.ERROR if problems else 0
