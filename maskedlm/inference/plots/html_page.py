"""Draws a word's instances as an HTML page that shows each point's sentence.

The page is a single file that loads nothing else: the points are SVG, with a
short script.
"""

from collections.abc import Iterator

from maskedlm.core.measured import to_json
from maskedlm.inference.plots import figure
from maskedlm.inference.plots.scatter import Scatter, count_of
from maskedlm.runtime import html

WIDTH, HEIGHT, BORDER = 860, 620, 34  # Pixels; BORDER is inside.
CONTEXT = 400  # Characters of a text on each side of the word.
SHAPES = {  # matplotlib's markers as SVG paths, about 9 pixels wide.
  "o": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
  "s": "M-4-4h8v8h-8z",
  "^": "M0-5L5 4H-5z",
  "D": "M0-5.5L5.5 0L0 5.5L-5.5 0z",
  "v": "M0 5L5-4H-5z",
}
STYLE = """
h1 { font-size: 1.25rem; } p { margin: 0.2em 0 0.8em; color: var(--soft); }
.points { width: 100%; height: auto; display: block; background: #fcfcfc;
  border: 1px solid var(--line); }
.points text { font-size: 13px; fill: #555; }
.dot { stroke: #fff; stroke-width: 0.7; opacity: 0.85; cursor: pointer;
  outline: none; }
.dot:hover, .dot:focus { stroke: #000; stroke-width: 1.6; opacity: 1; }
#legend { display: flex; flex-wrap: wrap; gap: 0.3em 0.6em; margin: 0.8em 0; }
#legend button { display: flex; align-items: center; gap: 0.4em;
  padding: 0.1em 0.5em; font-size: 0.875rem; text-align: start; }
#legend button[aria-pressed=false] { opacity: 0.4; }
#legend svg { width: 14px; height: 14px; }
#tip { position: fixed; max-width: min(30em, 90vw); padding: 0.5em 0.7em;
  background: var(--card); border: 1px solid var(--soft); border-radius: 8px;
  box-shadow: 0 2px 8px #0003; pointer-events: none;
  overflow-wrap: anywhere; }
#tip div { unicode-bidi: plaintext; }
"""
SCRIPT = """
const points = JSON.parse(document.getElementById('points').textContent);
const tip = document.getElementById('tip');
const [about, text] = tip.children;
function show(dot, x, y) {
  const [label, before, word, after, where] = points[dot.dataset.i];
  const mark = document.createElement('mark');
  mark.textContent = word;
  text.replaceChildren(before, mark, after);
  about.textContent = label + ' \\u00b7 ' + where;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(x + 14, innerWidth - box.width - 8);
  const above = y + 14 + box.height > innerHeight;
  tip.style.left = Math.max(left, 8) + 'px';
  tip.style.top = Math.max(above ? y - 14 - box.height : y + 14, 8) + 'px';
}
function hide() { tip.hidden = true; }
for (const dot of document.querySelectorAll('.dot')) {
  dot.addEventListener('pointermove', e => show(dot, e.clientX, e.clientY));
  dot.addEventListener('pointerleave', hide);
  dot.addEventListener('focus', () => {
    const box = dot.getBoundingClientRect();
    show(dot, box.right, box.bottom);
  });
  dot.addEventListener('blur', hide);
}
for (const button of document.querySelectorAll('button')) {
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', on);
    document.getElementById('group' + button.value).style.display =
      on ? '' : 'none';
  });
}
"""


def render_page(scatter: Scatter) -> str:
  """Returns the page as HTML."""
  title, subtitle = html.escape(scatter.title), html.escape(scatter.subtitle)
  points = [
    (
      group.label,
      _clip(point.before[::-1])[::-1],
      point.word,
      _clip(point.after),
      point.where,
    )
    for group in scatter.groups
    for point in group.points
  ]
  # Without "<", no text can end the script element.
  data = to_json(points).replace("<", "\\u003c")
  body = (
    f"<h1>{title}</h1><p>{subtitle}. Point at an instance to read it; click a "
    "label to hide its points.</p>"
    f'<svg class="points" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    f'aria-label="{title}">{"".join(_axes(scatter))}'
    f"{''.join(_dots(scatter))}</svg>"
    f'<div id="legend">{"".join(_legend(scatter))}</div>'
    '<div id="tip" role="status" hidden><small></small><div></div></div>'
    f'<script type="application/json" id="points">{data}</script>'
  )
  return html.one_file(scatter.title, body, style=STYLE, script=SCRIPT)


def _dots(scatter: Scatter) -> Iterator[str]:
  """Yields a <g> for each group; points are numbered over all groups."""
  points = [p for group in scatter.groups for p in group.points]
  left, right = min(p.x for p in points), max(p.x for p in points)
  low, high = min(p.y for p in points), max(p.y for p in points)
  # One scale for both axes, so that distances are true.
  scale = min(
    (WIDTH - 2 * BORDER) / max(right - left, 1e-12),
    (HEIGHT - 2 * BORDER) / max(high - low, 1e-12),
  )
  i = 0
  for number, group in enumerate(scatter.groups):
    yield f'<g id="group{number}" fill="{figure.colour(number)}">'
    for p in group.points:
      x = WIDTH / 2 + scale * (p.x - (left + right) / 2)
      y = HEIGHT / 2 - scale * (p.y - (low + high) / 2)
      yield (
        f'<path class="dot" data-i="{i}" tabindex="0" '
        f'transform="translate({x:.1f} {y:.1f})" '
        f'd="{SHAPES[figure.marker(number)]}"/>'
      )
      i += 1
    yield "</g>"


def _axes(scatter: Scatter) -> Iterator[str]:
  """Yields the labels of the axes."""
  across, up = map(html.escape, scatter.axes)
  yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{across}'
  yield "</text>"
  yield (
    f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" '
    f'text-anchor="middle">{up}</text>'
  )


def _legend(scatter: Scatter) -> Iterator[str]:
  """Yields a button for each group."""
  for number, group in enumerate(scatter.groups):
    yield (
      f'<button value="{number}" aria-pressed="true">'
      f'<svg viewBox="-7 -7 14 14" aria-hidden="true"><path '
      f'fill="{figure.colour(number)}" d="{SHAPES[figure.marker(number)]}"/>'
      f"</svg><bdi>{html.escape(group.label)}</bdi>{count_of(scatter, group)}"
      "</button>"
    )


def _clip(text: str) -> str:
  """Returns the text, cut to CONTEXT characters."""
  return text if len(text) <= CONTEXT else text[: CONTEXT - 1] + "…"
