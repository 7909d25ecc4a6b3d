"""Compares what objectives make of equal text and equal CPU time.

  python benchmarks/objectives.py --out FOLDER [--minutes 20] [--seeds 0,1,2]
    [--rows masked,electra] [--tasks POS,NER] [--max_train 2000]
    [--pretrain model.num_layers=2 ...] [--finetune data.length=64 ...]

Every row is an encoder of configs/modern_small.py (the last two: distil.py) but
for its objective, on English novels, with as many steps as take --minutes of
CPU time; --steps gives all the same number instead. A seed is a pretraining,
and a fine-tuning of it on each task. The table has means and deviations over
the seeds: nats of masked tokens of held-out novels, minimal pairs of agreement
and word order (made here), and the tasks' scores, in percent.

Everything is a command of maskedlm, printed before it runs, in a folder of its
own: what is finished is only read, what was stopped goes on. --table prints the
table of what is there and runs nothing. The device is the command's: on a GPU,
--steps 48000 reads 100 million tokens.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile

import arguments

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)
SMALL, THEN = "modern_small.py", "causal_then_masked.py"
NSP = ("model.type_vocab_size=2",)
FALLING = "phases=({},{'share':0.33,'objective.mask_rate':0.3},"
FALLING += "{'share':0.33,'objective.mask_rate':0.2})"
# name -> config and options of pretraining.
ROWS = {
  "masked": (SMALL, ()),
  "causal": (SMALL, ("objective.name=causal", "phases=()")),
  "causal 25% then masked": (f"{THEN}:25", ()),
  "causal 50% then masked": (f"{THEN}:50", ()),
  "causal 75% then masked": (f"{THEN}:75", ()),
  "gptbert": (SMALL, ("objective.name=gptbert",)),
  "adaptive masks": (
    SMALL,
    ("objective.adapt_every=200", "objective.mask_rate=0.4", FALLING),
  ),
  "mlm_nsp": (SMALL, ("objective.name=mlm_nsp", *NSP)),
  "spanbert": (SMALL, ("objective.name=spanbert",)),
  "electra": (SMALL, ("objective.name=electra", *NSP)),
  "deberta": (
    SMALL,
    ("objective.name=deberta", "model.position=disentangled"),
  ),
  "student alone": ("distil.py", ("teacher_layers=()",)),
  "student of masked": ("distil.py", ("teacher={masked}",)),
}
# Rates are larger than the papers': the encoders are a hundredth of theirs.
TOKENS, TEXTS = "optimizer.learning_rate=5e-4", "optimizer.learning_rate=2e-4"
TASKS = {
  "POS": ("tagging", "pos.py", TOKENS),
  "NER": ("tagging", "ner.py", TOKENS),
  "spans": ("spans", "spans.py:litbank", TOKENS),
  "MRPC": ("classification", "glue.py:mrpc", TEXTS),
  "QNLI": ("classification", "glue.py:qnli", TEXTS),
  "RTE": ("classification", "glue.py:rte", TEXTS),
}
PROBES = 20, 220  # Steps of two runs; the rest of them, 20 s, varies by 3.
NOUNS = (("man", "men"), ("child", "children"), ("lady", "ladies"))
NOUNS += (("horse", "horses"), ("friend", "friends"), ("servant", "servants"))
VERBS = (("was", "were"), ("has", "have"), ("is", "are"))
ENDS = ("been happy", "very tired", "not there", "always here")


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--minutes", type=float, default=20)
  parser.add_argument("--steps", type=arguments.count)
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--rows", default=",".join(ROWS))
  parser.add_argument("--tasks", default=",".join(TASKS))
  parser.add_argument("--max_train", type=arguments.count, default=2_000)
  parser.add_argument("--pretrain", nargs="*", default=[], metavar="OPTION")
  parser.add_argument("--finetune", nargs="*", default=[], metavar="OPTION")
  parser.add_argument("--table", action="store_true")
  args = parser.parse_args()
  args.out = args.out.resolve()
  args.rows, args.tasks = args.rows.split(","), args.tasks.split(",")
  for option, known in (("rows", ROWS), ("tasks", TASKS)):
    for name in set(getattr(args, option)) - set(known):
      parser.error(f"--{option}={name}: expected some of {', '.join(known)}")
  if not args.table:
    if not DATA.is_dir():
      parser.error(
        f"MASKEDLM_DATA={DATA}: no such folder; give that of the data"
      )
    write_data(args.out)
    for seed, name in itertools.product(args.seeds.split(","), args.rows):
      run_row(args, name, seed)
  print("\n".join(format_table(args)))


def write_data(out: pathlib.Path) -> None:
  """Writes the novels, their last hundredth apart, and the minimal pairs."""
  if (out / "pairs.jsonl").exists():
    return
  out.mkdir(parents=True, exist_ok=True)
  lines = (DATA / "text" / "en_novels.txt").read_text().splitlines(True)
  cut = len(lines) * 99 // 100
  (out / "train.txt").write_text("".join(lines[:cut]))
  (out / "heldout.txt").write_text("".join(lines[cut:]))
  pairs = [*agreement(), *word_order(lines[cut:], random.Random(0))]
  (out / "pairs.jsonl").write_text("".join(f"{json.dumps(p)}\n" for p in pairs))


def agreement():
  """Yields pairs in which the verb agrees with its subject, or does not."""
  for nouns, others, verbs, end, number in itertools.product(
    NOUNS, NOUNS, VERBS, ENDS, (0, 1)
  ):
    if nouns == others or (verbs == VERBS[1]) != (end == ENDS[0]):
      continue  # "has been happy", but "was very tired".
    subject = f"The {nouns[number]} near the {others[1 - number]}"
    yield {
      "sentence_good": f"{subject} {verbs[number]} {end}.",
      "sentence_bad": f"{subject} {verbs[1 - number]} {end}.",
      "UID": "agreement",
    }


def word_order(lines, chance: random.Random, number: int = 500):
  """Yields sentences, and the same with two neighbouring words exchanged."""
  known = [line.split() for line in lines]
  known = [words for words in known if 6 <= len(words) <= 20]
  for words in chance.sample(known, number):
    i = chance.randrange(1, len(words) - 2)
    swapped = [*words[:i], words[i + 1], words[i], *words[i + 2 :]]
    if swapped != words:
      yield {
        "sentence_good": " ".join(words),
        "sentence_bad": " ".join(swapped),
        "UID": "word order",
      }


def run_row(args, name: str, seed: str) -> None:
  """Pretrains, measures and fine-tunes an encoder, but for what is there."""
  encoder = folder(args.out, name, seed, "encoder")
  if not (encoder / "result.json").exists():
    steps = args.steps or count_steps(args, name, seed)
    pretrain(args, name, seed, encoder, steps)
  start = encoder.parent
  if not (start / "pairs.json").exists():
    at = ("--checkpoint", str(encoder), "--json")
    if name != "causal":  # It reads no masks.
      held_out = run("evaluate", *at, f"--data={args.out / 'heldout.txt'}")
      (start / "heldout.json").write_text(held_out)
    pairs = str(args.out / "pairs.jsonl")
    (start / "pairs.json").write_text(
      run("score", *at, "--minimal_pairs", pairs)
    )
  for task in args.tasks:
    verb, config, rate = TASKS[task]
    if not (start / task / "result.json").exists():
      options = (
        f"init_from={encoder}",
        rate,
        f"data.max_train={args.max_train}",
      )
      launch(
        ("finetune", verb), config, start / task, seed, *options, *args.finetune
      )


def count_steps(args, name: str, seed: str) -> int:
  """Returns how many steps take args.minutes of CPU time, for all seeds."""
  file = folder(args.out, name) / "cpu_seconds_of_a_step.json"
  if not file.exists():
    seconds = []
    for steps in PROBES:
      with tempfile.TemporaryDirectory(dir=args.out) as probe:
        began = cpu_seconds()
        pretrain(args, name, seed, pathlib.Path(probe, "run"), steps)
        seconds.append(cpu_seconds() - began)
    of_one = (seconds[1] - seconds[0]) / (PROBES[1] - PROBES[0])
    if of_one <= 0:
      raise SystemExit(f"{name}: {PROBES} steps took {seconds} CPU seconds")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(of_one))
  return max(int(60 * args.minutes / json.loads(file.read_text())), 2)


def cpu_seconds() -> float:
  """Returns the CPU seconds of the programs that have ended."""
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def pretrain(args, name, seed, workdir: pathlib.Path, steps: int) -> None:
  """Pretrains the encoder of a row."""
  config, options = ROWS[name]
  teacher = folder(args.out, "masked", seed, "encoder")
  more = (
    option.format(masked=teacher) if "{masked}" in option else option
    for option in options
  )
  launch(
    ("pretrain",),
    config,
    workdir,
    seed,
    f"corpus.path={corpus(args)}",
    f"train.num_steps={steps}",
    *more,
    *args.pretrain,
  )


def corpus(args) -> pathlib.Path:
  """Returns the folder of the prepared novels, which all rows read."""
  prepared = args.out / "corpus"
  if not (prepared / "meta.json").exists():
    source = f"--config.corpus.source=text:{args.out / 'train.txt'}"
    options = (source, "--config.corpus.sentences=lines")
    run(
      "prepare",
      f"--config={ROOT / 'configs' / SMALL}",
      f"--out={prepared}",
      *options,
    )
  return prepared


def launch(verb, config: str, workdir, seed: str, *options: str) -> None:
  """Runs a config of the repository with options and a seed."""
  where = f"--config={ROOT / 'configs' / config}", f"--workdir={workdir}"
  run(*verb, *where, *map("--config.{}".format, (f"seed={seed}", *options)))


def run(*words: str) -> str:
  """Returns what a command prints; ends the program if it fails."""
  print(f"$ maskedlm {shlex.join(words)}", flush=True)
  command = [sys.executable, "-m", "maskedlm", *words]
  ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
  if ended.returncode:
    raise SystemExit(ended.returncode)
  return ended.stdout


def folder(out: pathlib.Path, name: str, *names: str) -> pathlib.Path:
  """Returns the folder of a row's seed, or of something in it."""
  return out.joinpath(name.replace(" ", "_").replace("%", ""), *names)


def format_table(args) -> list[str]:
  """Returns a Markdown table of what is finished."""
  columns = ("steps", "MLM, nats", "agreement", "word order", *args.tasks)
  lines = [f"| pretrained by | {' | '.join(columns)} |"]
  lines += [f"|---|{'---:|' * len(columns)}"]
  for name in args.rows:
    seeds = [
      figures(folder(args.out, name, seed), args.tasks)
      for seed in args.seeds.split(",")
    ]
    cells = (
      cell([seed[column] for seed in seeds if column in seed])
      for column in columns
    )
    lines.append(f"| {name} | {' | '.join(cells)} |")
  return lines


def figures(seed_folder: pathlib.Path, tasks) -> dict[str, float]:
  """Returns column -> figure of a row's seed, of what is finished."""
  read = {
    path.relative_to(seed_folder).as_posix(): json.loads(path.read_text())
    for path in (
      *seed_folder.glob("*.json"),
      *seed_folder.glob("*/result.json"),
    )
  }
  values = {}
  if "encoder/result.json" in read:
    values["steps"] = read["encoder/result.json"]["steps"]
  if "mlm_loss" in read.get("heldout.json", {}):
    values["MLM, nats"] = read["heldout.json"]["mlm_loss"]
  for kind, counts in read.get("pairs.json", {}).get("UID", {}).items():
    values[kind] = 100 * counts["accuracy"]
  for task in tasks:
    if result := read.get(f"{task}/result.json"):
      values[task] = 100 * result[result["best_metric"]]
  return values


def cell(values) -> str:
  """Returns "mean ± deviation"; one value has none, and no value is empty."""
  if len(values) < 2:
    return "".join(f"{value:.4g}" for value in values)
  return f"{statistics.mean(values):.4g} ± {statistics.stdev(values):.2g}"


if __name__ == "__main__":
  main()
