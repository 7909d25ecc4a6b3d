"""Measures whether a model of two languages has the accent of one of them.

  python benchmarks/accent.py --steps 600 --seeds 2 --json FILE

After Papadimitriou et al. (EACL Findings 2023, "Multilingual BERT has an
accent"): where Spanish allows both, a multilingual model prefers what English
demands, more than a model of Spanish alone does. Here a model reads Spanish,
another the same Spanish and as much English in twice the steps, and a third
Spanish alone in as many steps, as a better model may prefer other sentences
too. All have one vocabulary. Chapters of the Spanish are held out, and give
minimal pairs:

  pronoun  sentences that begin with a subject pronoun, without it, and
           sentences that begin with a verb in the first person, with "yo"
  order    made sentences: "Entonces el rey llegó.", "Entonces llegó el rey."

"Pero" (but) stands before the former, so that no capital differs. "English" is
the share of pairs whose English-like sentence has the higher pseudo-log-
likelihood; "difference" is the mean of its score minus the other's, in nats.
Finished runs are only scored again, stopped ones continue.
"""

import argparse
import itertools
import json
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import arguments
import multilingual
import numpy as np

# Name -> (corpus, how often --steps).
RUNS = {
  "Spanish": ("spanish", 1),
  "Spanish, twice the steps": ("spanish", 2),
  "Spanish and English": ("both", 2),
}
HELDOUT = 4  # Every fourth chapter.
BEGIN = r"(?:^|(?<=[.!?—] )|(?<=—))"
CLITICS = r"(?:(?:no|me|te|se|le|lo|la|les|los|las|nos) )*"
REST = r"[^.!?—¡¿]*\."
PRONOUN = re.compile(
  rf"{BEGIN}((?:Yo|Tú|Él|Ella|Nosotros|Ellos|Ellas) )"
  rf"({CLITICS}([a-záéíóúñ]+){REST})"
)
FIRST_PERSON = re.compile(
  rf"{BEGIN}((?i:{CLITICS})(?i:sé|creo|quiero|tengo|he|estoy|soy|voy|puedo|veo"
  rf"|digo|temo|espero|siento|conozco|debo) (?!aquí|ahí){REST})"
)
# After a pronoun or a clitic, as in "Yo también sé": no verb.
NO_VERBS = {
  *("a", "al", "aquí", "bien", "como", "con", "de", "del", "el", "en", "la"),
  *("entonces", "misma", "mismo", "no", "nunca", "por", "pues", "que", "qué"),
  *("siempre", "sin", "solo", "sólo", "sí", "también", "tampoco", "y", "ya"),
}
SUBJECTS = (
  *("el rey", "la reina", "el conde", "el criado", "la criada", "el médico"),
  *("la señora", "el cura", "la joven", "el niño", "Juan", "María"),
)
VERBS = ("llegó", "entró", "salió", "vino", "apareció", "volvió", "murió")


def split_chapters(text: str) -> tuple[str, str]:
  """Returns the text of training, and every HELDOUT-th chapter."""
  chapters = [chapter for chapter in text.split("\n\n") if chapter.strip()]
  heldout = chapters[HELDOUT - 1 :: HELDOUT]
  train = [c for i, c in enumerate(chapters) if (i + 1) % HELDOUT]
  return "\n\n".join(train), "\n\n".join(heldout)


def find_pairs(text: str) -> Iterator[dict[str, str]]:
  """Yields minimal pairs of a Spanish text; the good one is English-like."""
  for line in text.splitlines():
    for pronoun, rest, verb in PRONOUN.findall(line):
      if verb not in NO_VERBS:
        explicit = f"Pero {pronoun.lower()}{rest}"
        yield make_pair("pronoun", "in the text", explicit, f"Pero {rest}")
    for rest in FIRST_PERSON.findall(line):
      if rest[0].isupper():
        rest = rest[0].lower() + rest[1:]
        explicit, dropped = f"Pero yo {rest}", f"Pero {rest}"
        yield make_pair("pronoun", "not in the text", explicit, dropped)
  for subject, verb in itertools.product(SUBJECTS, VERBS):
    sentences = f"Entonces {subject} {verb}.", f"Entonces {verb} {subject}."
    yield make_pair("order", "made", *sentences)


def make_pair(uid: str, field: str, good: str, bad: str) -> dict[str, str]:
  """Returns a pair in BLiMP's format."""
  return {
    "sentence_good": good,
    "sentence_bad": bad,
    "UID": uid,
    "field": f"{uid}, {field}",
  }


def prepare(args) -> tuple[list[dict[str, str]], dict[str, list[str]]]:
  """Writes texts, pairs and corpora; returns (pairs, {corpus: its options})."""
  folder = args.workdir
  spanish = (multilingual.DATA / "multilingual" / "es.txt").read_text("utf-8")
  train, heldout = split_chapters(spanish)
  english = (multilingual.DATA / "text" / "en_novels.txt").read_text("utf-8")
  texts = {"es": train, "en": english[: len(train)].rpartition("\n\n")[0]}
  for name, text in texts.items():
    (folder / f"{name}.txt").write_text(text, "utf-8")
  pairs = list(find_pairs(heldout))
  lines = [json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs]
  (folder / "pairs.jsonl").write_text("".join(lines), "utf-8")
  tokenizer = folder / "both" / "tokenizer"
  made = {}
  for run, names in (("both", ("es", "en")), ("spanish", ("es",))):
    parts = ",".join(f"{name}:{folder / name}.txt" for name in names)
    made[run] = [f"--config.corpus.parts={parts}", *args.set]
    if run == "spanish":
      made[run].append(f"--config.tokenizer.path={tokenizer}")
    if not (folder / run / "meta.json").exists():
      multilingual.run_maskedlm("prepare", *made[run], f"--out={folder / run}")
    made[run] += [f"--config.corpus.path={folder / run}"]
  made["both"].append(f"--config.tokenizer.path={tokenizer}")
  return pairs, made


def measure(run: str, seed: int, pairs, options, args) -> np.ndarray:
  """Trains a run; returns good minus bad score of each pair, [n]."""
  corpus, times = RUNS[run]
  steps = args.steps * times
  workdir = args.workdir / f"{corpus}-{seed}-{steps}"
  multilingual.say(f"{run}, seed {seed}: {steps} steps")
  multilingual.run_maskedlm(
    "pretrain",
    f"--workdir={workdir}",
    *options[corpus],
    "--config.data.alpha=1.0",
    f"--config.seed={seed}",
    f"--config.train.num_steps={steps}",
    f"--config.optimizer.warmup_steps={max(steps // 20, 1)}",
  )
  import maskedlm

  model = maskedlm.load(workdir)
  good, bad = (
    [made.log_likelihood for made in model.score([p[name] for p in pairs])]
    for name in ("sentence_good", "sentence_bad")
  )
  return np.subtract(good, bad)


def summarise(
  pairs: Sequence[Mapping[str, str]], results: Mapping[str, list[np.ndarray]]
) -> list[dict[str, Any]]:
  """Returns a row for each phenomenon and run.

  Args:
    pairs: the n pairs.
    results: run -> for each seed what `measure` returned, [n].
  """
  rows = []
  for field in dict.fromkeys(pair["field"] for pair in pairs):
    which = np.array([pair["field"] == field for pair in pairs])
    for run, seeds in results.items():
      apart = np.stack(seeds)[:, which]
      means = apart.mean(axis=0)  # Of each pair.
      rows.append(
        {
          "phenomenon": field,
          "pairs": int(which.sum()),
          "run": run,
          "english": float((apart > 0).mean()),
          "difference": float(means.mean()),
          "error": float(means.std(ddof=1) / which.sum() ** 0.5),
          "of_seeds": apart.mean(axis=1).tolist(),
        }
      )
  return rows


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
  """Returns the rows as Markdown."""
  lines = [
    "| pairs | model | English | difference | of each seed |",
    "|---|---|---:|---:|---|",
  ]
  for row in rows:
    seeds = ", ".join(f"{x:+.2f}" for x in row["of_seeds"])
    cells = (
      f"{row['phenomenon']} ({row['pairs']})",
      row["run"],
      f"{row['english']:.1%}",
      f"{row['difference']:+.2f} ± {row['error']:.2f}",
      seeds,
    )
    lines.append(f"| {' | '.join(cells)} |")
  return lines


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--steps",
    type=arguments.count,
    default=600,
    help="of Spanish, the first model's",
  )
  parser.add_argument("--seeds", type=arguments.count, default=2)
  parser.add_argument(
    "--set", action="append", default=[], help="an option, --config.NAME=VALUE"
  )
  parser.add_argument(
    "--workdir", type=pathlib.Path, default=pathlib.Path("runs/accent")
  )
  parser.add_argument("--json", **arguments.TABLE)
  args = parser.parse_args()
  args.workdir = args.workdir.resolve()
  args.workdir.mkdir(parents=True, exist_ok=True)
  pairs, options = prepare(args)
  results: dict[str, list[np.ndarray]] = {run: [] for run in RUNS}
  for seed in range(args.seeds):
    for run, found in results.items():
      found.append(measure(run, seed, pairs, options, args))
    rows = summarise(pairs, results)
    print(f"\n{seed + 1} seeds, {args.steps:,} steps of Spanish\n")
    print("\n".join(table(rows)), flush=True)
  if args.json:
    args.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
  main()
