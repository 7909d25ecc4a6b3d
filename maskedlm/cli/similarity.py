"""`maskedlm similarity`: compares two words in context; scores WiC."""

import argparse
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options as shared
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.core.measured import to_json
from maskedlm.runtime import console, output_options

CHUNK = 1024  # Pairs to read at a time.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  args = _parser().parse_args(shared.join_layers(argv))
  _check(args)
  from maskedlm.inference.vectors import (
    standardise,
    unknown_words,
    vectors,
  )
  from maskedlm.inference.words_in_context import compare
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  model = vectors.open_text_encoder(
    args.checkpoint, batch_tokens=args.batch_tokens
  )
  options = vectors.VectorOptions(
    layers=shared.parse_layers(args.layers, model.cfg.num_layers),
    combine=args.combine,
  )
  vectors.resolve_layers(options, model.cfg)
  fitted = standardise.open_word_standardiser(args.standardise, model, options)

  words: Counter = Counter()

  def compared(pairs):
    words.update(each.word for pair in pairs for each in (pair.a, pair.b))
    return compare.compare(
      model,
      pairs,
      options,
      standardiser=fitted,
    )

  code = (_score_wic if args.wic else _print_pairs)(args, compared)
  unknown_words.log_unknown(model.tokenizer, words, console.log)
  return code


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm similarity",
    description="Prints the cosine of two words in context, each between "
    "asterisks: 'On the *bank* of the river.' 'The *bank* lent him money.' "
    "docs/guides/use/embeddings.md explains it.",
    allow_abbrev=False,
  )
  shared.add_checkpoint(parser)
  parser.add_argument(
    "--input",
    nargs="+",
    action="extend",
    default=[],
    metavar="FILE",
    help="files with two texts on a line, a tab between them, or JSON objects "
    "with text and text_b; - or none = stdin",
  )
  parser.add_argument(
    "--format", default="", help="text | jsonl; default: by the file's name"
  )
  shared.add_batch_tokens(parser)
  shared.add_layers(parser)
  shared.add_combine(parser)
  parser.add_argument(
    "--standardise",
    metavar="FILE.npz",
    help="also compare standardised vectors, by the mean and deviation that "
    "`embed --unit=word --fit` stored",
  )
  parser.add_argument(
    "--wic",
    metavar="FILE",
    help="score WiC's pairs: NAME.data.txt with NAME.gold.txt beside it, or "
    "SuperGLUE's .jsonl",
  )
  parser.add_argument(
    "--dev",
    metavar="FILE",
    help="pairs in the same format, on which the threshold for --wic is chosen",
  )
  shared.add_json(parser, "print JSON: a line for each pair, or WiC's scores")
  shared.add_out(parser, "write the scores of --wic here, as JSON")
  parser.add_argument(
    "--keys",
    metavar="FILE.txt",
    help="write the answers to --wic here, T or F a line, as its scorer reads "
    "them",
  )
  parser.add_argument("text", nargs="*", help="two marked texts")
  return parser


def _check(args: argparse.Namespace) -> None:
  """Checks what can be checked before anything slow begins."""
  from maskedlm.data.labelled import text_lines

  shared.check_at_least(args, batch_tokens=1)
  shared.check_combine(args)
  shared.parse_layers(args.layers)
  given = [name for name in ("wic", "input", "text") if getattr(args, name)]
  if len(given) > 1:
    raise ConfigError(
      f"give one of --wic, --input and two texts, not {' and '.join(given)}."
    )
  if args.text and len(args.text) != 2:
    raise ConfigError(
      f"{counted(len(args.text), 'text')}; expected two, each with a word "
      "between asterisks; for many pairs give --input."
    )
  if args.format and (args.text or args.wic):
    raise ConfigError("--format is for --input: leave it out.")
  for name in ("dev", "out", "keys"):
    if getattr(args, name) and not args.wic:
      raise ConfigError(f"--{name} is for --wic=FILE: leave it out.")
  if not args.wic:
    args.input = args.input or [text_lines.STDIN]
    if not args.text:
      text_lines.check_files(args.input, form=args.format)
    return
  if not args.dev:
    raise ConfigError(
      "--wic needs --dev=FILE, the pairs on which the threshold is chosen."
    )
  text_lines.check_files([args.wic], form="", option="--wic")
  text_lines.check_files([args.dev], form="", option="--dev")
  if args.out:
    output_options.check_file(args.out, suffixes=(".json",), option="--out")
  if args.keys:
    output_options.check_file(args.keys, suffixes=(".txt",), option="--keys")


def _print_pairs(args: argparse.Namespace, compared) -> int:
  """Prints the similarity of each pair."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.words_in_context import pairs

  if args.text:
    found = iter([pairs.make_pair(*args.text)])
  else:
    found = pairs.read_pairs(args.input, form=args.format)
  for some in text_lines.request_groups(found, CHUNK, args.text, args.input):
    for pair, made in compared(some):
      fields = _fields(pair, made)
      if args.json:
        console.print_json(fields)
        continue
      shown = "\n".join(_marked(x) for x in (pair.a, pair.b))
      lines = [f"  cosine        {made.cosine:z.3f}"]
      if made.standardised is not None:
        lines.append(f"  standardised  {made.standardised:z.3f}")
      print("\n".join([shown, *lines]), flush=True)
  return 0


def _fields(pair, made) -> dict:
  """Returns a pair and its similarity as a JSON object."""
  file, line = pair.a.text.file, pair.a.text.line
  fields = {
    **({"file": file, "line": line} if file else {}),
    "words": [pair.a.word, pair.b.word],
    "texts": [pair.a.text.text, pair.b.text.text],
    "cosine": made.cosine,
  }
  if made.standardised is not None:
    fields["standardised"] = made.standardised
  return fields


def _marked(instance) -> str:
  text, begin, end = instance.text.text, instance.begin, instance.end
  return f"{text[:begin]}*{text[begin:end]}*{text[end:]}"


def _score_wic(args: argparse.Namespace, compared) -> int:
  """Prints how well a threshold answers WiC's question."""
  from maskedlm.inference.words_in_context import compare, pairs

  dev, test = pairs.read_wic(args.dev), pairs.read_wic(args.wic)
  compare.require_answers(dev, args.dev)
  of_dev, of_test = list(compared(dev)), list(compared(test))
  scores = compare.score_wic(of_dev, of_test)
  *_, last = scores.values()
  report = {
    "pairs": len(test),
    "dev_pairs": len(dev),
    "accuracy": last.accuracy,
    **{name: score._asdict() for name, score in scores.items()},
  }
  text = to_json(report, indent=2) + "\n"
  if args.out:
    output_options.write_text(args.out, text, option="--out")
  if args.keys:
    answers = compare.answers(of_test, scores)
    keys = "".join("T\n" if same else "F\n" for same in answers)
    output_options.write_text(args.keys, keys, option="--keys")
  if args.json:
    print(text, end="")
    return 0
  print(
    f"{counted(len(test), 'pair')} of {args.wic}; thresholds of "
    f"{counted(len(dev), 'pair')} of {args.dev}"
  )
  rows = [
    (
      name,
      f"{score.threshold:z.3f}",
      f"{score.dev_accuracy:.1%}",
      "unknown" if score.accuracy is None else f"{score.accuracy:.1%}",
    )
    for name, score in scores.items()
  ]
  columns = ("", "threshold", "dev accuracy", "accuracy")
  print("\n".join(console.table(columns, rows)))
  return 0
