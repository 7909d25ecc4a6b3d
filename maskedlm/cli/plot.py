"""`maskedlm plot PICTURE`: draws what a model or a run has learned."""

import argparse
from collections.abc import Sequence

from maskedlm.cli import exit_codes, options, plot_senses
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.inference.plots import (
  attention,
  figure,
  html_page,
  instances,
  isotropy,
  masked_words,
  scatter,
  training_curves,
)
from maskedlm.inference.plots.scatter import Scatter
from maskedlm.runtime import console, output_options


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  names = "\n".join(
    f"  {name:<11}{about}" for name, (_, about) in PICTURES.items()
  )
  usage = (
    "usage: maskedlm plot PICTURE [options]\n\n"
    f"{names}\n\n`maskedlm plot PICTURE --help` prints its options."
  )
  if not argv or argv[0] in ("-h", "--help", "help"):
    print(usage)
    return 0 if argv else exit_codes.ERROR
  name, *rest = argv
  check_name("PICTURE", name, PICTURES)
  draw, _ = PICTURES[name]
  return draw(rest)


def plot_instances(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot instances`; returns the exit code."""
  args = _instances_parser().parse_args(options.join_layers(argv))
  _check_instances(args)
  made, missing = embed_and_project(args)
  if args.out:
    scatter.draw_scatter(args.out, made)
    print(f"{args.out}: {made.title}")
  if args.html:
    output_options.write_text(
      args.html, html_page.render_page(made), option="--html"
    )
    print(f"{args.html}: {made.title}")
  for each in made.groups:
    print(f"  {len(each.points):5}  {each.label}")
  if missing:
    console.warn(instances.not_found_message(missing, args.data))
  lacking = figure.unreadable(scatter.visible_text(made)) if args.out else ""
  if lacking:
    console.warn(
      f"no installed font has {lacking[:20]!r}: boxes in the picture; install "
      "fonts, such as fonts-noto and fonts-noto-cjk, or use --html."
    )
  return 0


def _instances_parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog="maskedlm plot instances",
    description="Draws the instances of a word in context; those that the "
    "encoder finds similar are near each other (docs/guides/use/pictures.md).",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--word",
    required=True,
    nargs="+",
    action="extend",
    help="one or several, case ignored",
  )
  parser.add_argument(
    "--data",
    required=True,
    nargs="+",
    action="extend",
    metavar="FILE",
    help="files with a text, or a JSON object, on each line; or files with "
    "senses: SemCor's .tsv, or .data.xml",
  )
  options.add_field(parser)
  parser.add_argument(
    "--projection",
    default="pca",
    help="pca (default) | umap (needs the extra `umap`)",
  )
  options.add_layers(parser)
  options.add_combine(parser)
  parser.add_argument(
    "--limit",
    type=int,
    default=500,
    help="the largest number of instances to draw; of more, equally many of "
    "each colour (file, sense or word) at random; default: 500",
  )
  options.add_out(parser, "the picture: a .png, .svg or .pdf")
  parser.add_argument("--html", metavar="FILE", help="the page: a .html")
  return parser


def embed_and_project(args: argparse.Namespace) -> tuple[Scatter, list[str]]:
  """Returns the points to draw, and the words without an instance.

  Raises:
    ConfigError: there are fewer than two instances, or an option is wrong.
  """
  from maskedlm.inference.vectors import projection, vectors
  from maskedlm.inference.word_senses import word_instances
  from maskedlm.runtime import startup

  words = word_instances.distinct_words(args.word)
  found, counts = word_instances.sample_instances(
    instances.find_instances(args.data, words, args.field), args.limit
  )
  instances.check_count(found, words, args.data)
  startup.enable_compile_cache()
  model = vectors.open_text_encoder(args.checkpoint)
  vector_options = vectors.VectorOptions(
    layers=options.parse_layers(args.layers, model.cfg.num_layers),
    combine=args.combine,
  )
  layers = vectors.resolve_layers(vector_options, model.cfg)
  found, x = word_instances.embed_instances(model, found, vector_options)
  instances.check_count(found, words, args.data)
  projected = projection.PROJECTIONS[args.projection](x)
  count, total = f"{len(found):,}", counts.total()
  if total > len(found):
    count = f"{count} of {total:,}"
  (name,) = figure.short_names([args.checkpoint])
  made = Scatter(
    title=f"{count} instances of {instances.format_words(words)}",
    subtitle=f"{name}, {instances.format_layers(layers, args.combine)}, "
    f"{args.projection.upper()}",
    axes=projected.axes,
    has_unit=projected.has_unit,
    groups=instances.group_by_label(found, projected.points),
  )
  return made, [word for word in words if word not in counts]


def _check_instances(args: argparse.Namespace) -> None:
  """Checks what can be checked before anything slow begins."""
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.vectors import projection

  if not args.out and not args.html:
    raise ConfigError("give --out=FILE.png for a picture, or --html=FILE.html.")
  if args.out:
    figure.check_picture(args.out)
  if args.html:
    output_options.check_file(args.html, option="--html", suffixes=(".html",))
  check_name("--projection", args.projection, projection.PROJECTIONS)
  if args.projection == "umap":
    projection.load_umap()
  options.check_combine(args)
  options.parse_layers(args.layers)
  options.check_at_least(args, limit=2)
  text_lines.check_files(args.data, form="", option="--data")
  options.check_field(args, args.data)


def plot_attention(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot attention`; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm plot attention",
    description="Draws which tokens of a sentence attend to which, a map for "
    "each head; docs/guides/use/pictures.md shows one.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  options.add_layers(parser)
  options.add_old_name(parser, "--layer", "layers")
  parser.add_argument(
    "--values",
    default="weights",
    help="weights (default), which add up to 1 | scores, before the softmax",
  )
  options.add_out(parser, "a .png, .svg or .pdf", required=True)
  parser.add_argument("text", help="a sentence; it may have a [MASK]")
  args = parser.parse_args(options.join_layers(argv))
  figure.check_picture(args.out)
  check_name("--values", args.values, attention.SCALES)
  options.parse_layers(args.layers)

  from maskedlm.inference.vectors import attention_maps, vectors
  from maskedlm.runtime import startup

  startup.enable_compile_cache()
  model = vectors.open_text_encoder(args.checkpoint)
  layers = attention_layers(args.layers, model.cfg.num_layers)
  made = attention_maps.attend(model, args.text, limit=attention.LIMIT)
  (name,) = figure.short_names([args.checkpoint])
  attention.draw_attention(
    args.out,
    made.tokens,
    getattr(made, args.values),
    layers,
    values_name=args.values,
    title=f"Attention of {name}",
  )
  print(f"{args.out}: {len(layers) * made.weights.shape[1]} heads")
  return 0


def attention_layers(text: str, num_layers: int) -> list[int]:
  """Returns the layers that --layers names, as numbers from 1.

  Raises:
    ConfigError: the encoder has no such layer, or it is the embeddings, which
      have no attention.
  """
  layers = [
    layer if layer > 0 else layer + num_layers + 1
    for layer in options.parse_layers(text, num_layers)
  ]
  if not all(1 <= layer <= num_layers for layer in layers) or "0" in (
    text.split(",")
  ):
    raise ConfigError(
      f"--layers={text}: attention is in layers 1 to {num_layers}, counted "
      f"from the end -1 to -{num_layers}; or give last or all."
    )
  return layers


def plot_masks(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot masks`; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm plot masks",
    description="Draws how probable the model finds the words that a text "
    "hides, between asterisks: 'So *long* and thanks for *all|apricot* the "
    "fish'. docs/guides/use/pictures.md shows one.",
    allow_abbrev=False,
  )
  options.add_checkpoint(parser)
  parser.add_argument(
    "--top_k", type=int, default=5, help="tokens to show for each; default: 5"
  )
  options.add_out(parser, "a .png, .svg or .pdf", required=True)
  parser.add_argument(
    "text",
    help="*long* is masked; of *all|apricot* the model reads the second word, "
    "and has to find the first",
  )
  args = parser.parse_args(argv)
  figure.check_picture(args.out)
  options.check_at_least(args, top_k=1)

  from maskedlm.inference import fill_mask

  model = fill_mask.load_mask_filler(args.checkpoint)
  made = fill_mask.predict_masked(model, args.text, top_k=args.top_k)
  (name,) = figure.short_names([args.checkpoint])
  title = f"{name}, mean loss {made.loss:.2f} nats"
  masked_words.draw_masked(args.out, made, title=title)
  print("\n".join([f"{args.out}:", *fill_mask.format_masked(made)]))
  return 0


def plot_isotropy(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot isotropy`; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm plot isotropy",
    description="Draws tables of `maskedlm isotropy --out=FILE` as curves over "
    "the layers; docs/guides/use/pictures.md shows some.",
    allow_abbrev=False,
  )
  parser.add_argument(
    "table", nargs="+", help="JSON files, one for each checkpoint"
  )
  options.add_out(parser, "a .png, .svg or .pdf", required=True)
  args = parser.parse_args(argv)
  figure.check_picture(args.out)
  tables = [isotropy.read_table(path) for path in args.table]
  names = [
    name.removesuffix(".json") for name in figure.short_names(args.table)
  ]
  isotropy.draw_isotropy(args.out, dict(zip(names, tables, strict=True)))
  print(f"{args.out}: {', '.join(names)}")
  return 0


def plot_run(argv: Sequence[str]) -> int:
  """Runs `maskedlm plot run`; returns the exit code."""
  parser = argparse.ArgumentParser(
    prog="maskedlm plot run",
    description="Draws the curves of pretraining or fine-tuning, of one run or "
    "of several in one picture: losses, scores, learning rate, speed; "
    "docs/guides/use/pictures.md shows some.",
    allow_abbrev=False,
  )
  parser.add_argument("workdir", nargs="+", help="runs, finished or not")
  options.add_out(parser, "a .png, .svg or .pdf", required=True)
  parser.add_argument(
    "--panels",
    metavar="NAMES",
    help="the metrics to draw, as metrics.jsonl names them, with commas: "
    "mlm_loss,heldout/mlm_accuracy (which is drawn held out only); default: "
    "losses, scores, rate and speed",
  )
  parser.add_argument(
    "--over",
    default="steps",
    help="what the curves are drawn over: steps (default), tokens, or "
    "steps,tokens for a panel of each",
  )
  parser.add_argument(
    "--columns",
    type=int,
    default=training_curves.COLUMNS,
    help="panels beside each other, at most; default: 3",
  )
  parser.add_argument(
    "--width",
    type=float,
    default=0.0,
    help="of the picture, in inches, such as a page's column; default: 4.2 a "
    "column",
  )
  args = parser.parse_args(argv)
  options.check_at_least(args, columns=1, width=0)
  over = args.over.split(",")
  for axis in over:
    check_name("--over", axis, training_curves.AXES)
  figure.check_picture(args.out)
  curves = [training_curves.read_run(workdir) for workdir in args.workdir]
  runs = dict(zip(figure.short_names(args.workdir), curves, strict=True))
  training_curves.draw_curves(
    args.out,
    runs,
    panels=(args.panels or "").split(",") if args.panels is not None else (),
    over=over,
    columns=args.columns,
    width=args.width,
  )
  steps = [
    f"{name} {training_curves.last_step(run):,}" for name, run in runs.items()
  ]
  print(f"{args.out}: steps of {', '.join(steps)}")
  return 0


# Picture -> (function that runs its command, description).
PICTURES = {
  "instances": (plot_instances, "a word's instances, by sense or language"),
  "senses": (plot_senses.plot_senses, "a word among its sense embeddings"),
  "attention": (plot_attention, "which tokens attend to which, by head"),
  "masks": (plot_masks, "the probability of the words that a text hides"),
  "isotropy": (plot_isotropy, "how alike vectors are, by layer"),
  "run": (plot_run, "the training curves of one or several workdirs"),
}
