"""`maskedlm average`: averages the weights of several checkpoints."""

import dataclasses
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import REQUIRED, argument, flag
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


@dataclasses.dataclass(frozen=True)
class Average:
  """Averages the weights of checkpoints of one model: the last ones of a run
  (runs/x/checkpoints/*), or models fine-tuned from the same start.
  """

  ONE_OF = ("weights", "decay")

  checkpoints: tuple[str, ...] = argument(
    REQUIRED,
    "Two or more: workdirs, or checkpoints of one.",
    metavar="CHECKPOINT",
  )
  ema: bool = flag(
    False,
    "Take the moving averages that they hold (train.ema_decay) instead of the "
    "weights; one checkpoint is enough.",
  )
  out: str = shared.out_folder()
  data: tuple[str, ...] = shared.data(
    (),
    "Of pretrained models: text, as that of `maskedlm evaluate`; prints the "
    "loss of each checkpoint and of the average on it.",
  )
  weights: str = flag(
    "", "Their weights, as 1,2,3 in the order that is given; default: equal."
  )
  decay: float | None = flag(
    None,
    "An exponential moving average over them, oldest first: average = decay * "
    "average + (1 - decay) * next.",
    above=0,
    below=1,
  )

  def check(self) -> None:
    if len(self.checkpoints) < 2 and not self.ema:
      raise ConfigError(
        f"{self.checkpoints[0]}: expected two checkpoints or more."
      )

  def run(self) -> None:
    from maskedlm.inference import token_model
    from maskedlm.training import average
    from maskedlm.training.checkpoints import load, write

    paths, weights = list(self.checkpoints), self._weights()
    steps = [load.describe_checkpoint(path).meta["step"] for path in paths]
    if self.decay is not None:  # From the oldest to the newest.
      in_order = sorted(zip(steps, paths, strict=True))
      steps, paths = map(list, zip(*in_order, strict=True))
    open_one = load.open_ema if self.ema else load.open_checkpoint

    def checkpoints() -> Iterator[tuple[str, load.LoadedCheckpoint]]:
      for path in paths:
        console.log(f"reading {path}")
        yield path, open_one(path)

    members = [
      {"checkpoint": path, "step": step, "weight": weight}
      for path, step, weight in zip(paths, steps, weights, strict=True)
    ]
    loss_of = _measure(",".join(self.data)) if self.data else None
    with output_options.new_folder(pathlib.Path(self.out)) as unfinished:
      losses = [loss_of(path) for path in paths if loss_of]
      params, thresholds = average.average(checkpoints(), weights)
      last = load.describe_checkpoint(paths[-1])
      last.tokenizer.save(unfinished / "tokenizer")
      write.write_workdir(
        unfinished,
        params,
        last.meta["task"],
        origin={
          "averaged": members,
          "ema": self.ema,
          "run": token_model.training_config(last),
        },
        corpus="averaged",
        tokenizer=last.tokenizer.sha256,
        log=console.log,
        heldout=thresholds,
      )
    rows: list[list] = [
      [f"{m['step']:,}", f"{m['weight']:.4f}", m["checkpoint"]] for m in members
    ]
    rows.append([None, None, f"{self.out}, their mean"])
    columns = ["step", "weight", "checkpoint"]
    if loss_of:
      losses.append(loss_of(self.out))
      columns.append("MLM loss")
      rows = [[*r, f"{x:.4f}"] for r, x in zip(rows, losses, strict=True)]
    print("\n".join(console.table(columns, rows, align=">><")))

  def _weights(self) -> list[float]:
    """Returns the weights, which add up to 1."""
    from maskedlm.training import average

    count = len(self.checkpoints)
    if self.decay is not None:
      return average.decay_weights(self.decay, count).tolist()
    try:
      text = self.weights or ",".join("1" * count)
      values = [float(x) for x in text.split(",")]
    except ValueError:
      values = []
    if len(values) != count or not all(0 < x < float("inf") for x in values):
      raise ConfigError(
        f"--weights={self.weights}: expected {count} positive numbers, one for "
        "each checkpoint, as 1,2,3."
      )
    return [x / sum(values) for x in values]


def _measure(data: str) -> Callable[[str], float]:
  """Returns a function from a checkpoint to its loss on a text.

  All have the same masks, in rows of the first one's length.
  """
  from maskedlm.inference.pretrained import evaluate
  from maskedlm.training.checkpoints import load

  documents = list(groups.read_documents(data, None, Counter()))
  length = 0

  def loss_of(path: str) -> float:
    nonlocal length
    console.log(f"evaluating {path}")
    checkpoint = load.open_checkpoint(path)
    model = evaluate.make_model(checkpoint, path, length=length)
    length = model.length
    return evaluate.evaluate(model, documents)["mlm_loss"]

  return loss_of
