"""Compares what encoders of different objectives are good for.

  python benchmarks/claims.py --out FOLDER [--steps 3000] [--max_train 2000]
    [--encoders causal,roberta] [--tasks POS,NER] [--seeds 0,1,2]
    [--pretrain model.num_layers=2 ...] [--finetune data.length=64 ...]

Every encoder has the layers of configs/modern_small.py (bilm: LSTMs; static:
none, but word2vec's vectors), and the same text, tokenizer, rows, steps and
schedule. Each is fine-tuned on every task with every seed; the table has the
mean and the deviation over the seeds, in percent.

Everything is a command of maskedlm, printed before it runs, in a folder of its
own: what is finished is only read, what was stopped goes on. --pretrain and
--finetune change options of all encoders and of all runs. --table prints the
table of what is there and runs nothing.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)
TEXT = f"text:{DATA / 'text' / 'en_novels.txt'}"
MODEL = ROOT / "configs" / "modern_small.py"
# The optimizer and the mask rate of papers, not those of the config, which were
# chosen for roberta.
ALIKE = (
  *("phases=()", "optimizer.rule=adam", "optimizer.b1=0.9"),
  "optimizer.learning_rate=1e-3",
)
MASKED = "objective.mask_rate=0.15"
# name -> options of pretraining, beside these and those of the config.
ENCODERS = {
  "causal": ("objective.name=causal",),
  "right to left": (
    "objective.name=causal",
    "objective.direction=right_to_left",
  ),
  "roberta": ("objective.name=roberta", MASKED),
  "mlm_nsp": ("objective.name=mlm_nsp", "model.type_vocab_size=2", MASKED),
  "spanbert": ("objective.name=spanbert", MASKED),
  "electra": ("objective.name=electra", "model.type_vocab_size=2", MASKED),
  "bilm": ("objective.name=bilm",),
}
STATIC = "static"  # CBOW's vectors of words, as an encoder without layers.


class Row(NamedTuple):
  """A task of the table."""

  task: str
  config: str
  options: tuple[str, ...] = ()


# Rates are larger than the papers': the encoders are a hundredth of theirs.
TOKENS, TEXTS = "optimizer.learning_rate=5e-4", "optimizer.learning_rate=2e-4"
TASKS = {
  "POS": Row("tagging", "pos.py", (TOKENS,)),
  "NER": Row("tagging", "ner.py", (TOKENS,)),
  "nested spans": Row("spans", "spans.py:litbank", (TOKENS,)),
  "MRPC": Row("classification", "glue.py:mrpc", (TEXTS,)),
  "RTE": Row("classification", "glue.py:rte", (TEXTS,)),
  "QNLI": Row("classification", "glue.py:qnli", (TEXTS,)),
  "discourse": Row("classification", "discourse.py:coherence", (TEXTS,)),
  "SQuAD": Row(
    "question_answering",
    "squad.py:v1",
    (TOKENS, "data.length=128", "task.stride=64"),
  ),
}


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--steps", type=arguments.count, default=3_000)
  parser.add_argument("--max_train", type=int, default=2_000)
  known = (*ENCODERS, STATIC)
  parser.add_argument("--encoders", default=",".join(known))
  parser.add_argument("--tasks", default=",".join(TASKS))
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--pretrain", nargs="*", default=[], metavar="OPTION")
  parser.add_argument("--finetune", nargs="*", default=[], metavar="OPTION")
  parser.add_argument("--table", action="store_true")
  args = parser.parse_args()
  encoders = chosen(parser, "encoders", args.encoders, known)
  tasks = chosen(parser, "tasks", args.tasks, TASKS)
  if not args.table:
    for encoder in encoders:
      if encoder == STATIC:
        given = dict(option.split("=", 1) for option in args.pretrain)
        train_vectors(args.out, given.get("model.width", "256"))
      else:
        more = [f"train.num_steps={args.steps}", *args.pretrain]
        pretrain(args.out, encoder, more)
    for task in tasks:  # Whole columns first: they can be compared.
      for encoder in encoders:
        more = [f"data.max_train={args.max_train}", *args.finetune]
        finetune(
          args.out, encoder, task, [*more, f"sweep.seeds=({args.seeds},)"]
        )
  print("\n".join(format_table(args.out, encoders, tasks)))


def chosen(parser, option: str, text: str, known) -> list[str]:
  """Returns the names of an option; ends the program if one is unknown."""
  names = [name.strip() for name in text.split(",")]
  for name in names:
    if name not in known:
      parser.error(f"--{option}={name}: expected some of {', '.join(known)}")
  return names


def folder(out: pathlib.Path, *names: str) -> pathlib.Path:
  """Returns the folder of an encoder, or of its runs on a task."""
  return out.joinpath(*(name.replace(" ", "_") for name in names))


def pretrain(out: pathlib.Path, encoder: str, more: Sequence[str]) -> None:
  """Pretrains an encoder, unless that is done."""
  corpus = out / "corpus"
  source = [f"corpus.source={TEXT}", "corpus.sentences=lines"]
  if not (corpus / "meta.json").exists():
    run(
      "prepare",
      f"--out={corpus}",
      f"--config={MODEL}",
      *map("--config.{}".format, source),
    )
  options = [f"corpus.path={corpus}", *ALIKE, *more, *ENCODERS[encoder]]
  run(
    "pretrain",
    f"--config={MODEL}",
    f"--workdir={folder(out, 'encoders', encoder)}",
    *map("--config.{}".format, options),
  )


def train_vectors(out: pathlib.Path, width: str) -> None:
  """Trains word vectors on the same text, unless that is done."""
  workdir = folder(out, "encoders", STATIC)
  if workdir.exists():
    return
  vectors = out / "cbow.txt"
  run(
    *("static", "train", f"--source={TEXT}"),
    *(f"--width={width}", f"--out={vectors}"),
  )
  run("import", "--from=word2vec", str(vectors), f"--out={workdir}")


def finetune(
  out: pathlib.Path, encoder: str, task: str, more: Sequence[str]
) -> None:
  """Fine-tunes an encoder on a task with each seed, unless that is done."""
  row, workdir = TASKS[task], folder(out, "runs", encoder, task)
  if (workdir / "sweep.json").exists():
    return
  start = folder(out, "encoders", encoder)
  options = [f"init_from={start}", *row.options, *more]
  run(
    "finetune",
    row.task,
    f"--config={ROOT / 'configs' / row.config}",
    f"--workdir={workdir}",
    *map("--config.{}".format, options),
  )


def run(*words: str) -> None:
  """Prints and runs a command of maskedlm; ends the program if it fails."""
  print(f"$ maskedlm {shlex.join(words)}", flush=True)
  began = time.perf_counter()
  ended = subprocess.run([sys.executable, "-m", "maskedlm", *words])
  if ended.returncode:
    raise SystemExit(ended.returncode)
  print(f"{time.perf_counter() - began:.0f} s", flush=True)


def format_table(
  out: pathlib.Path, encoders: Sequence[str], tasks: Sequence[str]
) -> list[str]:
  """Returns a Markdown table of the runs that are finished."""
  lines = [
    f"| pretrained by | {' | '.join(tasks)} |",
    f"|---|{'---:|' * len(tasks)}",
  ]
  for encoder in encoders:
    cells = [cell(folder(out, "runs", encoder, task)) for task in tasks]
    lines.append(f"| {encoder} | {' | '.join(cells)} |")
  return lines


def cell(workdir: pathlib.Path) -> str:
  """Returns "mean ± deviation" in percent; empty if the runs aren't there."""
  path = workdir / "sweep.json"
  if not path.exists():
    return ""
  (setting,) = json.loads(path.read_text())["settings"]
  return f"{100 * setting['mean']:.1f} ± {100 * setting['stddev']:.1f}"


if __name__ == "__main__":
  main()
