"""`maskedlm tokenizer train|show|report|replace`."""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from maskedlm.cli import shared
from maskedlm.cli.flags import REQUIRED, config_flag, flag
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import buckets, console


@dataclasses.dataclass(frozen=True)
class Train:
  """Trains a tokenizer on --config.corpus.source and saves it."""

  out: str = shared.out_folder()
  config: Any = config_flag()

  def run(self) -> None:
    from maskedlm.data.prepare import prepare
    from maskedlm.pretraining.config import typed

    folder = buckets.folder(self.out)
    trained = prepare.train_tokenizer(typed(self.config), folder, log=print)
    print(
      f"{trained.kind} tokenizer with {trained.vocab_size:,} tokens "
      f"({trained.sha256[:12]}) is ready in {self.out}"
    )


def saved_tokenizer(**more):
  """Returns the field of --tokenizer."""
  return flag(
    REQUIRED,
    "A saved directory, vocab.txt, tokenizer.json or .model.",
    metavar="TOKENIZER",
    **more,
  )


@dataclasses.dataclass(frozen=True)
class Show:
  """Shows the row that a model such as BERT reads, of a text or of a pair: a
  line has a token's position, its segment, its id, the token (of byte-level BPE
  with its characters), and the characters of the text that it is.
  """

  tokenizer: str = saved_tokenizer(old=("--try",))
  text: tuple[str, ...] = shared.text(
    "The text; a tab between two makes them a pair."
  )

  def run(self) -> None:
    from maskedlm.data.batches import text_pairs
    from maskedlm.data.tokenizers import spelling, tokenizer

    loaded = tokenizer.load_tokenizer(self.tokenizer)
    for note in loaded.notes:
      console.warn(f"tokenizer {self.tokenizer}: {note}")
    text = " ".join(self.text)
    texts = text.split("\t")
    if len(texts) > 2:
      raise ConfigError(
        f"the text {text[:40]!r} has {len(texts) - 1} tabs; expected one text, "
        "or a pair with a tab between its texts."
      )
    encodings = [loaded.encode(text) for text in texts]
    a, b = [x.ids for x in encodings] + [None] * (2 - len(texts))
    row = text_pairs.pair_row(loaded, a, b, length=sys.maxsize)
    nothing = "", ""
    places = [nothing]  # Of [CLS].
    for encoding, source in zip(encodings, texts, strict=True):
      for start, end in encoding.offsets:
        part = console.isolate(repr(source[start:end]))
        places.append((f"{start}:{end}", part))
      places.append(nothing)  # Of [SEP].
    names = [loaded.tokens(int(i)) for i in row.input_ids]
    if loaded.kind == "bpe":
      names = [*map(spelling.readable, names)]
    columns = ("position", "segment", "id", "token", "characters", "text")
    parts = zip(row.token_type_ids, row.input_ids, names, places, strict=True)
    rows = (
      (position, "AB"[segment], i, console.isolate(name), *place)
      for position, (segment, i, name, place) in enumerate(parts)
    )
    print("\n".join(console.table(columns, rows, align="><><<<")))


@dataclasses.dataclass(frozen=True)
class Replace:
  """Gives a model another vocabulary: one for your domain or language, a
  smaller one, or its own with more words. Tokens in both keep their vectors; a
  new token starts from the mean of the old tokens that spell it (Gee et al.
  2022, https://arxiv.org/abs/2402.09977). Pretrain the result further:
  --config.init_from=OUT.
  """

  checkpoint: str = shared.checkpoint()
  tokenizer: str = saved_tokenizer()
  out: str = shared.out_folder()

  def run(self) -> None:
    from maskedlm.interop.vocabulary_transfer import retokenize

    retokenize(self.checkpoint, self.tokenizer, pathlib.Path(self.out))


@dataclasses.dataclass(frozen=True)
class Report:
  """Measures how well vocabularies fit each language: with --config, the one
  that it would train on its corpus.parts and one with alpha = 1; with
  --tokenizer and --parts, saved ones.
  """

  tokenizer: tuple[str, ...] = flag((), "Saved tokenizers.", metavar="DIR")
  parts: str = flag(
    "", "The text to measure on, like corpus.parts.", not_beside=("config",)
  )
  text_field: str = shared.text_field("--parts", not_beside=("config",))
  png: str | None = shared.out("Also draw it.", shared.PICTURES)
  json: bool = shared.json()
  config: Any = config_flag(instead="tokenizer")

  def run(self) -> None:
    from maskedlm.inference.plots import figure
    from maskedlm.planning import vocabularies
    from maskedlm.pretraining.config import typed

    if self.config is None:
      compared, texts = vocabularies.load_saved(
        self.tokenizer,
        figure.short_names(self.tokenizer),
        self.parts,
        text_field=self.text_field,
      )
    else:
      compared, texts = vocabularies.train_both(typed(self.config))
    table = vocabularies.measure_vocabularies(compared, texts)
    if self.png:
      draw_report(self.png, table)
    if self.json:
      console.print_json(table, indent=2)
    else:
      print("\n".join(vocabularies.format_report(table)))


def draw_report(path: str, table: Mapping[str, Mapping[str, Any]]) -> None:
  """Draws characters per token and tokens per word as bars by language."""
  import numpy as np

  from maskedlm.inference.plots import figure
  from maskedlm.planning.vocabularies import COLUMNS

  names = list(table)
  labels = list(table[names[0]]["vocabularies"])
  thick = 0.8 / len(labels)
  width, side = 3.4, len(names) * (0.12 + 0.12 * len(labels))
  left = 0.3 + 0.07 * max(map(console.columns_of, names))
  legend = figure.legend_height(len(labels))
  height = 0.35 + side + 0.3 + legend
  measures = ("characters_per_token", "tokens_per_word")
  with figure.open_figure(
    path,
    width=left + 2 * (width + 0.3),
    height=height,
    text="".join([*names, *labels]),
  ) as canvas:
    for column, measured in enumerate(measures):
      box = (left + column * (width + 0.3), 0.35, width, side)
      panel = figure.add_axes(canvas, box)
      for i, label in enumerate(labels):
        values = [
          row["vocabularies"][label][measured] or 0 for row in table.values()
        ]
        at = np.arange(len(names)) + (i - (len(labels) - 1) / 2) * thick
        panel.barh(at, values, thick, color=figure.colour(i))
      panel.set_title(COLUMNS[measured][0])
      panel.set_yticks(range(len(names)), names if column == 0 else [])
      panel.set_ylim(len(names) - 0.5, -0.5)
    lines = [
      (label, {"color": figure.colour(i), "linewidth": 5})
      for i, label in enumerate(labels)
    ]
    figure.add_legend(canvas, lines, left=left, top=height - 0.1)
