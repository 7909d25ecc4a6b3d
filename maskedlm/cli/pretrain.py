"""`maskedlm pretrain`: pretrains an encoder on raw text."""

import dataclasses
from typing import Any

from maskedlm.cli import exit_codes, shared
from maskedlm.cli.flags import config_flag


@dataclasses.dataclass(frozen=True)
class Pretrain:
  """Pretrains as a config says; run again, it continues from its newest
  checkpoint. docs/reference/options.md has every option.
  """

  workdir: str | None = shared.workdir()
  config: Any = config_flag(fits_corpus=True, folder="workdir")

  def run(self) -> int:
    from maskedlm import in_python

    workdir = self.workdir or f"runs/{self.config.name}"
    complete = in_python.run_pretraining(self.config, workdir)
    return 0 if complete else exit_codes.INTERRUPTED_AND_SAVED
