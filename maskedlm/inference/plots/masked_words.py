"""Draws what a masked model predicts for the words that a text hides.

After Figure 11.4 of Jurafsky & Martin: the tokens as the model reads them, and
for each hidden one its probability among the most probable tokens.
"""

import itertools
import math
from collections.abc import Sequence

from maskedlm.inference.fill_mask import MaskedText, MaskedToken
from maskedlm.inference.plots import figure

COLUMNS = 4  # Panels beside each other.
PANEL, BAR = 2.0, 0.17  # Inches: a panel's width, the height of a bar.
GAP = 0.75  # Inches between panels, room for the words at their left.
LETTER, SPACE, LINE = 0.085, 0.2, 0.5  # Inches, of the row of tokens.
TRUE, OTHER = figure.COLOURS[1], figure.COLOURS[0]


def draw_masked(path: str, masked_text: MaskedText, *, title: str) -> None:
  """Draws the tokens and a panel for each hidden one."""
  columns = min(COLUMNS, len(masked_text.masked))
  width = max(0.3 + columns * (PANEL + GAP), 5.0)
  sizes = [LETTER * len(token) + SPACE for token in masked_text.tokens]
  lines = break_lines(sizes, width - 0.4)
  bars = [_bars(token) for token in masked_text.masked]
  side = BAR * max(map(len, bars))
  rows = math.ceil(len(bars) / columns)
  height = 0.25 + LINE * len(lines) + 0.3 + rows * (side + 0.55)
  words = [word for token_bars in bars for word, _, _ in token_bars]
  text = "".join([*masked_text.tokens, *words, title, "−…"])
  with figure.open_figure(path, width=width, height=height, text=text) as fig:
    fig.text(0.2 / width, 1 - 0.2 / height, title, size=10, va="center")
    _draw_tokens(fig, masked_text, lines, width, height)
    top = height - 0.6 - LINE * len(lines) - 0.3
    largest = max(p for token_bars in bars for _, p, _ in token_bars)
    for i, (token, token_bars) in enumerate(
      zip(masked_text.masked, bars, strict=True)
    ):
      row, column = divmod(i, columns)
      left = GAP + 0.1 + column * (PANEL + GAP)
      bottom = top - (row + 1) * side - row * 0.55
      axes = figure.add_axes(fig, (left, bottom, PANEL - 0.2, side))
      _draw_panel(axes, token, token_bars, largest)


def _bars(token: MaskedToken) -> list[tuple[str, float, bool]]:
  """Returns (token, probability, whether it is the true one), best first."""
  bars = [(word, p, word == token.token) for word, p in token.best]
  if not any(is_true for _, _, is_true in bars):
    bars.append((token.token, token.probability, True))
  return bars


def break_lines(sizes: Sequence[float], width: float) -> list[list[int]]:
  """Returns lines of the indices of words, each at most `width` inches."""
  lines: list[list[int]] = [[]]
  used = 0.0
  for i, needed in enumerate(sizes):
    if used + needed > width and lines[-1]:
      lines.append([])
      used = 0.0
    lines[-1].append(i)
    used += needed
  return lines


def _draw_tokens(fig, masked_text: MaskedText, lines, width, height) -> None:
  """Writes the tokens as read; the true one stands above a hidden one."""
  true = {token.position: token.token for token in masked_text.masked}
  for number, line in enumerate(lines):
    y = 1 - (0.75 + LINE * number) / height
    widths = [LETTER * len(masked_text.tokens[i]) + SPACE for i in line]
    begins = itertools.accumulate(widths, initial=0.2)
    for i, begin, size in zip(line, begins, widths, strict=False):
      x = (begin + size / 2) / width
      edge = TRUE if i in true else "none"
      box = {"boxstyle": "round,pad=0.25", "fc": "#eeeeee", "ec": edge}
      text = {"size": 8, "ha": "center", "va": "center"}
      fig.text(x, y, masked_text.tokens[i], bbox=box, **text)
      if i in true:
        fig.text(x, y + 0.22 / height, true[i], color=TRUE, **text)


def _draw_panel(axes, token: MaskedToken, bars, largest: float) -> None:
  """Draws a panel; all have the same scale, to the largest probability."""
  axes.barh(
    range(len(bars)),
    [p for _, p, _ in bars],
    color=[TRUE if is_true else OTHER for _, _, is_true in bars],
    height=0.75,
  )
  axes.set_yticks(range(len(bars)), [word for word, _, _ in bars])
  axes.set_ylim(len(bars) - 0.5, -0.5)
  axes.set_xlim(0, 1.3 * largest)
  for place, (_, p, _) in enumerate(bars):
    axes.text(p + 0.02 * largest, place, f"{p:.1%}", size=7, va="center")
  title = f"−log P({token.token}) = {token.format_loss()}"
  figure.set_title(axes, title, width=PANEL)
  axes.set_xticks([])
  axes.tick_params(length=0, labelsize=7.5)
  axes.spines["bottom"].set_visible(False)
  axes.grid(False)
