"""`maskedlm prepare`: turns text into a corpus on disk, or verifies one."""

import dataclasses
from typing import Any

from maskedlm.cli import exit_codes
from maskedlm.cli.flags import config_flag, flag
from maskedlm.core.errors import ConfigError, CorpusError, did_you_mean
from maskedlm.runtime import buckets, console


@dataclasses.dataclass(frozen=True)
class Prepare:
  """Reads --config.corpus.source, trains or loads the tokenizer and writes a
  corpus; with --verify instead of --config, checks a finished one.
  """

  out: str | None = flag(
    None,
    "The corpus's directory; default: config.corpus.path.",
    metavar="DIR",
    not_beside=("verify",),
  )
  verify: str | None = flag(
    None,
    "Check every file of this corpus against its checksums.",
    metavar="CORPUS",
  )
  runner: str = flag(
    "local",
    "local: processes on this machine; beam: an Apache Beam pipeline "
    "(docs/guides/pretrain/preparing-text.md).",
    not_beside=("verify",),
  )
  beam: tuple[str, ...] = flag(
    (),
    "Of Beam's own options, as --beam.runner=FlinkRunner.",
    metavar="--beam.NAME=VALUE",
    prefix="--beam.",
    needs={"runner": ("beam",)},
    not_beside=("verify",),
  )
  config: Any = config_flag(instead="verify", folder="out")

  def check(self) -> None:
    """Checks the runner; one of Beam's is an option of Beam."""
    known = ("local", "beam")
    if self.runner not in known:
      near = did_you_mean(self.runner, known)
      raise ConfigError(
        f"--runner={self.runner!r}: expected local or beam{near}; a runner of "
        f"Beam is given as --runner=beam --beam.runner={self.runner}."
      )

  def run(self) -> int:
    if self.verify:
      return _verify(self.verify)
    from maskedlm.data.prepare import local, prepare
    from maskedlm.pretraining.config import typed

    run = local.run
    if self.runner == "beam":
      from maskedlm.data.prepare.beam import runner

      names = [token.replace("beam.", "", 1) for token in self.beam]
      run = runner.make_runner(names)
    path = self.out or self.config.corpus.path
    if not path:
      raise CorpusError(
        "--out is missing: give the corpus's directory, as --out=DIR or "
        "--config.corpus.path=DIR."
      )
    if self.config.corpus.path not in ("", path):
      console.warn(
        f"corpus.path={self.config.corpus.path} has no effect with --out={path}"
      )
    if self.config.corpus.num_workers and self.runner != "local":
      console.warn(
        f"corpus.num_workers={self.config.corpus.num_workers} has no effect "
        f"with --runner={self.runner}"
      )
    config, folder = typed(self.config), buckets.folder(path)
    corpus = prepare.prepare(config, folder, log=print, run=run)
    print(f"corpus {corpus.fingerprint[:12]} is ready in {path}")
    return 0


def _verify(path: str) -> int:
  from maskedlm.data.corpus import store

  problems = store.verify_corpus(buckets.folder(path))
  for problem in problems:
    console.warn(f"error: {problem}")
  if not problems:
    print(f"{path}: every file matches its checksum")
  return exit_codes.ERROR if problems else 0
