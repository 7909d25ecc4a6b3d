"""`maskedlm wsd train|evaluate|predict`: which sense a word has."""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import main as cli
from maskedlm.cli import options as options_lib
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options

CHUNK = 1024  # Lines that are read before they are answered.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm wsd",
    description="Word sense disambiguation by the nearest sense embedding; "
    "docs/guides/use/word-senses.md goes through it.",
    allow_abbrev=False,
  )
  verbs = parser.add_subparsers(metavar="train | evaluate | predict")
  for add in (_add_train, _add_evaluate, _add_predict):
    add(verbs)
  args = parser.parse_args(options_lib.glue_layers(argv))
  if not hasattr(args, "run"):
    parser.print_usage()
    return cli.EXIT_ERROR
  options_lib.check_batch_tokens(args)
  if getattr(args, "max_documents", 0) < 0:
    raise ConfigError(
      f"--max_documents={args.max_documents}: expected 0 (all) or more."
    )
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  return args.run(args)


def _add(verbs, name: str, run, about: str) -> argparse.ArgumentParser:
  parser = verbs.add_parser(name, description=about, allow_abbrev=False)
  parser.set_defaults(run=run)
  return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
  options_lib.add_checkpoint(parser)
  parser.add_argument(
    "--data",
    required=True,
    metavar="FILE",
    help="columns such as semcor.tsv, or NAME.data.xml with NAME.gold.key.txt",
  )
  parser.add_argument(
    "--max_documents",
    type=int,
    default=0,
    metavar="N",
    help="use only the first N documents; 0 = all",
  )
  options_lib.add_batch_tokens(parser)


def _add_train(verbs) -> None:
  parser = _add(verbs, "train", train, "Makes the sense embeddings.")
  _add_data(parser)
  parser.add_argument("--out", required=True, metavar="FILE.npz")
  parser.add_argument(
    "--heldout_share",
    type=float,
    default=0.0,
    help="share of the documents that is left out of training, for evaluate; "
    "default: 0",
  )
  parser.add_argument(
    "--layers",
    default="",
    help="as embed's; default: the last four, or all if there are fewer",
  )
  parser.add_argument(
    "--combine", default="sum", help="sum (default) | mean | concat"
  )
  parser.add_argument(
    "--first_senses",
    metavar="FILE",
    help="what to answer for words not seen in training: WordNet's "
    "index.sense, or lemma, part of speech, sense between tabs",
  )


def _add_evaluate(verbs) -> None:
  parser = _add(
    verbs,
    "evaluate",
    evaluate,
    "Scores them, and the most frequent sense, on labelled words. Of the file "
    "that they were trained on, the documents held out are scored.",
  )
  _add_data(parser)
  parser.add_argument(
    "--senses", required=True, help="the file that `wsd train` made"
  )
  parser.add_argument("--json", metavar="FILE", help="where to write the table")
  parser.add_argument(
    "--keys", metavar="FILE", help="where to write the answers, for the Scorer"
  )


def _add_predict(verbs) -> None:
  parser = _add(
    verbs,
    "predict",
    predict,
    "Tells the sense of words that are marked: 'The *bank* rose.', or "
    "'*banks|bank|NOUN*' with lemma and part of speech.",
  )
  options_lib.add_input(parser)
  parser.add_argument(
    "--senses", required=True, help="the file that `wsd train` made"
  )
  parser.add_argument(
    "--top", type=int, default=3, help="senses that are shown; default: 3"
  )
  parser.add_argument(
    "--json", action="store_true", help="print a JSON line for each word"
  )
  parser.add_argument("text", nargs="*", help="texts, instead of --input")


def train(args: argparse.Namespace) -> int:
  """`maskedlm wsd train`."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import vectors
  from maskedlm.inference.word_senses import data, senses

  output_options.check_file(args.out, option="--out", suffixes=(".npz",))
  if not 0 <= args.heldout_share < 1:
    raise ConfigError(
      f"--heldout_share={args.heldout_share}: expected at least 0, below 1."
    )
  if args.combine == "stack":
    raise ConfigError("--combine=stack: expected sum, mean or concat.")
  first = None
  if args.first_senses:
    first = data.read_first_senses(args.first_senses)
  layers = options_lib.parse_layers(args.layers) if args.layers else ()
  digest = _sha256(args.data)
  model = vectors.open_text_encoder(args.checkpoint)
  seen, documents = Counter(), {True: set(), False: set()}

  def is_kept(document: str) -> bool:
    held_out = data.is_held_out(document, args.heldout_share)
    documents[held_out].add(document)
    return not held_out

  sentences = data.read_sentences(args.data, seen=seen)
  made = senses.train_senses(
    model,
    data.select_documents(sentences, is_kept, limit=args.max_documents),
    senses.word_vector_options(model.cfg, layers, args.combine),
    first_senses=first,
    batch_tokens=args.batch_tokens,
    progress=options_lib.progress(text_lines.total_bytes([args.data]), seen),
  )
  about = {
    **made.about,
    "checkpoint": args.checkpoint,
    "data": args.data,
    "data_sha256": digest,
    "heldout_share": args.heldout_share,
  }
  senses.save_senses(args.out, made._replace(about=about))
  trained = min(len(documents[False]), args.max_documents or sys.maxsize)
  console.log(
    f"{len(made.vectors):,} senses of {len(made.candidates):,} words, from "
    f"{about['targets']:,} instances in {trained:,} documents -> {args.out}"
  )
  if args.heldout_share and not args.max_documents:
    console.log(f"held out: {len(documents[True]):,} documents")
  return 0


def evaluate(args: argparse.Namespace) -> int:
  """`maskedlm wsd evaluate`."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import data, senses
  from maskedlm.inference.word_senses import scores as sense_scores

  if args.json:
    output_options.check_file(args.json, suffixes=(".json",), option="--json")
  if args.keys:
    output_options.check_file(args.keys, suffixes=(".txt",), option="--keys")
  learned, model, options = _open(args)
  seen, documents = Counter(), set()
  show = options_lib.progress(text_lines.total_bytes([args.data]), seen)
  # Senses that were trained and saved in Python don't tell of what.
  own = _sha256(args.data) == learned.about.get("data_sha256")
  share = learned.about.get("heldout_share", 0.0)
  if own and not share:
    raise ConfigError(
      f"{args.senses} was trained on all of {args.data}: train it with "
      "--heldout_share=0.1, or give other --data."
    )

  def is_scored(document: str) -> bool:
    scored = not own or data.is_held_out(document, share)
    documents.update([document] if scored else [])
    return scored

  sentences = data.select_documents(
    data.read_sentences(args.data, seen=seen),
    is_scored,
    limit=args.max_documents,
  )
  rank, counts = senses.make_ranker(learned), Counter()
  keys = []
  for targets, values in senses.embed_targets(
    model, sentences, options, batch_tokens=args.batch_tokens
  ):
    answered = [
      (target, rank(sentence, target, x))
      for (sentence, target), x in zip(targets, values, strict=True)
    ]
    counts.update(sense_scores.count_answers(learned, answered))
    keys += [
      f"{target.id} {learned.names[answer.senses[0]]}\n"
      for target, answer in answered
      if answer.senses
    ]
    show(counts[sense_scores.ALL, "instances"])
  lines = sense_scores.make_rows(counts)
  if not lines:
    raise ConfigError(
      f"no word to score: of {args.data}, no document was held out by "
      f"--heldout_share={share}; train with a larger one."
    )
  scored = min(len(documents), args.max_documents or sys.maxsize)
  _report(args, counts, lines, scored, own=own)
  if args.keys:
    output_options.write_text(args.keys, "".join(keys), option="--keys")
  return 0


def _report(args, counts, lines, documents: int, *, own: bool) -> None:
  """Prints the table, and writes it."""
  from maskedlm.inference.word_senses import scores as sense_scores

  total = sense_scores.ALL
  instances = counts[total, "instances"]
  console.clear_progress()
  print(
    f"{instances:,} instances in {documents:,} documents of {args.data}"
    + (", held out of training" if own else "")
  )
  print(sense_scores.format_rows(lines))
  missing = instances - counts[total, "answered"]
  if missing:
    print(
      f"no answer: {missing:,} instances, whose lemma wasn't seen in training "
      "with this part of speech; they count against recall"
    )
  if counts[total, "fallback"]:
    print(
      f"first sense: {counts[total, 'fallback']:,} instances, not seen in "
      "training, have that of --first_senses"
    )
  print(
    "ambiguous: instances of words that have several senses in training; of "
    "the others both say the same"
  )
  if args.json:
    table = [
      {
        **line._asdict(),
        "nearest": line.nearest._asdict(),
        "most_frequent": line.most_frequent._asdict(),
      }
      for line in lines
    ]
    text = json.dumps(table, indent=2) + "\n"
    output_options.write_text(args.json, text, option="--json")


def predict(args: argparse.Namespace) -> int:
  """`maskedlm wsd predict`."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import inputs as sense_inputs
  from maskedlm.inference.word_senses import senses

  if args.text and args.input != ["-"]:
    raise ConfigError("give one of --input and texts.")
  options_lib.check_input(args)
  if args.top < 1:
    raise ConfigError(f"--top={args.top}: expected 1 or more.")
  learned, model, options = _open(args)
  rank = senses.make_ranker(learned)
  show = _show_json if args.json else _show
  sentences = sense_inputs.read_marked_words(
    args.input, form=args.format, field=args.field
  )
  if args.text:
    sentences = map(sense_inputs.parse_marked_text, args.text)
  for some in text_lines.request_groups(
    sentences, CHUNK, args.text, args.input
  ):
    for targets, values in senses.embed_targets(
      model, some, options, batch_tokens=args.batch_tokens
    ):
      for (sentence, target), x in zip(targets, values, strict=True):
        answer = rank(sentence, target, x)
        print(show(learned, sentence, target, answer, args.top), flush=True)
  return 0


def _open(args):
  """(senses, model, options), of one encoder."""
  from maskedlm.inference.vectors import vectors
  from maskedlm.inference.word_senses import senses

  learned = senses.load_senses(args.senses)
  model = vectors.open_text_encoder(args.checkpoint)
  senses.check_encoder(learned, model, path=args.senses)
  about = learned.about
  layers = tuple(about["layers"])
  return (
    learned,
    model,
    senses.word_vector_options(model.cfg, layers, about["combine"]),
  )


def _fields(learned, sentence, target, answer, top: int) -> dict:
  """An answer as it goes into JSON."""
  from maskedlm.inference.word_senses import senses

  scores = answer.scores or (None,) * len(answer.senses)
  found = [
    {
      "sense": learned.names[i],
      "score": score,
      "example": learned.examples[i] if i < len(learned.examples) else None,
    }
    for i, score in zip(answer.senses, scores, strict=True)
  ]
  return {
    **({"file": sentence.file, "line": sentence.line} if sentence.file else {}),
    "target": sentence.words[target.word],
    "context": senses.format_context(sentence, target),
    "senses": found[:top],
    "candidates": len(found),
  }


def _show_json(*args) -> str:
  return json.dumps(_fields(*args), ensure_ascii=False)


def _show(learned, sentence, target, answer, top: int) -> str:
  """An answer for people: the sense, and those next to it."""
  fields = _fields(learned, sentence, target, answer, top)
  lines = [fields["context"]]
  for found in fields["senses"]:
    score, example = found["score"], found["example"]
    how = "first sense" if score is None else f"{score:.3f}"
    as_in = f"  as in: {example}" if example else ""
    lines.append(f"  {found['sense']}  {how}{as_in}")
  if not fields["senses"]:
    lines.append("  unknown: no such word was seen in training")
  return "\n".join(lines)


def _sha256(path: str) -> str:
  try:
    with open(path, "rb") as file:
      return hashlib.file_digest(file, "sha256").hexdigest()
  except OSError as error:
    raise ConfigError(f"--data={path}: {error.strerror}.") from None
