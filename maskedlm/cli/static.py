"""`maskedlm static train|average`: writes a file of word vectors."""

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Sequence

from maskedlm.cli import options as shared
from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options

MAX_LINE = 4_000  # Characters; longer lines are cut for `average`.


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm static",
    description="Writes word vectors without context, in word2vec's text form; "
    "`maskedlm import --from=word2vec` turns the file into a workdir. "
    "docs/guides/use/static-vectors.md is the tutorial.",
    allow_abbrev=False,
  )
  verbs = parser.add_subparsers(metavar="train | average", required=True)
  for add in (_add_train, _add_average):
    add(verbs)
  args = parser.parse_args(shared.join_layers(argv))
  output_options.check_file(args.out, option="--out")
  shared.check_at_least(args, min_count=1)
  return args.run(args)


def _add(verbs, name: str, run, about: str) -> argparse.ArgumentParser:
  parser = verbs.add_parser(name, description=about, allow_abbrev=False)
  parser.set_defaults(run=run)
  return parser


def _add_shared(parser: argparse.ArgumentParser, min_count: int) -> None:
  parser.add_argument(
    "--source",
    required=True,
    help="the text, as for --config.corpus.source: text:FILES, docstrings:",
  )
  parser.add_argument(
    "--text_field",
    default="text",
    metavar="FIELD",
    help="the field or column of jsonl:, parquet: and tfds: that holds the "
    "text; default: text",
  )
  parser.add_argument(
    "--min_count",
    type=int,
    default=min_count,
    metavar="N",
    help=f"rarer words have no vector; default: {min_count}",
  )
  parser.add_argument(
    "--cased",
    action="store_true",
    help="keep capitals: Bank and bank are two words",
  )
  shared.add_out(parser, "the word vectors", required=True)


def _add_train(verbs) -> None:
  parser = _add(
    verbs, "train", train, "Trains word2vec's CBOW on raw text, with gensim."
  )
  _add_shared(parser, min_count=5)
  for name, default, about in (
    ("width", 100, "numbers of a vector"),
    ("window", 5, "the most words on either side that predict a word"),
    ("epochs", 5, "how often the text is read"),
    ("seed", 0, "of the random numbers"),
  ):
    parser.add_argument(
      f"--{name}",
      type=int,
      default=default,
      metavar="N",
      help=f"{about}; default: {default}",
    )


def _add_average(verbs) -> None:
  parser = _add(
    verbs,
    "average",
    average,
    "Averages a model's vectors of a word over its instances in a text.",
  )
  shared.add_checkpoint(parser)
  _add_shared(parser, min_count=1)
  shared.add_batch_tokens(parser)
  shared.add_layers(parser)
  shared.add_combine(parser)


def train(args: argparse.Namespace) -> int:
  """Runs `maskedlm static train`; returns the exit code."""
  from maskedlm.data.word_vectors import cbow, files

  shared.check_at_least(args, width=1, window=1, epochs=1, seed=0)
  report: Counter = Counter()
  made = cbow.train_cbow(
    _documents(args, report),
    cbow.CbowOptions(
      args.width,
      args.window,
      args.min_count,
      args.epochs,
      not args.cased,
      args.seed,
    ),
  )
  files.write_word_vectors(args.out, made.vectors)
  _log(args, made, report)
  return 0


def average(args: argparse.Namespace) -> int:
  """Runs `maskedlm static average`; returns the exit code."""
  from maskedlm.data.labelled.text_lines import Text
  from maskedlm.data.sources.sentences import cut_text
  from maskedlm.data.word_vectors import files
  from maskedlm.inference.vectors import vectors, word_types
  from maskedlm.runtime import startup

  shared.check_at_least(args, batch_tokens=1)
  shared.check_combine(args)
  shared.parse_layers(args.layers)
  report, seen = Counter(), Counter()
  documents = _documents(args, report)
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(
    args.checkpoint, batch_tokens=args.batch_tokens
  )

  def texts():
    for line in itertools.chain.from_iterable(documents):
      for part in cut_text(line, MAX_LINE, what="lines", report=report):
        seen["texts"] += 1
        yield Text(part)

  made = word_types.average_instances(
    model,
    texts(),
    vectors.VectorOptions(
      layers=shared.parse_layers(args.layers, model.cfg.num_layers),
      combine=args.combine,
    ),
    lowercase=not args.cased,
    min_count=args.min_count,
    progress=shared.make_progress(0, seen, what="instance"),
  )
  console.clear_progress()
  files.write_word_vectors(args.out, made.vectors)
  _log(args, made, report)
  return 0


def _documents(args: argparse.Namespace, report: Counter):
  """Returns the documents of --source, each a list of lines."""
  from maskedlm.data.sources import reader

  kind = args.source.partition(":")[0]
  if args.text_field != "text" and kind not in reader.FIELD_TYPES:
    raise ConfigError(
      f"--text_field={args.text_field} has no effect on {kind}: leave it out."
    )
  return reader.read_documents(
    args.source, text_field=args.text_field, report=report
  )


def _log(args: argparse.Namespace, made, report: Counter) -> None:
  """Prints what has a vector, what was too rare, and what was repaired."""
  for name, count in report.items():
    if count and re.search(r"removed|replaced|dropped|cuts|warning", name):
      console.log(f"{name}: {count:,}")
  V, D = made.vectors.values.shape
  rare = [n for n in made.counts.values() if n < args.min_count]
  print(
    f"{counted(V, 'word')}, {counted(D, 'number')} each -> {args.out}; "
    f"{counted(len(rare), 'word')} with fewer than "
    f"{counted(args.min_count, 'instance')} left out, "
    f"{sum(rare) / made.counts.total():.1%} of {made.counts.total():,}"
  )
