"""Measures what more languages cost, and which ones alpha helps.

  python benchmarks/multilingual.py --steps 4000 --json FILE --png FILE

Trains the model of configs/xlmr.py:tiny on 1 language (en), on 4 and on all,
each for the same number of steps; several languages are sampled once as they
are (data.alpha = 1) and once as in XLM-R (0.3). All have one vocabulary, made
from all languages with alpha = 0.3, so that only the model differs. At the end
all are measured, in bits a character, on the same held-out rows and masks, as
many rows of each language (or all it has), also of languages that a run has
never read. --vocabularies 0.3,1 repeats it with a vocabulary made from the text
as it is.

Each run is a folder of --workdir and is trained by `maskedlm pretrain`:
finished runs are only printed, stopped ones continue. To try it:

  python benchmarks/multilingual.py --steps 4 --rows 4 --languages en,vi,mr \
    --set model.num_layers=1 --set tokenizer.vocab_size=2000 --workdir /tmp/try
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import arguments

ROOT = pathlib.Path(__file__).parent.parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", ROOT.parent / "shared" / "data")
)
CONFIG = f"{ROOT}/configs/xlmr.py:tiny"
FOUR = ("en", "de", "vi", "mr")  # The second size: large, large, small, tiny.
# 15% of the documents are held out, as 5% of the smallest languages would be a
# few rows. All rows are measured under this many different maskings.
HELDOUT_SHARE, MASKINGS = 0.15, 8


class Run(NamedTuple):
  """A model to train."""

  languages: tuple[str, ...]
  alpha: float  # Sampling exponent of the languages.
  vocabulary: float  # Sampling exponent of the vocabulary.

  @property
  def name(self) -> str:
    """Name of the folder, and in the table."""
    count = len(self.languages)
    return f"{count}-alpha{self.alpha:g}-vocabulary{self.vocabulary:g}"


def plan(
  languages: Sequence[str], four: Sequence[str], vocabularies: Sequence[float]
) -> list[Run]:
  """Returns all runs; with one language alpha makes no difference.

  Args:
    languages: all of them; the first is trained alone too.
    four: those of the second size.
    vocabularies: the exponents of the vocabularies.
  """
  sets = [(languages[0],), tuple(four), tuple(languages)]
  sets = list(dict.fromkeys(sets))  # With few --languages, two may be equal.
  return [
    Run(chosen, alpha, vocabulary)
    for vocabulary in vocabularies
    for chosen in sets
    for alpha in ((1.0, 0.3) if len(chosen) > 1 else (1.0,))
  ]


def find_parts(languages: str, english: str) -> dict[str, str]:
  """Returns {language: its text}, English first; "" selects all."""
  found = {"en": english}
  for path in sorted((DATA / "multilingual").glob("*.txt")):
    found[path.stem] = str(path)
  chosen = languages.split(",") if languages else list(found)
  if unknown := [name for name in chosen if name not in found]:
    sys.exit(
      f"--languages: {unknown[0]!r} is unknown; known: {', '.join(found)}"
    )
  return {name: found[name] for name in chosen}


def options_of(parts: Mapping[str, str], args) -> list[str]:
  """Returns the config options that all runs share."""
  steps = args.steps
  options = {
    "corpus.parts": ",".join(f"{name}:{path}" for name, path in parts.items()),
    "corpus.heldout_share": HELDOUT_SHARE,
    "train.num_steps": steps,
    "train.eval_every": max(steps // 4, 1),
    "train.checkpoint_every": max(min(steps // 4, 500), 1),
    "train.log_every": max(steps // 80, 1),
    "train.eval_rows": args.rows * len(parts),
    "optimizer.warmup_steps": max(min(steps // 20, 200), 1),
  }
  own = dict(item.partition("=")[::2] for item in args.set)
  return [f"--config.{name}={value}" for name, value in (options | own).items()]


def run_maskedlm(verb: str, *argv) -> None:
  """Runs `maskedlm VERB ...`, which prints its progress on stderr."""
  command = [
    sys.executable,
    "-m",
    "maskedlm",
    verb,
    f"--config={CONFIG}",
  ]
  code = subprocess.run([*command, *map(str, argv)], cwd=ROOT).returncode
  if code:  # It has printed why; after 75 or 130 it can be continued.
    sys.exit(code)


def make_corpora(
  runs: Sequence[Run], parts: Mapping[str, str], args
) -> dict[tuple, pathlib.Path]:
  """Prepares the corpora; returns {(languages, vocabulary): path}.

  The vocabulary is trained on the corpus of all languages and used for all. The
  held-out part of a language is the same in all (data/prepare/documents.py).
  """
  corpora: dict[tuple, pathlib.Path] = {}
  for vocabulary in dict.fromkeys(run.vocabulary for run in runs):
    whole = args.workdir / f"corpus-all-vocabulary{vocabulary:g}"
    for chosen in [
      tuple(parts),
      *(run.languages for run in runs if run.vocabulary == vocabulary),
    ]:
      some = {name: parts[name] for name in chosen}
      path, tokenizer = whole, ()
      if len(some) < len(parts):
        path = args.workdir / f"corpus-{len(some)}-vocabulary{vocabulary:g}"
        tokenizer = (f"--config.tokenizer.path={whole / 'tokenizer'}",)
      if (chosen, vocabulary) in corpora:
        continue
      corpora[chosen, vocabulary] = path
      say(f"corpus of {', '.join(some)}, vocabulary of alpha {vocabulary:g}")
      shared = [*options_of(some, args), f"--out={path}"]
      alpha = f"--config.tokenizer.alpha={vocabulary}"
      run_maskedlm("prepare", *shared, alpha, *tokenizer)
  return corpora


def train(run: Run, corpora, parts: Mapping[str, str], args) -> dict[str, Any]:
  """Trains or continues a run; returns {"seconds", "languages": ...}.

  The seconds are the sum over all starts.
  """
  folder = args.workdir / f"{run.name}-{args.steps}"
  finished = folder / f"measured-{args.rows}.json"
  if finished.exists():
    return json.loads(finished.read_text())
  folder.mkdir(parents=True, exist_ok=True)
  some = {name: parts[name] for name in run.languages}
  whole = corpora[tuple(parts), run.vocabulary]
  began = time.perf_counter()
  run_maskedlm(
    "pretrain",
    f"--workdir={folder}",
    *options_of(some, args),
    f"--config.corpus.path={corpora[run.languages, run.vocabulary]}",
    f"--config.tokenizer.path={whole / 'tokenizer'}",
    f"--config.data.alpha={run.alpha}",
  )
  measured = measure(folder, whole, args.rows)
  spent = folder / "seconds.jsonl"  # One line for each start.
  with spent.open("a") as file:
    file.write(f"{time.perf_counter() - began}\n")
  seconds = sum(map(float, spent.read_text().split()))
  found = {"seconds": seconds, "languages": measured}
  finished.write_text(json.dumps(found, indent=2) + "\n")
  return found


def measure(
  folder: pathlib.Path, corpus_path: pathlib.Path, rows: int
) -> dict[str, dict[str, float]]:
  """Returns {language: {bits_per_character, mlm_loss, mlm_accuracy}}.

  Measured on at most `rows` held-out rows of each language of the corpus of
  all languages; rows and masks are the same for all runs.
  """
  import jax
  from ml_collections import ConfigDict

  from maskedlm.data.corpus import store
  from maskedlm.pretraining import objectives
  from maskedlm.training import language_metrics as languages
  from maskedlm.training import metrics
  from maskedlm.training import step as steps
  from maskedlm.training.checkpoints import load

  params = jax.device_put(load.open_checkpoint(folder).params)
  corpus = store.open_corpus(corpus_path)
  config = ConfigDict(json.loads((folder / "config.json").read_text()))
  config.train.eval_rows = rows * len(corpus.domains)
  task = objectives.make_task(config, corpus)
  task = task._replace(languages=languages.of_corpus(corpus))
  step = jax.jit(steps.make_heldout_step(task, seed=0, accumulate=1))
  pairs = []
  for masking in range(MASKINGS):
    for i in range(task.num_heldout_batches):
      batch = task.batch_at("heldout", i)
      index = masking * task.num_heldout_batches + i  # Selects the masks.
      pairs.append(jax.device_get(step(params, batch, index)[1]))
    say(f"measured {masking + 1} of {MASKINGS} times")
  return languages.split_by_language(metrics.means(metrics.sums(pairs)))[1]


def table(
  runs: Sequence[Run],
  results: Mapping[str, Mapping],
  counts: Mapping[str, Mapping[str, Any]],
) -> list[str]:
  """Returns bits a character as Markdown: a row a language, a column a run.

  Values are in parentheses if the run has not read the language. The last rows
  are means over the languages that several runs have read.

  Args:
    runs: in the order of the columns.
    results: name of a run -> what `train` returned.
    counts: language -> its entry in meta.json, in the order of the rows.
  """

  def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"

  lines = [
    line("", "tokens", "held out", *(label(run) for run in runs)),
    line("---", *("---:" for _ in range(2 + len(runs)))),
  ]
  for name, count in counts.items():
    cells = []
    for run in runs:
      bits = f"{bits_of(results[run.name], name):.3f}"
      cells.append(bits if name in run.languages else f"({bits})")
    tokens = (f"{count[split]['tokens']:,}" for split in ("train", "heldout"))
    lines.append(line(name, *tokens, *cells))
  for some in dict.fromkeys(run.languages for run in runs):
    means = (
      f"{mean([bits_of(results[run.name], name) for name in some]):.3f}"
      if {*some} <= {*run.languages}
      else ""
      for run in runs
    )
    if len(some) > 1:
      lines.append(line(f"mean of {len(some)}", "", "", *means))
  return lines


def label(run: Run) -> str:
  """Returns a run's title."""
  count = len(run.languages)
  text = f"{run.languages[0]} alone"
  if count > 1:
    text = f"{count} languages, alpha {run.alpha:g}"
  vocabulary = f", vocabulary {run.vocabulary:g}"
  return text + vocabulary * (run.vocabulary != 0.3)


def bits_of(result: Mapping[str, Any], name: str) -> float:
  """Returns the bits a character of a language."""
  return result["languages"][name]["bits_per_character"]


def mean(values: Sequence[float]) -> float:
  return sum(values) / len(values)


def plot(
  runs: Sequence[Run],
  results: Mapping[str, Mapping],
  counts: Mapping[str, Mapping[str, Any]],
  path: str,
) -> None:
  """Plots bits a character relative to the first run with all languages.

  Each language is compared with itself, as scripts differ by more than runs.
  Languages are in order of their amount of text.
  """
  from matplotlib import ticker

  from maskedlm.inference.plots import figure

  base = max(runs, key=lambda run: len(run.languages))
  sizes = {name: count["train"]["tokens"] for name, count in counts.items()}
  names = sorted(sizes, key=sizes.__getitem__)
  with figure.open_figure(path, width=8.0, height=4.2) as made:
    axes = made.subplots()
    for i, run in enumerate(runs):
      here = [name for name in names if name in run.languages]
      axes.plot(
        [names.index(name) for name in here],
        [
          bits_of(results[run.name], name) / bits_of(results[base.name], name)
          for name in here
        ],
        linewidth=1.0,
        marker=figure.marker(i),
        color=figure.colour(i),
        label=label(run),
      )
    axes.set_xticks(
      range(len(names)),
      [f"{name}\n{short(sizes[name])}" for name in names],
    )
    axes.set_xlabel("language, tokens to train on")
    axes.set_ylabel(f"bits a character, relative to {label(base)}")
    axes.yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=1))
    axes.legend()
    made.tight_layout()


def short(count: int) -> str:
  """Formats a count: 11089715 as "11.1M", 41153 as "41k"."""
  return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e3:.0f}k"


def say(text: str) -> None:
  """Prints a line of overall progress on stderr."""
  print(f"== {text}", file=sys.stderr, flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--steps", type=arguments.count, default=4_000, help="of each run"
  )
  parser.add_argument(
    "--languages", default="", help="en,de,...; the first is also trained alone"
  )
  parser.add_argument("--four", default=",".join(FOUR), help="the second size")
  parser.add_argument(
    "--english", default=str(DATA / "text" / "en_novels.txt"), help="its text"
  )
  parser.add_argument(
    "--rows",
    type=arguments.count,
    default=64,
    help="of each language, for measuring",
  )
  parser.add_argument(
    "--vocabularies", default="0.3", help="exponents of the vocabularies"
  )
  parser.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="OPTION=VALUE",
    help="config option for all runs, such as model.num_layers=1",
  )
  parser.add_argument(
    "--workdir", type=pathlib.Path, default=pathlib.Path("runs/multilingual")
  )
  parser.add_argument("--json", **arguments.TABLE)
  parser.add_argument("--png")
  args = parser.parse_args()
  args.workdir = args.workdir.resolve()
  args.workdir.mkdir(parents=True, exist_ok=True)
  parts = find_parts(args.languages, args.english)
  four = [name for name in args.four.split(",") if name in parts]
  vocabularies = [float(alpha) for alpha in args.vocabularies.split(",")]
  runs = plan(list(parts), four, vocabularies)
  if args.png:
    from maskedlm.inference.plots import figure

    figure.check_picture(args.png, option="--png", suffixes=figure.SUFFIXES)
    figure.check_picture(args.png)
  corpora = make_corpora(runs, parts, args)

  results: dict[str, dict] = {}
  for i, run in enumerate(runs):
    eta = ""
    if known := [result["seconds"] for result in results.values()]:
      minutes = mean(known) * (len(runs) - i) / 60
      eta = f"; about {minutes:.0f} minutes to go"
    say(
      f"run {i + 1} of {len(runs)}: {label(run)}, {', '.join(run.languages)}"
      f"{eta}"
    )
    results[run.name] = train(run, corpora, parts, args)

  whole = corpora[tuple(parts), vocabularies[0]]
  meta = json.loads((whole / "meta.json").read_text())
  counts = {part["name"]: part for part in meta["parts"]}
  print(f"\nHeld out, bits a character after {args.steps:,} steps\n")
  print("\n".join(table(runs, results, counts)))
  if args.json:
    found = [
      {
        "trained_on": run.languages,
        "alpha": run.alpha,
        "vocabulary": run.vocabulary,
        "steps": args.steps,
        **results[run.name],
      }
      for run in runs
    ]
    args.json.write_text(json.dumps(found, indent=2) + "\n")
  if args.png:
    plot(runs, results, counts, args.png)


if __name__ == "__main__":
  main()
