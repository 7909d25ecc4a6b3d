"""Draws a word's instances: points, and sample sentences beside them.

The sentences are aligned at the word, as in a concordance; numbers link them
to their points.
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.inference.plots import figure
from maskedlm.runtime.console import columns_of

# Sizes in inches.
SIDE, LEAST_SIDE = 6.0, 3.6  # The square of points; smaller with few lines.
LEFT, BOTTOM, TOP = 0.75, 0.55, 0.85  # Its margins.
COLUMN = 0.063  # The width of a letter of the sentences beside it.
LINE, HIGHEST_LINE = 0.19, 0.32  # The height of a sentence.
LINES = 30  # The most lines beside the points, unless there are more groups.
APART = 0.05  # Least distance of numbered points, as a share of the picture.
CONTEXT = 48  # Columns of a sentence on each side of the word.

# The background of a word, as not every font has a bold weight.
MARK = {"facecolor": "#ffe9a8", "edgecolor": "none", "pad": 0.8}


class Point(NamedTuple):
  """An instance of a word and its place in the plane."""

  x: float
  y: float
  before: str  # The text around the word.
  word: str
  after: str
  where: str  # File and line.


class Group(NamedTuple):
  """Instances with the same colour."""

  label: str
  points: list[Point]


class Scatter(NamedTuple):
  """The contents of the picture."""

  title: str
  subtitle: str
  axes: tuple[str, str]
  has_unit: bool  # Whether distances along the axes are meaningful.
  groups: list[Group]


def count_of(scatter: Scatter, group: Group) -> str:
  """Returns the number of points, " (7)"; "" if no group has several."""
  if all(len(other.points) == 1 for other in scatter.groups):
    return ""
  return f" ({len(group.points):,})"


class Sample(NamedTuple):
  """A sentence that is shown."""

  number: int  # From 1.
  point: Point


def choose_samples(groups: Sequence[Group]) -> list[list[Sample]]:
  """Returns samples of each group: first a central one, then distant ones.

  No two samples are within APART of each other. A group that is entirely too
  close to other samples gets a single one, without a number (0).
  """
  lines_left = max(LINES - len(groups), len(groups))  # Lines.
  points = np.array([(p.x, p.y) for g in groups for p in g.points])
  size = max(np.ptp(points, axis=0).max(), 1e-12)
  places = [np.array([(p.x, p.y) for p in g.points]) / size for g in groups]
  taken = np.full((1, 2), np.inf)
  chosen: list[list[int]] = [[] for _ in groups]
  before = -1
  while lines_left != before:  # In turns, so that every group gets some.
    before = lines_left
    for of_group, indices in zip(places, chosen, strict=True):
      if not lines_left:
        break
      distances = np.linalg.norm(of_group[:, None] - taken, axis=2).min(axis=1)
      middle = np.linalg.norm(of_group - np.median(of_group, axis=0), axis=1)
      rank = distances if indices else -middle
      best = int(np.argmax(np.where(distances > APART, rank, -np.inf)))
      if distances[best] > APART:
        indices.append(best)
        lines_left -= 1
        taken = np.concatenate([taken, of_group[best][None]])
  number = itertools.count(1)
  return [
    [Sample(next(number), group.points[i]) for i in indices]
    or [Sample(0, group.points[0])]
    for group, indices in zip(groups, chosen, strict=True)
  ]


def draw_scatter(path: str, scatter: Scatter) -> None:
  """Draws the picture."""
  samples = choose_samples(scatter.groups)
  count = sum(map(len, samples)) + len(samples)
  # Neither half is left empty: few lines are further apart, beside less room.
  side = min(max(count * LINE, LEAST_SIDE), SIDE)
  line = min(max(side / count, LINE), HIGHEST_LINE)
  height = max(BOTTOM + side + TOP, count * line + TOP + 0.2)
  middle, right = _widths(scatter.groups, samples)
  width = LEFT + side + 0.3 + right
  with figure.open_figure(
    path, width=width, height=height, text=visible_text(scatter)
  ) as fig:
    for text, y, size in (
      (scatter.title, 0.3, 11),
      (scatter.subtitle, 0.55, 8),
    ):
      fig.text(LEFT / width, 1 - y / height, text, size=size, va="center")
    box = (LEFT, height - TOP - side, side, side)
    axes = figure.add_axes(fig, box)
    _draw_points(axes, scatter, samples)
    panel = figure.add_axes(fig, (LEFT + side + 0.3, 0, right, height))
    panel.set_axis_off()
    panel.set_xlim(0, right)
    panel.set_ylim(height, 0)  # Inches from the top.
    y = TOP + 0.05
    for i, (group, of_group) in enumerate(
      zip(scatter.groups, samples, strict=True)
    ):
      panel.plot(0.1, y, markersize=5, **figure.style(i))
      label = clip(group.label, 60) + count_of(scatter, group)
      panel.text(0.25, y, label, va="center", weight="bold")
      y += line
      for sample in of_group:
        _draw_sentence(panel, y, middle, sample, figure.colour(i))
        y += line


def _widths(groups: Sequence[Group], samples) -> tuple[float, float]:
  """Returns (where the words begin, the width) of the sentences, in inches."""
  parts = [_in_order(s.point) for of_group in samples for s in of_group]
  before, after = (
    COLUMN * max(columns_of(part) for part in side)
    for side in (
      [before for before, _, _ in parts],
      [word + after for _, word, after in parts],
    )
  )
  labels = 0.8 + 0.08 * max(columns_of(clip(g.label, 60)) for g in groups)
  return 0.3 + before, max(0.3 + before + after + 0.2, labels)


def visible_text(scatter: Scatter) -> str:
  """Returns all text in the picture."""
  parts = [scatter.title, scatter.subtitle, "…"]
  parts += [group.label for group in scatter.groups]
  for of_group in choose_samples(scatter.groups):
    for _, point in of_group:
      before, word, after = contexts(point, CONTEXT)
      parts += [before, word, after]
  return "".join(parts)


def contexts(point: Point, columns: int) -> tuple[str, str, str]:
  """Returns (before, word, after), each cut to at most `columns` columns."""
  before, after = (
    re.sub(r"\s+", " ", text) for text in (point.before, point.after)
  )
  before = clip(before.lstrip()[::-1], columns)[::-1]
  return before, clip(point.word, columns), clip(after.rstrip(), columns)


def clip(text: str, columns: int) -> str:
  """Returns the text, cut to `columns`, at a space if possible, with an "…"."""
  used = 0
  for i, character in enumerate(text):
    used += 1 + (unicodedata.east_asian_width(character) in "WF")
    if used > columns:
      cut = text[: max(i - 1, 0)]
      space = cut.rfind(" ")
      return cut[: space + 1 if space > len(cut) / 2 else None] + "…"
  return text


def _draw_points(axes, scatter: Scatter, samples) -> None:
  style = {"s": 26, "linewidth": 0.4, "edgecolor": "white", "alpha": 0.85}
  for i, group in enumerate(scatter.groups):
    x, y = [p.x for p in group.points], [p.y for p in group.points]
    axes.scatter(x, y, **style, **figure.style(i), zorder=2)
  for i, of_group in enumerate(samples):
    for number, point in of_group:
      if number:
        _draw_number(axes, point.x, point.y, number, figure.colour(i))
  axes.set_xlabel(scatter.axes[0])
  axes.set_ylabel(scatter.axes[1])
  axes.margins(0.06)
  axes.set_aspect("equal", adjustable="datalim")
  if not scatter.has_unit:
    axes.grid(False)
    axes.tick_params(length=0, labelbottom=False, labelleft=False)


def _draw_number(axes, x: float, y: float, number: int, colour: str) -> None:
  """Draws a number in a circle."""
  ring = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "linewidth": 1.3}
  text_style = {"size": 6.5, "ha": "center", "va": "center", "zorder": 3}
  axes.text(x, y, str(number), bbox={**ring, "edgecolor": colour}, **text_style)


def _in_order(point: Point) -> tuple[str, str, str]:
  """Returns the contexts as they are drawn: mirrored if right-to-left."""
  before, word, after = contexts(point, CONTEXT)
  if any(unicodedata.bidirectional(c) in ("R", "AL") for c in word):
    return after, word, before
  return before, word, after


def _draw_sentence(
  panel, y: float, middle: float, sample: Sample, colour: str
) -> None:
  """Draws a sentence, its word at the place `middle`."""
  if sample.number:
    _draw_number(panel, 0.14, y, sample.number, colour)
  before, word, after = _in_order(sample.point)
  text = {"size": 7, "va": "baseline"}
  y += 0.035
  panel.text(middle, y, before, ha="right", **text)
  drawn = panel.text(middle, y, word, weight="bold", bbox=MARK, **text)
  panel.annotate(after, (1, y), xycoords=(drawn, "data"), **text)
