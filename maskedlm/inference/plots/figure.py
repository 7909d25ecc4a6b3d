"""What the pictures share: figures, colours, fonts, and where they are saved.

The one place that imports matplotlib, which is an extra.
"""

import contextlib
import functools
import logging
import pathlib
import warnings
from collections.abc import Iterator, Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import output_files, storage_errors

# Okabe & Ito's colours, which the colour-blind can tell apart (but yellow,
# which is too light for white paper). Shapes say the same once more.
COLOURS = (
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#444444",
)
SHAPES = ("o", "s", "^", "D", "v")  # 5 and 7: no pair of both comes back soon.
SUFFIXES = (".png", ".svg", ".pdf")
DPI = 150
LARGEST = 8000  # Pixels of a side; larger figures have fewer an inch.
STYLE = {
  "font.size": 8,
  "text.parse_math": False,  # A $ in a text is a dollar.
  "axes.titlesize": 9,
  "axes.titlelocation": "left",
  "axes.spines.top": False,
  "axes.spines.right": False,
  "axes.grid": True,
  "axes.axisbelow": True,
  "grid.color": "#e6e6e6",
  "grid.linewidth": 0.6,
  "legend.frameon": False,
  "svg.hashsalt": "maskedlm",  # The same picture is the same file.
}
BASE_FONT = "DejaVu Sans"  # It comes with matplotlib.
# Boxes for everything, and formulas': not fonts to read.
_NO_TEXT = ("Last Resort", "STIX", "cm", "DejaVu Math")


def colour(index: int) -> str:
  """The colour of the index-th of several things."""
  return COLOURS[index % len(COLOURS)]


def shape(index: int) -> str:
  """The marker of the index-th of several things."""
  return SHAPES[index % len(SHAPES)]


def check(path: str, *, option: str = "--out") -> None:
  """That a picture can be made there, before anything slow begins.

  Raises:
    ConfigError: no matplotlib; see outputs.check.
  """
  _library()
  output_files.check(path, option=option, suffixes=SUFFIXES)


@contextlib.contextmanager
def figure(
  path: str, *, width: float, height: float, text: str = ""
) -> Iterator:
  """A matplotlib Figure, which is saved at the end of the block.

  Args:
    path: ends in one of SUFFIXES.
    width: in inches of DPI pixels; of fewer, where it would be too large.
    height: likewise.
    text: what will be written, so that there are fonts for it.
  """
  library = _library()
  with library.rc_context({**STYLE, "font.family": fonts(text)}):
    made = library.figure.Figure(figsize=(width, height), facecolor="white")
    yield made
    with warnings.catch_warnings():
      # Who draws texts tells what is `unreadable`, in one line.
      warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
      try:
        made.savefig(path, dpi=min(DPI, LARGEST / max(width, height)))
      except OSError as error:
        raise storage_errors.unwritable(path, error) from error


def place(figure, box: Sequence[float]):
  """Axes at box = (left, bottom, width, height), in inches."""
  width, height = figure.get_size_inches()
  left, bottom, w, h = box
  return figure.add_axes((left / width, bottom / height, w / width, h / height))


def legend_height(count: int) -> float:
  """Inches of a legend of count lines, and of the room around it."""
  return 0.17 * count + 0.3


def legend(figure, handles, labels, *, left: float, top: float) -> None:
  """What lines mean, with its upper left corner there, in inches."""
  width, height = figure.get_size_inches()
  figure.legend(
    handles,
    labels,
    loc="upper left",
    bbox_to_anchor=(left / width, top / height),
    borderaxespad=0,
    borderpad=0,
    handlelength=4,
  )


def fonts(text: str) -> list[str]:
  """Families for a text: the usual one, and those that have what it lacks."""
  return _fonts(text)[0]


def unreadable(text: str) -> str:
  """The characters of a text that no installed font has, each once."""
  return _fonts(text)[1]


def _fonts(text: str) -> tuple[list[str], str]:
  chosen = [BASE_FONT]
  left = {c for c in text if c.isprintable() and not c.isspace()}
  left -= _characters(_base_path())
  for name, path in _families() if left else ():
    if found := left & _characters(path):
      chosen.append(name)
      left -= found
  return chosen, "".join(sorted(left))


@functools.cache
def _base_path() -> str:
  from matplotlib import font_manager

  return font_manager.findfont(BASE_FONT)


@functools.cache
def _families() -> list[tuple[str, str]]:
  """(family, file) of the upright fonts that are installed, sans first."""
  from matplotlib import font_manager

  families: dict[str, str] = {}
  for font in font_manager.fontManager.ttflist:
    if font.style == "normal" and not font.name.startswith(_NO_TEXT):
      families.setdefault(font.name, font.fname)
  return sorted(
    families.items(), key=lambda family: ("Sans" not in family[0], family[0])
  )


@functools.cache
def _characters(path: str) -> frozenset[str]:
  from matplotlib import font_manager

  charmap = font_manager.get_font(path).get_charmap()
  return frozenset(chr(code) for code in charmap if code < 0x110000)


def _library():
  try:
    import matplotlib
    import matplotlib.figure
  except ImportError:
    raise ConfigError(
      "pictures need matplotlib: pip install 'maskedlm[plot]'."
    ) from None
  # Not every font has every weight: nothing to be told of.
  logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
  return matplotlib


def names(paths: Sequence[str]) -> list[str]:
  """Of each path the last parts that tell it from the others; each differs."""
  parts = [pathlib.Path(path).resolve().parts for path in paths]
  count = 1
  while count < max(map(len, parts)):
    if len({p[-count:] for p in parts}) == len(set(parts)):
      break
    count += 1
  return ["/".join(p[-count:]) for p in parts]
