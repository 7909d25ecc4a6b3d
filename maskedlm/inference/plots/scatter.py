"""A word's instances as a picture: points, and beside them sample sentences.

The sentences stand as in a concordance, the word under the word; numbers say
which points they are of.
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.inference.plots import figure as canvas

SIDE = 6.0  # Inches of the square of points,
LEFT, BOTTOM, TOP = 0.75, 0.55, 0.85  # and around it,
PANEL = 6.6  # and of the sentences beside it,
LINE = 0.19  # and of a line of them.
LINES = 30  # As many as look well; each group has one at least.
MOST = 12  # Samples of a group.
APART = 0.05  # Of the picture, between points that have numbers.
CONTEXT = 48  # Columns of a sentence on each side of the word.

# Behind a word: not every font has a bold one.
MARK = {"facecolor": "#ffe9a8", "edgecolor": "none", "pad": 0.8}


class Point(NamedTuple):
  """An instance."""

  x: float
  y: float
  before: str  # The text around the word.
  word: str
  after: str
  where: str  # File and line.


class Group(NamedTuple):
  """Instances of a colour."""

  label: str
  points: list[Point]


class Scatter(NamedTuple):
  """What is drawn."""

  title: str
  subtitle: str
  axes: tuple[str, str]
  has_unit: bool
  groups: list[Group]


class Sample(NamedTuple):
  """A sentence that is shown."""

  number: int  # From 1.
  point: Point


def choose(groups: Sequence[Group]) -> list[list[Sample]]:
  """Samples of each group: near its middle, then far from those before.

  None is APART or nearer to another; a group that lies on others has one that
  has no number (0).
  """
  most = min(max((LINES - len(groups)) // len(groups), 1), MOST)
  every = np.array([(p.x, p.y) for g in groups for p in g.points])
  size = max(np.ptp(every, axis=0).max(), 1e-12)
  places = [np.array([(p.x, p.y) for p in g.points]) / size for g in groups]
  taken = np.full((1, 2), np.inf)
  chosen: list[list[int]] = [[] for _ in groups]
  for turn in range(most):  # By turns, so that each group finds room.
    for of_group, own in zip(places, chosen, strict=True):
      away = np.linalg.norm(of_group[:, None] - taken, axis=2).min(axis=1)
      middle = np.linalg.norm(of_group - np.median(of_group, axis=0), axis=1)
      rank = away if turn else -middle
      best = int(np.argmax(np.where(away > APART, rank, -np.inf)))
      if away[best] > APART:
        own.append(best)
        taken = np.concatenate([taken, of_group[best][None]])
  number = itertools.count(1)
  return [
    [Sample(next(number), group.points[i]) for i in own]
    or [Sample(0, group.points[0])]
    for group, own in zip(groups, chosen, strict=True)
  ]


def draw(path: str, made: Scatter) -> None:
  """Makes the picture."""
  samples = choose(made.groups)
  count = sum(map(len, samples)) + len(samples)
  height = max(BOTTOM + SIDE + TOP, count * LINE + TOP + 0.2)
  width = LEFT + SIDE + 0.3 + PANEL
  with canvas.figure(
    path, width=width, height=height, text=shown(made)
  ) as figure:
    for text, y, size in ((made.title, 0.3, 11), (made.subtitle, 0.55, 8)):
      figure.text(LEFT / width, 1 - y / height, text, size=size, va="center")
    box = (LEFT, height - TOP - SIDE, SIDE, SIDE)
    axes = canvas.place(figure, box)
    _points(axes, made, samples)
    panel = canvas.place(figure, (LEFT + SIDE + 0.3, 0, PANEL, height))
    panel.set_axis_off()
    panel.set_xlim(0, PANEL)
    panel.set_ylim(height, 0)  # In inches from above.
    y = TOP + 0.05
    for i, (each, of_group) in enumerate(
      zip(made.groups, samples, strict=True)
    ):
      style = {"color": canvas.colour(i), "marker": canvas.shape(i)}
      panel.plot(0.1, y, markersize=5, **style)
      label = f"{clip(each.label, 60)} ({len(each.points):,})"
      panel.text(0.25, y, label, va="center", weight="bold")
      y += LINE
      for sample in of_group:
        _line(panel, y, sample, canvas.colour(i))
        y += LINE


def shown(made: Scatter) -> str:
  """All that is written in the picture."""
  parts = [made.title, made.subtitle, "…"]
  parts += [each.label for each in made.groups]
  for of_group in choose(made.groups):
    for _, point in of_group:
      before, word, after = contexts(point, CONTEXT)
      parts += [before, word, after]
  return "".join(parts)


def contexts(point: Point, columns: int) -> tuple[str, str, str]:
  """(before, word, after), where the outer two are cut to so many columns."""
  before, after = (
    re.sub(r"\s+", " ", text) for text in (point.before, point.after)
  )
  before = clip(before.lstrip()[::-1], columns)[::-1]
  return before, clip(point.word, columns), clip(after.rstrip(), columns)


def clip(text: str, columns: int) -> str:
  """A text of so many columns at most, cut at a space; … is where more was."""
  used = 0
  for i, character in enumerate(text):
    used += 1 + (unicodedata.east_asian_width(character) in "WF")
    if used > columns:
      cut = text[: max(i - 1, 0)]
      space = cut.rfind(" ")
      return cut[: space + 1 if space > len(cut) / 2 else None] + "…"
  return text


def _points(axes, made: Scatter, samples) -> None:
  for i, each in enumerate(made.groups):
    axes.scatter(
      [p.x for p in each.points],
      [p.y for p in each.points],
      s=26,
      color=canvas.colour(i),
      marker=canvas.shape(i),
      linewidth=0.4,
      edgecolor="white",
      alpha=0.85,
      zorder=2,
    )
  for i, of_group in enumerate(samples):
    for number, point in of_group:
      if number:
        _number(axes, point.x, point.y, number, canvas.colour(i))
  axes.set_xlabel(made.axes[0])
  axes.set_ylabel(made.axes[1])
  axes.margins(0.06)
  axes.set_aspect("equal", adjustable="datalim")
  if not made.has_unit:
    axes.grid(False)
    axes.tick_params(length=0, labelbottom=False, labelleft=False)


def _number(axes, x: float, y: float, number: int, colour: str) -> None:
  """A number in a ring."""
  ring = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "linewidth": 1.3}
  axes.text(
    x,
    y,
    str(number),
    size=6.5,
    ha="center",
    va="center",
    bbox={**ring, "edgecolor": colour},
    zorder=3,
  )


def _line(panel, y: float, sample: Sample, colour: str) -> None:
  """A sentence, its word in the middle; of right-to-left text, mirrored."""
  if sample.number:
    _number(panel, 0.14, y, sample.number, colour)
  before, word, after = contexts(sample.point, CONTEXT)
  if _is_right_to_left(word):
    before, after = after, before
  middle = 0.3 + (PANEL - 0.3) * 0.48
  text = {"size": 7, "va": "baseline"}
  y += 0.035
  panel.text(middle, y, before, ha="right", **text)
  shown = panel.text(middle, y, word, weight="bold", bbox=MARK, **text)
  panel.annotate(after, (1, y), xycoords=(shown, "data"), **text)


def _is_right_to_left(text: str) -> bool:
  return any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
