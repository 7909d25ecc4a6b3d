"""The flags of pictures of points, `plot instances|vectors|senses`."""

import dataclasses

from maskedlm.cli import shared
from maskedlm.cli.flags import flag
from maskedlm.core.errors import ConfigError
from maskedlm.runtime import console, output_options


@dataclasses.dataclass(frozen=True)
class Scattered:
  """Where a picture of points is drawn."""

  out: str | None = shared.out("The picture.", shared.PICTURES)
  html: str | None = shared.out("The page.", (".html",))

  def check(self) -> None:
    if not self.out and not self.html:
      raise ConfigError(
        "give --out=FILE.png for a picture, or --html=FILE.html."
      )

  def draw(self, plot) -> None:
    """Draws a Scatter."""
    from maskedlm.inference.plots import figure, html_page, scatter

    if self.out:
      scatter.draw_scatter(self.out, plot)
      print(f"{self.out}: {plot.title}")
      if lacking := figure.fonts(scatter.visible_text(plot))[1]:
        console.warn(
          f"no installed font has {lacking[:20]!r}: boxes in the picture; "
          "install fonts, such as fonts-noto and fonts-noto-cjk, or use --html."
        )
    if self.html:
      page = html_page.render_page(plot)
      output_options.write_text(self.html, page, option="--html")
      print(f"{self.html}: {plot.title}")


def print_groups(plot) -> None:
  """Prints how many points each colour of a Scatter has."""
  for group in plot.groups:
    print(f"  {len(group.points):5}  {group.label}")


@dataclasses.dataclass(frozen=True)
class Projected:
  """Which points are drawn, and where."""

  projection: str = flag(
    "pca",
    "How vectors become points; umap needs the extra `umap`.",
    choices=("pca", "umap"),
  )
  limit: int = flag(
    500,
    "The most points to draw; of more, equally many of each colour (file, "
    "label, sense or word) at random.",
    low=2,
  )

  def check(self) -> None:
    if self.projection == "umap":
      from maskedlm.inference.vectors import projection

      projection.load_umap()

  def project(self, checkpoint, sample, vectors, total, *, what, how):
    """Returns the Scatter of instances with vectors [n, C].

    Args:
      sample: the instances to draw.
      total: how many there are to draw from.
      what, how: what they are, and how their vectors were made.
    """
    from maskedlm.inference.plots import figure, instances
    from maskedlm.inference.plots.scatter import Scatter
    from maskedlm.inference.vectors import projection

    projected = projection.PROJECTIONS[self.projection](vectors)
    count = f"{len(sample):,}"
    if total > len(sample):
      count = f"{count} of {total:,}"
    (name,) = figure.short_names([checkpoint])
    return Scatter(
      title=f"{count} {what}",
      subtitle=f"{name}, {how}, {self.projection.upper()}",
      axes=projected.axes,
      has_unit=projected.has_unit,
      groups=instances.group_by_label(sample, projected.points),
    )
