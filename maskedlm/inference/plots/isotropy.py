"""Draws how similar vectors are, layer by layer, for `maskedlm plot isotropy`.

The data are tables of `maskedlm vectors isotropy`, one for each checkpoint.
"""

import itertools
from collections.abc import Mapping

from maskedlm.core.errors import DataError
from maskedlm.core.open_file import open_file
from maskedlm.core.parse_json import parse_json
from maskedlm.inference.plots import figure
from maskedlm.runtime import storage_errors

Table = Mapping[str, Mapping[str, list[float]]]  # measure -> treatment -> [n].
# Measure -> (title, label of the axis).
MEASURES = {
  "anisotropy": ("Anisotropy", "expected cosine of two vectors (0 = none)"),
  "spearman": (
    "Agreement with human scores",
    "Spearman's rank correlation of cosines",
  ),
}
LINES = ("-", "--", ":", "-.")  # Line styles of treatments.
WIDTH, HEIGHT = 4.6, 3.0  # A panel's size in inches.


def read_table(path: str) -> Table:
  """Reads a table: measure -> treatment -> values of layers 0 to n - 1.

  Raises:
    DataError: the file can't be read or has another format.
  """
  expected = "expected a file of `maskedlm vectors isotropy --out=FILE`."
  try:
    with open_file(path) as file:
      layers = parse_json(file.read())
    table = {
      measure: {
        name: [float(layer[measure][name]) for layer in layers]
        for name in layers[0][measure]
      }
      for measure in MEASURES
    }
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise DataError(f"{path}: {error.strerror}; {expected}") from None
  except (ValueError, KeyError, IndexError, TypeError, AttributeError):
    raise DataError(f"{path}: not a table of layers; {expected}") from None
  if not table["anisotropy"]:
    raise DataError(f"{path}: the layers have no anisotropy; {expected}")
  return {name: values for name, values in table.items() if values}


def draw_isotropy(path: str, tables: Mapping[str, Table]) -> None:
  """Draws tables by name, with a colour per table and a line per treatment."""
  from matplotlib import ticker

  measures = [m for m in MEASURES if any(m in t for t in tables.values())]
  by_treatment = (x for table in tables.values() for x in table.values())
  treatments = list(dict.fromkeys(itertools.chain(*by_treatment)))
  legend = figure.legend_height(len(tables) + len(treatments))
  width = 0.8 + len(measures) * (WIDTH + 0.8) - 0.4
  height = legend + 0.3 + HEIGHT + 0.5
  text = "".join(tables)
  with figure.open_figure(path, width=width, height=height, text=text) as fig:
    for column, measure in enumerate(measures):
      left = 0.8 + column * (WIDTH + 0.8)
      axes = figure.add_axes(fig, (left, 0.5, WIDTH, HEIGHT))
      title, unit = MEASURES[measure]
      axes.set_title(title)
      axes.set_ylabel(unit)
      axes.set_xlabel("layer (0 = the embeddings)")
      axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
      for i, table in enumerate(tables.values()):
        for j, values in enumerate(table.get(measure, {}).values()):
          line = LINES[j % len(LINES)]
          axes.plot(values, line, **figure.style(i), markersize=4)
    lines = [(name, figure.style(i)) for i, name in enumerate(tables)]
    for j, name in enumerate(treatments):
      style = {"color": "black", "linestyle": LINES[j % len(LINES)]}
      lines.append((name, style))
    figure.add_legend(fig, lines, left=0.8, top=height - 0.1)
