"""`maskedlm status`: shows how far runs are, and their checkpoints."""

import dataclasses

from maskedlm.cli import shared
from maskedlm.cli.flags import flag
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True)
class Status:
  """Shows how far runs are: the last logged step, losses, speed, the newest
  checkpoint, and when something was last written. It reads workdirs alone,
  from any machine that sees them.
  """

  checkpoints: bool = flag(
    False,
    "List every checkpoint instead: step, held-out loss (of a fine-tuned "
    "model, its metric), size, and what is damaged; every file is compared "
    "with its SHA-256.",
  )
  json: bool = shared.json("Print a JSON line for each run or checkpoint.")
  workdirs: tuple[str, ...] = shared.runs(
    "Runs of pretrain or finetune, also gs://... or s3://..."
  )

  def run(self) -> None:
    from maskedlm.training import status

    for workdir in self.workdirs:
      if self.checkpoints:
        self._list_checkpoints(workdir)
        continue
      state = status.read_status(workdir)
      if self.json:
        console.print_json(state)
      else:
        print(status.format_status(state), flush=True)

  def _list_checkpoints(self, workdir: str) -> None:
    from maskedlm.training import listing

    steps = []
    for step in listing.list_steps(workdir):
      if self.json:
        console.print_json({"workdir": workdir, **step})
      steps.append(step)
    if not self.json:
      print("\n".join([workdir, *listing.format_steps(steps)]), flush=True)
