"""`maskedlm plot instances`: where a word's instances lie, and what they say.

Points with a colour for each sense, file or word: a picture (scatter.py), and
a page whose points tell their sentences (page.py).
"""

import argparse
import itertools
import pathlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from maskedlm import cli, embed, outputs
from maskedlm.config import ConfigError, check_name
from maskedlm.plots import canvas, page, scatter
from maskedlm.plots.scatter import Group, Point, Scatter

SENSES = (".tsv", ".data.xml")  # What files with senses are named.
MOST_GROUPS = 20  # The smallest beyond them share one.
MOST_WORDS = 4  # That a title names.


def main(argv: Sequence[str]) -> int:
  """Makes the picture, the page or both; returns the exit code."""
  args = _parser().parse_args(embed.glue_layers(argv))
  _check(args)
  made, missing = measure(args)
  if args.out:
    scatter.draw(args.out, made)
    print(f"{args.out}: {made.title}")
  if args.html:
    outputs.write(args.html, page.make(made), option="--html")
    print(f"{args.html}: {made.title}")
  for each in made.groups:
    print(f"  {len(each.points):5}  {each.label}")
  if missing:
    print(_nowhere(missing, args.data), file=sys.stderr)
  lacking = canvas.unreadable(scatter.shown(made)) if args.out else ""
  if lacking:
    print(
      f"no installed font has {lacking[:20]!r}: boxes in the picture; install "
      "fonts, such as fonts-noto and fonts-noto-cjk, or use --html.",
      file=sys.stderr,
    )
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm plot instances",
    description="Draws the instances of a word in context: near each other "
    "where the encoder finds them alike; docs/pictures.md shows some.",
    allow_abbrev=False,
  )
  cli.add_checkpoint(parser)
  parser.add_argument(
    "--word", required=True, nargs="+", help="one or several, in any case"
  )
  parser.add_argument(
    "--data",
    required=True,
    nargs="+",
    metavar="FILE",
    help="files with a text, or a JSON object, on each line; or "
    "with senses: SemCor's .tsv, or .data.xml",
  )
  parser.add_argument(
    "--field",
    default="text",
    help="of JSON objects, where the text is; default: text",
  )
  parser.add_argument(
    "--projection", default="pca", help="pca (default) | umap (an extra)"
  )
  parser.add_argument(
    "--layers", default="last", help="as of maskedlm embed; default: last"
  )
  parser.add_argument(
    "--combine", default="mean", help="of layers: mean (default) | sum | concat"
  )
  parser.add_argument(
    "--limit",
    type=int,
    default=500,
    help="the most instances; of more, so many are drawn at random; default: "
    "500",
  )
  parser.add_argument("--out", help="the picture: a .png, .svg or .pdf")
  parser.add_argument("--html", help="the page: a .html")
  return parser


def measure(args: argparse.Namespace) -> tuple[Scatter, list[str]]:
  """What is to be drawn, and the words that have no instance.

  Raises:
    ConfigError: fewer than two instances, and what else of args is wrong.
  """
  from maskedlm import runtime
  from maskedlm.analysis import instances, projection, vectors

  options = vectors.Options(
    layers=embed.parse_layers(args.layers), combine=args.combine
  )
  words = instances.distinct(args.word)
  found, counts = instances.draw(find(args.data, words, args.field), args.limit)
  _check_count(found, words, args.data)
  runtime.enable_compile_cache()
  model = vectors.open_model(args.checkpoint)
  layers = vectors.find_layers(options, model.cfg)
  found, x = instances.embed(model, found, options)
  _check_count(found, words, args.data)
  projected = projection.PROJECTIONS[args.projection](x)
  told, total = f"{len(found):,}", counts.total()
  if total > len(found):
    told = f"{told} of {total:,}"
  (name,) = canvas.names([args.checkpoint])
  made = Scatter(
    title=f"{told} instances of {_words(words)}",
    subtitle=f"{name}, {_layers(layers, args.combine)}, "
    f"{args.projection.upper()}",
    axes=projected.axes,
    has_unit=projected.has_unit,
    groups=group(found, projected.points),
  )
  return made, [word for word in words if word not in counts]


def find(paths: Sequence[str], words: Sequence[str], field: str) -> Iterator:
  """The instances in files of texts or of senses, with their labels.

  A label is the sense; else, of several files, the file; else the word.
  """
  from maskedlm.analysis import inputs, instances, sense_data

  names = dict(zip(paths, _stems(paths), strict=True))
  for path in paths:
    if path.endswith(SENSES):
      found = instances.of_senses(sense_data.read(path), words)
      several = len(words) > 1
      for each in found:
        label = f"{each.word}: {each.label}" if several else each.label
        yield each._replace(label=label)
    else:
      texts = inputs.read([path], field=field)
      for each in instances.find(texts, words):
        label = names[path] if len(paths) > 1 else each.word
        yield each._replace(label=label)


def group(found: Sequence, points) -> list[Group]:
  """Instances with their points [n, 2], by label; the largest group first."""
  by_label: dict[str, list[Point]] = {}
  for each, (x, y) in zip(found, points.tolist(), strict=True):
    text = each.text
    point = Point(
      x,
      y,
      before=text.text[: each.begin],
      word=text.text[each.begin : each.end],
      after=text.text[each.end :],
      where=f"{pathlib.Path(text.file).name}:{text.line}",
    )
    by_label.setdefault(each.label, []).append(point)
  ordered = sorted(by_label.items(), key=lambda item: -len(item[1]))
  groups = [Group(label, of) for label, of in ordered]
  if len(groups) <= MOST_GROUPS:
    return groups
  rest = groups[MOST_GROUPS - 1 :]
  others = list(itertools.chain(*(each.points for each in rest)))
  return [*groups[: MOST_GROUPS - 1], Group(f"{len(rest)} others", others)]


def _check(args: argparse.Namespace) -> None:
  """What of the options can be checked before anything slow begins."""
  from maskedlm.analysis import inputs, projection

  if not args.out and not args.html:
    raise ConfigError("give --out=FILE.png for a picture, or --html=FILE.html.")
  if args.out:
    canvas.check(args.out)
  if args.html:
    outputs.check(args.html, option="--html", suffixes=(".html",))
  check_name("--projection", args.projection, projection.PROJECTIONS)
  if args.projection == "umap":
    projection.load_umap()
  if args.combine == "stack":
    raise ConfigError("combine='stack' is for Python; use mean, sum or concat.")
  if args.limit < 2:
    raise ConfigError(f"--limit={args.limit}: expected 2 or more.")
  inputs.check(args.data, form="", option="--data")


def _words(words: Sequence[str]) -> str:
  """The words in quotes; of many, the first ones."""
  few = words[:MOST_WORDS] if len(words) > MOST_WORDS + 1 else words
  quoted = ", ".join(f"“{word}”" for word in few)
  rest = len(words) - len(few)
  return f"{quoted} and {rest} others" if rest else quoted


def _check_count(found: Sequence, words, paths: Sequence[str]) -> None:
  """That there is something to be compared."""
  if not found:
    raise ConfigError(_nowhere(words, paths))
  if len(found) == 1:
    text = found[0].text
    raise ConfigError(
      f"{_words(words)} occurs once, {text.file}:{text.line}; expected two "
      "instances or more, to be compared."
    )


def _nowhere(words: Sequence[str], paths: Sequence[str]) -> str:
  """What is to be told of words without an instance."""
  files = ", ".join(paths)
  if any(path.endswith(SENSES) for path in paths):
    return f"{_words(words)}: not a word with a sense in {files}."
  return (
    f"{_words(words)}: not a whole word of {files}; give other forms, such as "
    "plurals, as words of their own."
  )


def _stems(paths: Sequence[str]) -> list[str]:
  """Short names of files: de of de.txt, if no other is called so."""
  stems = [pathlib.Path(path).stem for path in paths]
  count = Counter(stems)
  return [
    stem if count[stem] == 1 else path
    for stem, path in zip(stems, paths, strict=True)
  ]


def _layers(layers: Sequence[int], combine: str) -> str:
  numbers = ", ".join(map(str, layers))
  if len(layers) == 1:
    return f"layer {numbers}"
  return f"{combine} of layers {numbers}"


if __name__ == "__main__":
  sys.exit(cli.run(main))
