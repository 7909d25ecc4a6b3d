"""Draws a token-to-token map of every attention head."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskedlm.inference.plots import figure, scatter

LIMIT = 64  # The most tokens with readable labels.
COLUMNS = 4  # Maps in a row, for a single layer.
LINE = 0.135  # Inches per label.
TITLE_LETTER = 0.07  # Inches.
TITLE, GAP = 0.26, 0.14  # Inches above a map, and between maps.
# Field of attention_maps.Attention -> what its values are.
VALUES = {
  "weights": "share of the attention",
  "scores": "score before the softmax",
}


def colours(values_name: str, shown: np.ndarray) -> dict[str, Any]:
  """Returns matplotlib's options for the colours of all values `shown`.

  Weights begin with 0; scores are blue above 0 and red below, -inf is blank.
  """
  if values_name == "weights":
    return {"cmap": "Blues", "vmin": 0, "vmax": float(shown.max())}
  largest = float(np.abs(shown[np.isfinite(shown)]).max()) or 1.0
  return {"cmap": "RdBu", "vmin": -largest, "vmax": largest}


def draw_attention(
  path: str,
  tokens: Sequence[str],
  layers: Sequence[tuple[str, np.ndarray]],
  *,
  values_name: str,
  title: str,
) -> None:
  """Draws the heads of some layers; each of several layers gets a row.

  Args:
    tokens: [l].
    layers: (name, values [H, l, l]: head, from, to) of each.
    values_name: what the values are, of VALUES.
  """
  length, H = len(tokens), max(len(heads) for _, heads in layers)
  columns = H if len(layers) > 1 else min(COLUMNS, H)
  maps = [
    (i // columns, i % columns, f"{name}, head {i % H + 1}", heads[i % H])
    for row, (name, heads) in enumerate(layers)
    for i in range(row * H, row * H + len(heads))
  ]
  rows = maps[-1][0] + 1
  side = max(length * LINE, 1.2)
  label = 0.35 + 0.07 * max(map(len, tokens))
  width = label + columns * (side + GAP) + 0.85
  height = 0.4 + rows * (side + TITLE + GAP) + label
  shown = np.concatenate([heads.ravel() for _, heads in layers])
  scale = colours(values_name, shown)
  title = scatter.clip(title, int(width / TITLE_LETTER))
  text = "".join([*tokens, title])
  with figure.open_figure(path, width=width, height=height, text=text) as fig:
    fig.text(0.15 / width, 1 - 0.25 / height, title, size=10, va="center")
    for row, column, name, values in maps:
      left = label + column * (side + GAP)
      bottom = label + (rows - 1 - row) * (side + TITLE + GAP)
      axes = figure.add_axes(fig, (left, bottom, side, side))
      image = axes.imshow(values, **scale)
      figure.set_title(axes, name, width=side)
      axes.grid(False)
      axes.spines[:].set_visible(True)
      axes.spines[:].set_color("#bbbbbb")
      ticks = {"ticks": range(length), "labels": []}
      axes.set_xticks(**ticks)
      axes.set_yticks(**ticks)
      axes.tick_params(length=0, labelsize=7)
      # All maps have the same labels, shown only at the left and the bottom.
      if column == 0:
        axes.set_yticks(range(length), tokens)
        axes.set_ylabel("this token ...")
      if (row + 1, column) not in {at[:2] for at in maps}:
        axes.set_xticks(range(length), tokens, rotation=90)
        axes.set_xlabel("... attends to this one")
    bottom = label + (rows - 1) * (side + TITLE + GAP)
    bar = figure.add_axes(fig, (width - 0.72, bottom, 0.12, side))
    fig.colorbar(image, cax=bar, label=VALUES[values_name])
    bar.grid(False)
