"""`maskedlm mine`: hard negatives for retrieval and for rerankers."""

import dataclasses
import json
import re

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import REQUIRED, flag
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


@dataclasses.dataclass(frozen=True)
class Mine:
  """Writes hard negatives: for each query and right passage those wrong
  passages of a collection that a model, BM25 or both rank high. The lines are
  what `finetune retrieval` and `finetune reranking` train on.
  """

  data: tuple[str, ...] = shared.data(
    REQUIRED,
    "Labelled files as of `finetune retrieval`, or beir:FOLDER. All of their "
    "passages are ranked; rows without a query only add some.",
  )
  config: tuple[str, ...] = flag(
    (),
    "The columns of the files: task.query, task.passage, task.label, "
    "task.header, as in `finetune retrieval`.",
    metavar="--config.task.NAME=VALUE",
    prefix="--config",
  )
  checkpoint: str | None = flag(
    None, "A model whose vectors rank the passages, as in `embed`."
  )
  bm25: bool = flag(
    False, "BM25 ranks them: alone, or joined with the checkpoint."
  )
  teacher: str | None = flag(
    None,
    "A reranker, or another model of vectors, whose scores decide how near a "
    "passage may be, and are written; default: those of the ranking.",
    metavar="CHECKPOINT",
  )
  ranks: str = flag(
    "1:50", "The first and the last rank of negatives.", metavar="FIRST:LAST"
  )
  negatives: int = flag(4, "Negatives of a row, at most.", low=1)
  margin: float | None = flag(
    None,
    "How far below the right passage's score a negative's must be, as a share "
    "of it; default: 0.05, or no limit by BM25's scores alone.",
    low=0,
  )
  seed: int | None = shared.seed(
    None, "Draws a row's negatives from the ranks; default: the first ones."
  )
  out: str = shared.out("The mined lines.", (".jsonl",), REQUIRED)
  json: bool = shared.json()

  def check(self) -> None:
    groups.check_task_options(self.config, ".")
    if not re.fullmatch(r"\d+:\d+", self.ranks):
      raise ConfigError(f"--ranks={self.ranks}: expected FIRST:LAST, as 1:50.")

  def run(self) -> None:
    from maskedlm.inference import mining
    from maskedlm.runtime import startup

    startup.enable_compile_cache()
    first, last = map(int, self.ranks.split(":"))
    rows, counts = mining.mine(
      ",".join(self.data),
      self.checkpoint or "",
      overrides=self.config,
      use_bm25=self.bm25,
      teacher=self.teacher or "",
      ranks=(first, last),
      negatives=self.negatives,
      margin=self.margin,
      seed=self.seed,
      progress=groups.show_progress,
    )
    console.clear_progress()
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    output_options.write_text(self.out, "".join(lines), option="--out")
    if self.json:
      console.print_json(counts)
      return
    print(
      f"{self.out}: {counted(counts['rows'], 'row')}, "
      f"{counted(counts['negatives'], 'negative')}, of "
      f"{counted(counts['queries'], 'query')} and "
      f"{counted(counts['passages'], 'different passage')}"
    )
    for name, meaning in MEANINGS.items():
      print(f"  {counts[name]:>8,}  {meaning}")


MEANINGS = {
  "right": "passages without a rank: right ones, and the query itself",
  "copies": "passages left out: another has the same text",
  "too_near": "negatives left out: nearer than the margin to the right passage",
  "fewer": "rows with fewer negatives than --negatives",
  "without": "rows left out: no negative",
}
