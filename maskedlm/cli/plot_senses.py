"""`maskedlm plot senses`: a word in context among its sense embeddings."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import options
from maskedlm.core.errors import ConfigError
from maskedlm.inference.plots import figure, html_page, scatter
from maskedlm.runtime import output_options


def plot_senses(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot senses`; returns the exit code."""
  args = _parser().parse_args(argv)
  if not args.out and not args.html:
    raise ConfigError("give --out=FILE.png for a picture, or --html=FILE.html.")
  if args.out:
    figure.check_picture(args.out)
  if args.html:
    output_options.check_file(args.html, option="--html", suffixes=(".html",))
  options.check_at_least(args, top_k=1)
  made = _place(args)
  if args.out:
    scatter.draw_scatter(args.out, made)
    print(f"{args.out}: {made.title}")
  if args.html:
    text = html_page.render_page(made)
    output_options.write_text(args.html, text, option="--html")
    print(f"{args.html}: {made.title}")
  for each in made.groups[1:]:
    print(f"  {each.label}")
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm plot senses",
    description="Draws a word in context among the sense embeddings that it "
    "may have; the nearest one is its sense (docs/guides/use/pictures.md).",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--senses",
    required=True,
    metavar="FILE.npz",
    help="sense embeddings, written by `word-senses train`",
  )
  parser.add_argument(
    "--standardise",
    metavar="FILE.npz",
    help="compare standardised vectors, as `word-senses predict` does",
  )
  parser.add_argument(
    "--top_k", type=int, default=10, help="senses to draw; default: 10"
  )
  options.add_out(parser, "the picture: a .png, .svg or .pdf")
  parser.add_argument("--html", metavar="FILE", help="the page: a .html")
  parser.add_argument(
    "text", help="'I *found* the jar', or *found|find|VERB* with its lemma"
  )
  return parser


def _place(args: argparse.Namespace) -> scatter.Scatter:
  """Returns the points to draw."""
  from maskedlm.inference.plots import senses as placing
  from maskedlm.inference.vectors import standardise, vectors
  from maskedlm.inference.word_senses import senses
  from maskedlm.runtime import startup

  sentence, target = placing.parse_target(args.text)
  startup.enable_compile_cache()
  learned = senses.load_senses(args.senses)
  model = vectors.open_text_encoder(args.checkpoint)
  senses.check_encoder(learned, model, path=args.senses)
  vector_options = senses.word_vector_options(
    model.cfg, tuple(learned.about["layers"]), learned.about["combine"]
  )
  fitted = standardise.open_word_standardiser(
    args.standardise, model, vector_options
  )
  groups, projected, total = placing.place_senses(
    model,
    learned,
    sentence,
    target,
    vector_options,
    standardiser=fitted,
    top_k=args.top_k,
  )
  shown = len(groups) - 1
  count = f"nearest {shown} of {total}" if shown < total else f"{total}"
  (name,) = figure.short_names([args.checkpoint])
  return scatter.Scatter(
    title=f"“{sentence.words[target.word]}” and its {count} senses",
    subtitle=f"{name}, PCA of vectors of length 1",
    axes=projected.axes,
    has_unit=projected.has_unit,
    groups=groups,
  )
