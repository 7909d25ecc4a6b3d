"""Measures what embedders and rerankers learn, beside sentence-transformers.

  python benchmarks/retrieval.py --start WORKDIR --teacher WORKDIR --out FOLDER
    [--seeds 0,1,2] [--rows in-batch,peer] [--options model.dropout=0.0 ...]

A collection is made of SQuAD's training file: the questions of a tenth of its
paragraphs search them all, another tenth chooses checkpoints, and the others
train. Every row starts from the encoder --start and has rows of 128; the peer
is sentence-transformers with the pairs, batches, rate and epochs of in-batch,
whatever --options say; its pairs a second are printed. The table has means and
deviations over the seeds. All other rows are commands of maskedlm, printed
before they run; what is finished is only read. --table prints the table of what
is there.
"""

import argparse
import importlib.util
import itertools
import json
import pathlib
import random
import subprocess
import sys

import arguments
import objectives

from maskedlm.data.labelled.formats import beir

COMMON = ("data.length=128", "data.batch_size=64", "train.epochs=2")
SLOW, FAST = "optimizer.learning_rate=3e-4", "optimizer.learning_rate=3e-3"
LARGE = ("data.batch_size=1024", "train.accumulate=16", FAST)
# name -> task, config, files of training, options.
ROWS = {
  "in-batch": ("retrieval", "retrieval.py", "pairs", (SLOW,)),
  "peer": ("", "", "pairs", ()),
  "mined": ("retrieval", "retrieval.py", "mined", (SLOW,)),
  "taught": ("retrieval", "retrieval.py", "taught", (SLOW, "task.loss=kl")),
  "large": ("retrieval", "retrieval.py", "pairs", LARGE),
  "reranker": (
    "reranking",
    "reranking.py",
    "mined",
    (SLOW, "data.batch_size=16", "train.epochs=3"),
  ),
  "splade": ("splade", "embedder.py:sparse", "pairs", ()),
}
SHOWN = ("ndcg@10", "mrr@10", "recall@10")


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--start", type=pathlib.Path, required=True)
  parser.add_argument("--teacher", type=pathlib.Path, required=True)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--rows", default=",".join(ROWS))
  parser.add_argument("--paragraphs", type=arguments.count, default=1_669)
  parser.add_argument("--options", nargs="*", default=[], metavar="OPTION")
  parser.add_argument("--table", action="store_true")
  args = parser.parse_args()
  args.out, args.rows = args.out.resolve(), args.rows.split(",")
  for name in set(args.rows) - set(ROWS):
    parser.error(f"--rows={name}: expected some of {', '.join(ROWS)}")
  lacks = not importlib.util.find_spec("accelerate")  # Of its trainer.
  if "peer" in args.rows and lacks and not args.table:
    parser.error("the row peer needs the extra peer; leave it out of --rows")
  if not args.table:
    write_data(args)
    measure(args.start, args.out / "start.json", args)
    for seed, name in itertools.product(args.seeds.split(","), args.rows):
      run_row(args, name, seed)
  print("\n".join(format_table(args)))


def write_data(args) -> None:
  """Writes pairs, mined lists, a teacher's scores, and the collection."""
  out = args.out
  if not (out / "collection").exists():
    file = objectives.DATA / "squad" / "train-v1.1.json"
    articles = json.loads(file.read_text())["data"]
    paragraphs = [p for article in articles for p in article["paragraphs"]]
    random.Random(0).shuffle(paragraphs)
    paragraphs = paragraphs[: args.paragraphs]
    tenth = len(paragraphs) // 10
    out.mkdir(parents=True, exist_ok=True)
    for name, part in (
      ("dev", paragraphs[tenth : 2 * tenth]),
      ("train", paragraphs[2 * tenth :]),
    ):
      rows = [
        {"query": question["question"], "passage": paragraph["context"]}
        for paragraph in part
        for question in paragraph["qas"]
      ]
      lines = (json.dumps(row) + "\n" for row in rows)
      (out / f"pairs_{name}.jsonl").write_text("".join(lines))
    asked = [
      (q["question"], f"d{i}")
      for i, paragraph in enumerate(paragraphs[:tenth])
      for q in paragraph["qas"]
    ]
    texts = {f"d{i}": p["context"] for i, p in enumerate(paragraphs)}
    queries = {f"q{i}": text for i, (text, _) in enumerate(asked)}
    right = {f"q{i}": {key: 1} for i, (_, key) in enumerate(asked)}
    collection = beir.Collection(texts, queries, right)
    beir.write_collection(out / "collection", collection)
  for part in ("train", "dev"):
    for name, more in (("mined", ()), ("taught", (args.teacher,))):
      mined = out / f"{name}_{part}.jsonl"
      if not mined.exists():
        data = f"--data={out / f'pairs_{part}.jsonl'}", f"--out={mined}"
        flags = (f"--teacher={path}" for path in more)
        objectives.run("mine", *data, "--bm25", "--negatives=3", *flags)


def run_row(args, name: str, seed: str) -> None:
  """Trains and measures a row, but for what is there."""
  folder = args.out / name
  workdir, result = folder / f"run{seed}", folder / f"{seed}.json"
  folder.mkdir(exist_ok=True)
  if result.exists():
    return
  task, config, files, options = ROWS[name]
  if name == "peer":
    train_peer(args, workdir, seed)
  elif not (workdir / "result.json").exists():
    data = (
      f"data.{part}={args.out / f'{files}_{part}.jsonl'}"
      for part in ("train", "dev")
    )
    chosen = f"init_from={args.start}", *data, *COMMON, *options, *args.options
    objectives.launch(("finetune", task), config, workdir, seed, *chosen)
  measure(workdir, result, args)


def train_peer(args, workdir: pathlib.Path, seed: str) -> None:
  """Trains the peer on the exported encoder, and imports what it made."""
  start, model = args.out / "start_hf", workdir.with_name(f"theirs{seed}")
  if not start.exists():
    objectives.run(
      "export", f"--checkpoint={args.start}", "--to=hf", f"--out={start}"
    )
  if not model.exists():
    script = pathlib.Path(__file__).with_name("retrieval_peer.py")
    files = start, args.out / "pairs_train.jsonl", model
    command = [sys.executable, str(script), *map(str, files), seed]
    subprocess.run(command, check=True)
  if not workdir.exists():
    objectives.run("import", "--from=hf", str(model), f"--out={workdir}")


def measure(workdir, result: pathlib.Path, args) -> None:
  """Writes the figures of a model on the collection, if they are not there."""
  if not result.exists():
    data = f"--data=beir:{args.out / 'collection'}"
    figures = objectives.run(
      "evaluate", f"--checkpoint={workdir}", data, "--json"
    )
    result.write_text(figures)


def format_table(args) -> list[str]:
  """Returns a Markdown table of what is finished."""
  lines = [f"| | {' | '.join(SHOWN)} | {SHOWN[0]} with BM25 |"]
  lines += [f"|---|{'---:|' * (len(SHOWN) + 1)}"]
  files = {"the start": [args.out / "start.json"]} | {
    name: [args.out / name / f"{seed}.json" for seed in args.seeds.split(",")]
    for name in args.rows
  }
  for name, paths in files.items():
    results = [json.loads(path.read_text()) for path in paths if path.exists()]
    cells = [
      objectives.cell([x[measure] for x in results]) for measure in SHOWN
    ]
    # "both" of vectors, "joined" of a reranker: the last ranking.
    last = [[*x["rankings"].values()][-1][SHOWN[0]] for x in results]
    lines.append(f"| {' | '.join([name, *cells, objectives.cell(last)])} |")
  return lines


if __name__ == "__main__":
  main()
