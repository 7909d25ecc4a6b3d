"""Opens and saves figures, with the colours and fonts of all pictures.

matplotlib, an optional dependency, is only imported when needed.
"""

import contextlib
import functools
import importlib
import logging
import pathlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from maskedlm.runtime import extras, output_files, storage_errors

# Okabe & Ito's colours for the colour-blind, without yellow, which is too light
# on white. Markers repeat the distinction.
COLOURS = (
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#444444",
)
MARKERS = ("o", "s", "^", "D", "v")  # 5 markers and 7 colours make 35 pairs.
DPI = 150
LARGEST = 8000  # Pixels per side; larger figures have fewer pixels per inch.
STYLE = {
  "font.size": 8,
  "text.parse_math": False,  # $ is an ordinary character.
  "axes.titlesize": 9,
  "axes.titlelocation": "left",
  "axes.spines.top": False,
  "axes.spines.right": False,
  "axes.grid": True,
  "axes.axisbelow": True,
  "grid.color": "#e6e6e6",
  "grid.linewidth": 0.6,
  "legend.frameon": False,
  "svg.hashsalt": "maskedlm",  # Makes files reproducible.
  "pdf.fonttype": 42,  # Fonts as publishers ask for them: not of type 3.
}
BASE_FONT = "DejaVu Sans"  # Part of matplotlib.
# Fonts of fallback boxes and of formulas.
_NO_TEXT = ("Last Resort", "STIX", "cm", "DejaVu Math")


def colour(index: int) -> str:
  """Returns the colour of the index-th of several series."""
  return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
  """Returns the marker of the index-th of several series."""
  return MARKERS[index % len(MARKERS)]


def style(index: int) -> dict[str, Any]:
  """Returns matplotlib's options for the index-th of several series."""
  return {"color": colour(index), "marker": marker(index)}


@contextlib.contextmanager
def open_figure(
  path: str, *, width: float, height: float, text: str = ""
) -> Iterator:
  """Yields a matplotlib Figure, which is saved at the end of the block.

  Args:
    path: ends in .png, .svg or .pdf.
    width, height: in inches of DPI pixels, or of fewer in a large picture.
    text: all text in the picture, for which fonts are chosen.

  Raises:
    ConfigError: matplotlib is missing, or the file can't be written.
    StorageError: the disk is full or unreachable.
  """
  library = load_matplotlib()
  with library.rc_context({**STYLE, "font.family": fonts(text)[0]}):
    figure = library.figure.Figure(figsize=(width, height), facecolor="white")
    yield figure
    with warnings.catch_warnings():
      # Callers report missing glyphs (`fonts`).
      warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
      try:
        with output_files.whole_file(path) as file:
          figure.savefig(
            file,
            format=pathlib.Path(path).suffix[1:].lower(),
            dpi=min(DPI, LARGEST / max(width, height)),
          )
      except OSError as error:
        raise storage_errors.unwritable(path, error) from error


def add_axes(figure, box: Sequence[float]):
  """Returns new axes at box = (left, bottom, width, height), in inches."""
  width, height = figure.get_size_inches()
  left, bottom, w, h = box
  return figure.add_axes((left / width, bottom / height, w / width, h / height))


def legend_height(count: int) -> float:
  """Returns the height, in inches, of a legend with `count` lines."""
  return 0.17 * count + 0.3


def add_legend(
  figure, lines: Sequence[tuple[str, dict]], *, left: float, top: float
) -> None:
  """Adds a legend of (label, style) with a corner at (left, top), in inches."""
  from matplotlib.lines import Line2D

  width, height = figure.get_size_inches()
  figure.legend(
    [Line2D([], [], **style) for _, style in lines],
    [label for label, _ in lines],
    loc="upper left",
    bbox_to_anchor=(left / width, top / height),
    borderaxespad=0,
    borderpad=0,
    handlelength=4,
  )


def fonts(text: str) -> tuple[list[str], str]:
  """Returns font families for a text, and the characters that none of them has.

  The base font is the first family.
  """
  from matplotlib import font_manager

  chosen = [BASE_FONT]
  missing = {c for c in text if c.isprintable() and not c.isspace()}
  missing -= drawable(font_manager.findfont(BASE_FONT))
  for name, path in font_families() if missing else ():
    if covered := missing & drawable(path):
      chosen.append(name)
      missing -= covered
  return chosen, "".join(sorted(missing))


@functools.cache
def font_families() -> list[tuple[str, str]]:
  """Returns (family, file) of the installed upright fonts, sans serif first."""
  from matplotlib import font_manager

  families: dict[str, str] = {}
  for font in font_manager.fontManager.ttflist:
    if font.style == "normal" and not font.name.startswith(_NO_TEXT):
      families.setdefault(font.name, font.fname)
  return sorted(
    families.items(), key=lambda family: ("Sans" not in family[0], family[0])
  )


@functools.cache
def drawable(path: str) -> frozenset[str]:
  from matplotlib import font_manager

  charmap = font_manager.get_font(path).get_charmap()
  return frozenset(chr(code) for code in charmap if code < 0x110000)


def load_matplotlib():
  library = extras.load("matplotlib", "plot", "a picture")
  importlib.import_module("matplotlib.figure")
  # Silences warnings about missing font weights.
  logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
  return library


def short_names(paths: Sequence[str]) -> list[str]:
  """Returns the last parts of each path, as few as distinguish all paths."""
  parts = [pathlib.Path(path).resolve().parts for path in paths]
  count = 1
  while count < max(map(len, parts)):
    if len({p[-count:] for p in parts}) == len(set(parts)):
      break
    count += 1
  return ["/".join(p[-count:]) for p in parts]


def set_title(axes, title: str, *, width: float) -> None:
  """Sets a title that is at most about `width` inches wide."""
  # A letter is half as wide as it is high, in points of 1/72 inch.
  axes.set_title(title, pad=4, size=min(9, 140 * width / len(title)))
