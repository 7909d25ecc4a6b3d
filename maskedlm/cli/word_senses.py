"""`maskedlm word-senses train|evaluate|predict`: disambiguates word senses."""

import argparse
import pathlib
import sys
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options as shared
from maskedlm.cli import word_senses_report as report
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import (
  console,
  output_files,
  output_options,
  storage_errors,
)

CHUNK = 1024  # Lines to read at a time.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm word-senses",
    description="Word sense disambiguation by the nearest sense embedding; "
    "docs/guides/use/word-senses.md is its tutorial. Also `maskedlm wsd`.",
    allow_abbrev=False,
  )
  verbs = parser.add_subparsers(
    metavar="train | evaluate | predict", required=True
  )
  for add in (_add_train, _add_evaluate, _add_predict):
    add(verbs)
  if argv[:1] == ["evaluate"]:
    shared.check_json_flag(argv)
  args = parser.parse_args(shared.join_layers(argv))
  shared.check_at_least(args, batch_tokens=1)
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  return args.run(args)


def _add(verbs, name: str, run, about: str) -> argparse.ArgumentParser:
  parser = verbs.add_parser(name, description=about, allow_abbrev=False)
  parser.set_defaults(run=run)
  return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
  shared.add_checkpoint(parser)
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
  shared.add_batch_tokens(parser)


def _add_train(verbs) -> None:
  parser = _add(verbs, "train", train, "Trains sense embeddings.")
  _add_data(parser)
  shared.add_out(
    parser, "the sense embeddings", metavar="FILE.npz", required=True
  )
  parser.add_argument(
    "--heldout_share",
    type=float,
    default=0.0,
    help="share of the documents held out of training, for evaluate; "
    "default: 0",
  )
  shared.add_layers(
    parser, default="", about="the last four, or all if there are fewer"
  )
  shared.add_combine(
    parser,
    default="sum",
    why=", as in Jurafsky & Martin's recipe for sense embeddings",
  )
  parser.add_argument(
    "--first_senses",
    metavar="FILE",
    help="first senses, the answers for words not seen in training: "
    "WordNet's index.sense, or lemma, part of speech and sense between tabs",
  )


def _add_evaluate(verbs) -> None:
  parser = _add(
    verbs,
    "evaluate",
    evaluate,
    "Scores sense embeddings, and the most frequent sense, on labelled words; "
    "on their training file, the documents that were held out.",
  )
  _add_data(parser)
  _add_senses(parser)
  shared.add_json(parser, "print the table as JSON")
  shared.add_out(parser, "write the table here, as JSON", metavar="FILE.json")
  parser.add_argument(
    "--keys",
    metavar="FILE.txt",
    help="write the answers here, in the format of the official Scorer",
  )


def _add_senses(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
    "--senses",
    required=True,
    metavar="FILE.npz",
    help="sense embeddings, written by `word-senses train`",
  )
  parser.add_argument(
    "--standardise",
    metavar="FILE.npz",
    help="compare standardised vectors, by the mean and deviation that "
    "`embed --unit=word --fit` stored for the same layers and --combine",
  )
  parser.add_argument(
    "--one_sense_per_discourse",
    action="store_true",
    help="give all occurrences of a word in a document (in predict: of one "
    "command's texts or file) the sense with the highest mean cosine",
  )


def _add_predict(verbs) -> None:
  parser = _add(
    verbs,
    "predict",
    predict,
    "Predicts the sense of marked words: 'The *bank* rose.', or "
    "'*banks|bank|NOUN*' with lemma and part of speech.",
  )
  shared.add_checkpoint(parser)
  shared.add_input(parser)
  shared.add_batch_tokens(parser)
  _add_senses(parser)
  parser.add_argument(
    "--top_k", type=int, default=3, help="senses to print; default: 3"
  )
  shared.add_old_name(parser, "--top", "top_k", type=int)
  shared.add_json(parser, "print a JSON line for each word")
  parser.add_argument("text", nargs="*", help="texts, instead of --input")


def train(args: argparse.Namespace) -> int:
  """Runs `maskedlm word-senses train`; returns the exit code."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import vectors
  from maskedlm.inference.word_senses import data, senses

  output_options.check_file(args.out, option="--out", suffixes=(".npz",))
  if not 0 <= args.heldout_share < 1:
    raise ConfigError(
      f"--heldout_share={args.heldout_share}: expected at least 0, below 1."
    )
  shared.check_at_least(args, max_documents=0)
  shared.check_combine(args, default="sum")
  shared.parse_layers(args.layers or "last")
  first = None
  if args.first_senses:
    first = data.read_first_senses(args.first_senses)
  digest = _sha256(args.data)
  model = vectors.open_text_encoder(
    args.checkpoint, batch_tokens=args.batch_tokens
  )
  N = model.cfg.num_layers
  layers = shared.parse_layers(args.layers, N) if args.layers else ()
  seen, words, documents = Counter(), Counter(), {True: set(), False: set()}

  def is_kept(document: str) -> bool:
    held_out = data.is_held_out(document, args.heldout_share)
    documents[held_out].add(document)
    return not held_out

  sentences = data.read_sentences(args.data, seen=seen)
  made = senses.train_senses(
    model,
    _count_targets(
      data.select_documents(sentences, is_kept, limit=args.max_documents), words
    ),
    senses.word_vector_options(model.cfg, layers, args.combine),
    first_senses=first,
    progress=shared.make_progress(text_lines.total_bytes([args.data]), seen),
  )
  _log_unknown(model, words)
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
    f"{counted(len(made.vectors), 'sense')} of "
    f"{counted(len(made.candidates), 'word')}, from "
    f"{counted(about['targets'], 'instance')} in "
    f"{counted(trained, 'document')} -> {args.out}"
  )
  if args.heldout_share and not args.max_documents:
    console.log(f"held out: {counted(len(documents[True]), 'document')}")
  return 0


def evaluate(args: argparse.Namespace) -> int:
  """Runs `maskedlm word-senses evaluate`; returns the exit code."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import data, discourse, scores

  shared.check_at_least(args, max_documents=0)
  if args.out:
    output_options.check_file(args.out, suffixes=(".json",), option="--out")
  if args.keys:
    output_options.check_file(args.keys, suffixes=(".txt",), option="--keys")
  learned, model, options = _open(args)
  seen, documents, kept = Counter(), set(), []
  show = shared.make_progress(text_lines.total_bytes([args.data]), seen)
  # Senses that were trained and saved in Python have no data_sha256.
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

  counts, words, keys = Counter(), Counter(), []
  sentences = _count_targets(
    data.select_documents(
      data.read_sentences(args.data, seen=seen),
      is_scored,
      limit=args.max_documents,
    ),
    words,
  )
  answered = _answer(args, learned, model, options, sentences)
  for each in answered:
    _, target, answer = each
    counts.update(scores.count_answers(learned, [(target, answer)]))
    if answer.senses:
      keys.append(f"{target.id} {learned.names[answer.senses[0]]}\n")
    show(counts[scores.ALL, "instances"])
    if args.one_sense_per_discourse:
      kept.append(each)
  _log_unknown(model, words)
  lines = scores.make_rows(counts)
  if not lines:
    raise ConfigError(
      f"no word to score: of {args.data}, no document was held out by "
      f"--heldout_share={share}; train with a larger one."
    )
  scored = min(len(documents), args.max_documents or sys.maxsize)
  report.print_scores(args, counts, lines, scored, own=own)
  if args.one_sense_per_discourse and not args.json:
    print(report.format_rule(discourse.measure_rule(kept)))
  if args.keys:
    output_options.write_text(args.keys, "".join(keys), option="--keys")
  return 0


def predict(args: argparse.Namespace) -> int:
  """Runs `maskedlm word-senses predict`; returns the exit code."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import inputs

  if args.text and args.input:
    raise ConfigError("give one of --input and texts.")
  if args.text and (args.format or args.field != "text"):
    name = "format" if args.format else "field"
    raise ConfigError(f"--{name} is for --input: leave it out beside texts.")
  shared.check_input(args)
  shared.check_at_least(args, top_k=1)
  learned, model, options = _open(args)
  sentences = inputs.read_marked_words(
    args.input, form=args.format, field=args.field
  )
  if args.text:
    sentences = map(inputs.parse_marked_text, args.text)
  words: Counter = Counter()
  sentences = _count_targets(sentences, words)
  if args.one_sense_per_discourse:  # Each file is a document.
    groups = [(each._replace(document=each.file) for each in sentences)]
  else:
    groups = text_lines.request_groups(sentences, CHUNK, args.text, args.input)
  for some in groups:
    for sentence, target, answer in _answer(
      args, learned, model, options, some
    ):
      found = learned, sentence, target, answer, args.top_k
      if args.json:
        console.print_json(report.answer_fields(*found))
      else:
        print(report.format_answer(*found), flush=True)
  _log_unknown(model, words)
  return 0


def _count_targets(sentences, words: Counter):
  """Yields the sentences; adds the forms of their targets to `words`."""
  for sentence in sentences:
    words.update(sentence.words[target.word] for target in sentence.targets)
    yield sentence


def _log_unknown(model, words: Counter) -> None:
  from maskedlm.inference.vectors import unknown_words

  unknown_words.log_unknown(model.tokenizer, words, console.log)


def _answer(args, learned, model, options, sentences):
  """Yields (sentence, target, answer), as the options of _add_senses say."""
  from maskedlm.inference.vectors import standardise
  from maskedlm.inference.word_senses import discourse, senses

  fitted = standardise.open_word_standardiser(args.standardise, model, options)
  rank = senses.make_ranker(learned, fitted)
  answered = (
    (sentence, target, rank(sentence, target, x))
    for targets, values in senses.embed_targets(model, sentences, options)
    for (sentence, target), x in zip(targets, values, strict=True)
  )
  if args.one_sense_per_discourse:
    return discourse.agree_in_documents(answered)
  return answered


def _open(args):
  """Returns (senses, model, vector options), checked to be of one encoder."""
  from maskedlm.inference.vectors import vectors
  from maskedlm.inference.word_senses import senses

  learned = senses.load_senses(args.senses)
  model = vectors.open_text_encoder(
    args.checkpoint, batch_tokens=args.batch_tokens
  )
  senses.check_encoder(learned, model, path=args.senses)
  about = learned.about
  layers = tuple(about["layers"])
  return (
    learned,
    model,
    senses.word_vector_options(model.cfg, layers, about["combine"]),
  )


def _sha256(path: str) -> str:
  try:
    return output_files.sha256(pathlib.Path(path))
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise ConfigError(f"--data={path}: {error.strerror}.") from None
