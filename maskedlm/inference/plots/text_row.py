"""Draws a text as a row of words, with a model's answer above them.

After Figures 11.5, 11.6, 11.8, 11.10, 11.11 and 11.13 of Jurafsky & Martin: the
loss of a pair above [CLS], vectors, senses, a label, tags, spans.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.inference.plots import figure, scatter
from maskedlm.inference.plots.masked_words import LETTER, SPACE, break_lines

LIMIT = 64  # The most words.
WIDTH = 10.0  # Inches, of the widest.
LEVEL, WORD = 0.3, 0.45  # Inches: the height of a mark, and of a line of words.
STRIP, ACROSS = 1.2, 8  # A vector's height in inches; its values in a row.
GREY = "#777777"


class Mark(NamedTuple):
  """A text above a range of words."""

  first: int
  last: int  # Included.
  text: str
  colour: str = GREY


class TextRow(NamedTuple):
  """n words, with marks and perhaps vectors above them."""

  title: str
  words: tuple[str, ...]  # [n]
  marks: list[Mark]
  vectors: np.ndarray | None = None  # [n, C]


def read_row(model, text: str) -> TextRow:
  """Returns the row of a text, with the answer of a model of maskedlm.load.

  That is the prediction of a fine-tuned model; of a pretrained one the loss of
  next sentence prediction, if two texts have a tab between them, or vectors.
  """
  if "kind" in model.meta["task"]:
    return row_of_answer(text, *model.predict([text]))
  if "\t" in text:
    first, second = text.split("\t", 1)
    return row_of_pair(first, second, *model.next_sentence([(first, second)]))
  tokens = model.vectors([text], unit="token")
  words = tuple(text[slice(*place)] for place in tokens.offsets.tolist())
  title = f"vectors of {tokens.values.shape[1]} values"
  return TextRow(title, words, [], tokens.values)


def row_of_pair(first: str, second: str, p: float) -> TextRow:
  """Returns the row of two texts, of which the second follows with P = p."""
  a, b = first.split(), second.split()
  words = ("[CLS]", *a, "[SEP]", *b, "[SEP]")
  marks = [
    Mark(0, 0, f"follows {p:.1%}", figure.colour(0)),
    Mark(1, len(a) + 1, "A"),
    Mark(len(a) + 2, len(words) - 1, "B"),
  ]
  yes, no = (-math.log(max(x, 1e-30)) for x in (p, 1 - p))
  title = f"NSP loss {yes:.3f} if B follows A, {no:.3f} if B is random"
  return TextRow(title, words, marks)


def row_of_answer(text: str, answer: Mapping[str, Any]) -> TextRow:
  """Returns the row of an answer of `maskedlm predict --json`.

  Raises:
    ConfigError: it has no tags, entities or label.
  """
  words = tuple(answer.get("tokens") or ("[CLS]", *text.split()))
  if "tags" in answer:
    shares = answer.get("probabilities") or [math.nan] * len(words)
    indices = range(len(words))
    spans = list(zip(indices, indices, answer["tags"], shares, strict=True))
  elif "entities" in answer:
    spans = [
      (x["words"][0], x["words"][1] - 1, x["type"], x["score"])
      for x in answer["entities"]
    ]
  elif "label" in answer:
    spans = [(0, 0, answer["label"], answer.get("probability", math.nan))]
  else:
    raise ConfigError(
      f"an answer with {', '.join(answer)} can't be drawn above a text: "
      "expected a model of labels of texts, tags of words, or spans."
    )
  names = [name for name in dict.fromkeys(x[2] for x in spans) if name != "O"]
  colours = {name: figure.colour(i) for i, name in enumerate(names)}
  marks = [
    Mark(i, j, f"{name} {p:.0%}".removesuffix(" nan%"), colours.get(name, GREY))
    for i, j, name, p in spans
  ]
  return TextRow(text, words, marks)


def draw_row(path: str, row: TextRow) -> None:
  """Draws the row, in as many lines as its words need.

  Raises:
    ConfigError: there are no words, or more than LIMIT; or see
      figure.open_figure.
    StorageError: see figure.open_figure.
  """
  words, marks = row.words, row.marks
  if not 0 < len(words) <= LIMIT:
    raise ConfigError(
      f"the text has {len(words)} words; expected 1 to {LIMIT} to draw."
    )
  sizes = [LETTER * len(word) + SPACE for word in words]
  for mark in marks:  # The last word makes room for the mark's text.
    wanted = 0.8 * LETTER * len(mark.text) + SPACE  # Smaller letters.
    sizes[mark.last] += max(wanted - sum(sizes[mark.first : mark.last + 1]), 0)
  # Marks stand above those that they contain.
  levels = [
    sum(m.first <= x.first and x.last <= m.last for x in marks) for m in marks
  ]
  lines = break_lines(sizes, WIDTH - 0.4)
  title = scatter.clip(row.title, int((WIDTH - 0.4) / LETTER))
  widths = [sum(sizes[i] for i in line) for line in lines]
  width = 0.4 + max(LETTER * len(title), *widths)
  strip = 0 if row.vectors is None else STRIP + 0.1
  line_height = WORD + strip + LEVEL * max(levels, default=0)
  height = 0.6 + line_height * len(lines)
  text = "".join([row.title, *words, *(mark.text for mark in marks)])
  with figure.open_figure(path, width=width, height=height, text=text) as fig:
    axes = figure.add_axes(fig, (0, 0, width, height))
    axes.set_axis_off()
    axes.text(0.2, height - 0.25, title, size=10, va="center")
    for number, line in enumerate(lines):
      y = height - 0.5 - line_height * (number + 1) + WORD / 2
      ends = 0.2 + np.cumsum([0, *(sizes[i] for i in line)])
      for i, x in zip(line, (ends[:-1] + ends[1:]) / 2, strict=True):
        box = {"boxstyle": "round,pad=0.25", "fc": "#eeeeee", "ec": "none"}
        axes.text(x, y, words[i], size=8, ha="center", va="center", bbox=box)
        if row.vectors is not None:
          _draw_vector(axes, row.vectors, i, (x, y + 0.2))
      for mark, level in zip(marks, levels, strict=True):
        inside = [k for k, i in enumerate(line) if mark.first <= i <= mark.last]
        if inside:
          sides = (ends[inside[0]] + 0.06, ends[inside[-1] + 1] - 0.06)
          _draw_mark(axes, mark, sides, y + strip + LEVEL * level - 0.07)
    axes.set(xlim=(0, width), ylim=(0, height), aspect="auto")  # In inches.


def _draw_mark(axes, mark: Mark, sides: tuple[float, float], y: float) -> None:
  """Draws a bracket between two sides, and the text above it."""
  x = np.repeat(sides, 2)
  axes.plot(x, [y - 0.05, y, y, y - 0.05], color=mark.colour)
  text = {"size": 7, "color": mark.colour, "ha": "center"}
  axes.text(x.mean(), y + 0.03, mark.text, **text)


def _draw_vector(axes, vectors, i: int, bottom: tuple[float, float]) -> None:
  """Draws a vector as a patch of its values, blue above 0, red below."""
  x, y = bottom
  largest = float(np.abs(vectors).max()) or 1.0
  values = np.full(-(-vectors.shape[1] // ACROSS) * ACROSS, np.nan)
  values[: vectors.shape[1]] = vectors[i]
  colours = {"cmap": "RdBu", "vmin": -largest, "vmax": largest}
  extent = (x - 0.12, x + 0.12, y, y + STRIP)
  axes.imshow(values.reshape(-1, ACROSS), extent=extent, **colours)
