"""Renders the self-contained page of `maskedlm inspect --html`."""

from collections.abc import Sequence

from maskedlm.planning.inspect import schedules
from maskedlm.planning.inspect.schedules import Curve
from maskedlm.runtime import html

STYLE = """
pre, p.row { padding: 0.7em; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
pre { white-space: pre-wrap; }
p.row { font-family: ui-monospace, monospace; font-size: 0.8125rem;
  overflow-wrap: anywhere; }
.mask, .random, .keep, .label { color: #222; }
.mask { background: #f8c9c4; } .random { background: #fbe3a4; }
.keep { background: #cfe8c9; } .label { background: #c9def8; }
s { color: #666; }
svg { width: 100%; height: auto; } svg text { font-size: 12px;
  fill: var(--soft); }
"""
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 200, 70, 30  # Curve and margins, in pixels.


def render_page(name: str, sections, rows, curves: Sequence[Curve]) -> str:
  """Returns the page of a run as HTML.

  Sections are (title, lines), and rows lists of (text, shown, treatment).
  """
  parts = [f"<h1>{html.escape(name)}: what will be trained</h1>"]
  if rows:  # First, as they show most at a glance.
    parts.append(
      "<h2>Sample rows</h2><p>Predicted tokens: <span class=mask>masked</span>,"
      " <span class=random>replaced by another</span>, <span class=keep>kept"
      "</span>; what the model sees stands behind what was there. Where tokens"
      " were moved, the <span class=label>label</span> stands behind what it "
      "sees.</p>"
    )
  parts += [f'<p class="row" dir="auto">{_row(row)}</p>' for row in rows]
  for title, lines in sections:
    text = html.escape("\n".join(lines))
    parts.append(f"<h2>{html.escape(title)}</h2><pre>{text}</pre>")
  for curve in curves:
    title = html.escape(curve.name.capitalize())
    parts.append(f"<h2>{title}</h2>{_svg(curve)}")
  return html.one_file(name, "".join(parts), style=STYLE)


def _row(row) -> str:
  parts = []
  for text, shown, treatment in row:
    text, shown = html.escape(text), html.escape(shown)
    if treatment:
      space = " " if text.startswith(" ") else ""
      token = f"<bdi>{text.strip()}</bdi>"
      if treatment != "label":  # The token was deleted.
        token = f"<s>{token}</s>"
      text = f"{space}<span class={treatment}>{token} <bdi>{shown}</bdi></span>"
    parts.append(text)
  return "".join(parts)


def _svg(curve: Curve) -> str:
  last, top = curve.points[-1][0] or 1, schedules.bounds(curve)[1] or 1.0
  points = " ".join(
    f"{LEFT + (WIDTH - LEFT - 10) * tokens / last:.1f},"
    f"{10 + (HEIGHT - BOTTOM - 10) * (1 - value / top):.1f}"
    for tokens, value in curve.points
  )
  base = HEIGHT - BOTTOM
  return (
    f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    f'aria-label="{html.escape(curve.name)} over the tokens">'
    f'<path d="M{LEFT} 10V{base}H{WIDTH - 10}" fill="none" stroke="#999"/>'
    f'<polyline points="{points}" fill="none" stroke="#2b6cb0" '
    'stroke-width="2"/>'
    f'<text x="{LEFT - 6}" y="14" text-anchor="end">{top:.3g}</text>'
    f'<text x="{LEFT - 6}" y="{base}" text-anchor="end">0</text>'
    f'<text x="{LEFT}" y="{HEIGHT - 10}">0</text>'
    f'<text x="{WIDTH - 10}" y="{HEIGHT - 10}" text-anchor="end">{last:,} '
    "tokens</text></svg>"
  )
