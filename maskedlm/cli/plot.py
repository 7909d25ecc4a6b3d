"""`maskedlm plot PICTURE`: draws what a model or a run has learned."""

import dataclasses

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import REQUIRED, argument, flag
from maskedlm.cli.points import Projected, Scattered, print_groups
from maskedlm.core.errors import ConfigError, check_name
from maskedlm.runtime import console


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instances:
  """Draws the instances of a word in context; those that the encoder finds
  similar are near each other (docs/guides/use/pictures.md).
  """

  checkpoint: str = shared.checkpoint()
  word: tuple[str, ...] = flag(REQUIRED, "One or several, case ignored.")
  data: tuple[str, ...] = shared.data(
    REQUIRED,
    "Files with a text, or a JSON object, on each line; or files with senses: "
    "SemCor's .tsv, or .data.xml.",
    nargs="+",
    reads=True,
  )
  field: str = shared.field()
  projected: Projected
  layers: groups.Layers
  drawn: Scattered

  def check(self) -> None:
    groups.check_field(self.field, self.data, None)

  def run(self) -> None:
    from maskedlm.inference.plots import instances
    from maskedlm.inference.vectors import vectors
    from maskedlm.inference.word_senses import word_instances

    words = word_instances.distinct_words(self.word)
    sample, counts = word_instances.sample_instances(
      instances.find_instances(self.data, words, self.field),
      self.projected.limit,
    )
    instances.check_count(sample, words, self.data)
    model = groups.open_encoder(self.checkpoint)
    options = self.layers.options(model)
    layers = vectors.resolve_layers(options, model.cfg)
    sample, x = word_instances.embed_instances(model, sample, options)
    instances.check_count(sample, words, self.data)
    scatter = self.projected.project(
      self.checkpoint,
      sample,
      x,
      counts.total(),
      what=f"instances of {instances.format_words(words)}",
      how=instances.format_layers(layers, options.combine),
    )
    self.drawn.draw(scatter)
    print_groups(scatter)
    if missing := [word for word in words if word not in counts]:
      console.warn(instances.not_found_message(missing, self.data))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Vectors:
  """Draws the vectors of texts, such as sentences or sequences of DNA, coloured
  by their labels (docs/guides/use/pictures.md).
  """

  checkpoint: str = shared.checkpoint()
  data: tuple[str, ...] = shared.data(
    REQUIRED,
    "Tables or JSON objects with a text, or sentence, and a label; or files "
    "with a text on each line, each a colour.",
    nargs="+",
    reads=True,
  )
  projected: Projected
  layers: groups.Layers
  drawn: Scattered

  def run(self) -> None:
    from maskedlm.inference.plots import instances
    from maskedlm.inference.vectors import splade, vectors
    from maskedlm.inference.word_senses import word_instances

    sample, counts = word_instances.sample_instances(
      instances.find_texts(self.data), self.projected.limit
    )
    model = groups.open_encoder(self.checkpoint)
    options = vectors.resolve_options(
      self.layers.options(model, unit="sentence", pool=""), model
    )
    splade.require_dense(options.pool, self.checkpoint)
    layers = vectors.resolve_layers(options, model.cfg)
    sample, x = word_instances.embed_texts(model, sample, options)
    scatter = self.projected.project(
      self.checkpoint,
      sample,
      x,
      counts.total(),
      what="texts",
      how=f"{options.pool}, {instances.format_layers(layers, options.combine)}",
    )
    self.drawn.draw(scatter)
    print_groups(scatter)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Senses:
  """Draws a marked word in context among the sense embeddings that it may have,
  the nearest of which is its sense; or a text without a mark, with the senses
  of its words above them (docs/guides/use/pictures.md).
  """

  checkpoint: str = shared.checkpoint()
  learned: groups.Senses
  top_k: int = shared.top_k(10, "Senses to draw")
  drawn: Scattered
  text: str = shared.text(
    "'I *found* the jar', or *found|find|VERB* with its lemma; or no mark.",
    REQUIRED,
  )

  def run(self) -> None:
    from maskedlm.inference.plots import figure, senses
    from maskedlm.inference.plots.scatter import Scatter

    sentence, target = senses.parse_target(self.text)
    model = groups.open_encoder(self.checkpoint)
    learned, options, fitted = self.learned.open(model)
    if target is None:
      if not self.drawn.out:
        raise ConfigError("a text without a mark has no page: give --out.")
      row = senses.row_of_senses(model, learned, sentence, options, fitted)
      _draw_row(self.drawn.out, row, self.checkpoint)
      return
    points, projected, total = senses.place_senses(
      model,
      learned,
      sentence,
      target,
      options,
      standardiser=fitted,
      top_k=self.top_k,
    )
    shown = len(points) - 1
    count = f"nearest {shown} of {total}" if shown < total else f"{total}"
    (name,) = figure.short_names([self.checkpoint])
    self.drawn.draw(
      Scatter(
        title=f"“{sentence.words[target.word]}” and its {count} senses",
        subtitle=f"{name}, PCA of vectors of length 1",
        axes=projected.axes,
        has_unit=projected.has_unit,
        groups=points,
      )
    )
    for group in points[1:]:
      print(f"  {group.label}")


@dataclasses.dataclass(frozen=True)
class Attention:
  """Draws which tokens of a sentence attend to which, a map for each head;
  docs/guides/use/pictures.md shows one.
  """

  checkpoint: tuple[str, ...] = shared.checkpoint(
    "; given several times, a row of maps for each", nargs=1
  )
  layers: str = shared.layers()
  values: str = flag(
    "weights",
    "Weights, which add up to 1, or scores, before the softmax.",
    choices=("weights", "scores"),
  )
  out: str = shared.picture()
  text: str = shared.text("A sentence; it may have a [MASK].", REQUIRED)

  def check(self) -> None:
    groups.parse_layers(self.layers)

  def run(self) -> None:
    from maskedlm.inference.plots import attention, figure
    from maskedlm.inference.vectors import attention_maps

    maps, tokens = [], {}
    names = figure.short_names(self.checkpoint)
    for path, name in zip(self.checkpoint, names, strict=True):
      model = groups.open_encoder(path)
      layers = attention_layers(self.layers, model.cfg.num_layers)
      attended = attention_maps.attend(model, self.text, limit=attention.LIMIT)
      tokens[attended.tokens] = name
      of = f"{name}, " if len(names) > 1 else ""
      maps += [
        (f"{of}layer {layer}", getattr(attended, self.values)[layer - 1])
        for layer in layers
      ]
    if len(tokens) > 1:
      raise ConfigError(
        f"--checkpoint: {' and '.join(tokens.values())} have other tokens for "
        "this text; expected models with the same tokenizer."
      )
    attention.draw_attention(
      self.out,
      attended.tokens,
      maps,
      values_name=self.values,
      title=f"“{self.text}”, attention of {', '.join(names)}",
    )
    print(f"{self.out}: {sum(len(heads) for _, heads in maps)} heads")


def attention_layers(text: str, num_layers: int) -> list[int]:
  """Returns the layers that --layers names, as numbers from 1.

  Raises:
    ConfigError: the encoder has no such layer, or it is the embeddings, which
      have no attention.
  """
  layers = [
    layer if layer > 0 else layer + num_layers + 1
    for layer in groups.parse_layers(text, num_layers)
  ]
  if not all(1 <= layer <= num_layers for layer in layers) or "0" in (
    text.split(",")
  ):
    raise ConfigError(
      f"--layers={text}: attention is in layers 1 to {num_layers}, counted "
      f"from the end -1 to -{num_layers}; or give last or all."
    )
  return layers


@dataclasses.dataclass(frozen=True)
class Masks:
  """Draws how probable the model finds the words that a text hides, between
  asterisks: 'Return *True* if all *elements* of the *list|table* are *equal*.'
  docs/guides/use/pictures.md shows it.
  """

  checkpoint: str = shared.checkpoint()
  top_k: int = shared.top_k(5, "Tokens to show for each")
  out: str = shared.picture()
  text: str = shared.text(
    "*elements* is masked; of *list|table* the model reads the second word, "
    "and has to find the first.",
    REQUIRED,
  )

  def run(self) -> None:
    from maskedlm.inference import fill_mask
    from maskedlm.inference.plots import figure, masked_words

    model = fill_mask.load_mask_filler(self.checkpoint)
    prediction = fill_mask.predict_masked(model, self.text, top_k=self.top_k)
    (name,) = figure.short_names([self.checkpoint])
    title = f"{name}, mean loss {prediction.loss:.2f} nats"
    if any(token.sbo_loss for token in prediction.masked):
      title = f"{name}, L_MLM + L_SBO of each token, in nats"
    masked_words.draw_masked(self.out, prediction, title=title)
    print("\n".join([f"{self.out}:", *fill_mask.format_masked(prediction)]))


@dataclasses.dataclass(frozen=True)
class Row:
  """Draws a text as a row, and above it what a checkpoint makes of it: its
  label, tags or spans; of a pretrained one the vectors, or, of two texts with a
  tab between them, the loss of next sentence prediction.
  docs/guides/use/pictures.md shows some.
  """

  checkpoint: str = shared.checkpoint()
  out: str = shared.picture()
  text: str = shared.text("A text, or two with a tab between them.", REQUIRED)

  def run(self) -> None:
    import maskedlm
    from maskedlm.inference.plots import text_row
    from maskedlm.runtime import startup

    startup.enable_compile_cache()
    row = text_row.read_row(maskedlm.load(self.checkpoint), self.text)
    _draw_row(self.out, row, self.checkpoint)


def _draw_row(path: str, row, checkpoint: str) -> None:
  from maskedlm.inference.plots import figure, text_row

  (name,) = figure.short_names([checkpoint])
  text_row.draw_row(path, row._replace(title=f"{name}, {row.title}"))
  print(f"{path}: {row.title}")
  for first, last, text, _ in row.marks:
    print(f"  {' '.join(row.words[first : last + 1])}: {text}")


@dataclasses.dataclass(frozen=True)
class Isotropy:
  """Draws tables of `maskedlm vectors isotropy --out=FILE` as curves over the
  layers; docs/guides/use/pictures.md shows some.
  """

  table: tuple[str, ...] = argument(
    REQUIRED, "JSON files, one for each checkpoint."
  )
  out: str = shared.picture()

  def run(self) -> None:
    from maskedlm.inference.plots import figure, isotropy

    tables = [isotropy.read_table(path) for path in self.table]
    names = [n.removesuffix(".json") for n in figure.short_names(self.table)]
    isotropy.draw_isotropy(self.out, dict(zip(names, tables, strict=True)))
    print(f"{self.out}: {', '.join(names)}")


@dataclasses.dataclass(frozen=True)
class Run:
  """Draws the curves of pretraining or fine-tuning, of one run or of several in
  one picture: losses, scores, learning rate, speed; docs/guides/use/pictures.md
  shows some.
  """

  workdir: tuple[str, ...] = shared.runs("Runs, finished or not.")
  out: str = shared.picture()
  panels: str | None = flag(
    None,
    "The metrics to draw, as metrics.jsonl names them, with commas: "
    "mlm_loss,heldout/mlm_accuracy (which is drawn held out only); default: "
    "losses, scores, rate and speed.",
    metavar="NAMES",
  )
  over: str = flag(
    "steps",
    "What the curves are drawn over: steps, tokens, or steps,tokens for a "
    "panel of each.",
  )
  columns: int = flag(3, "Panels beside each other, at most.", low=1)
  width: float = flag(
    0.0,
    "Of the picture, in inches, such as a page's column; 0 = 4.2 a column.",
    low=0,
  )

  def run(self) -> None:
    import jax

    # Else JAX looks for an accelerator, which the run itself may hold.
    jax.config.update("jax_platforms", "cpu")
    from maskedlm.inference.plots import figure, training_curves

    over = self.over.split(",")
    for axis in over:
      check_name("--over", axis, training_curves.AXES)
    curves = [training_curves.read_run(workdir) for workdir in self.workdir]
    runs = dict(zip(figure.short_names(self.workdir), curves, strict=True))
    training_curves.draw_curves(
      self.out,
      runs,
      panels=() if self.panels is None else self.panels.split(","),
      over=over,
      columns=self.columns,
      width=self.width,
    )
    steps = [
      f"{name} {training_curves.last_step(run):,}" for name, run in runs.items()
    ]
    print(f"{self.out}: steps of {', '.join(steps)}")
