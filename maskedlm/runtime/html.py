"""HTML pages: the frame and the style of `inspect --html`, plots and the demo.

The colours follow the system, light or dark.
"""

import html

escape = html.escape

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #fbfaf8;
  --card: #ffffff;
  --ink: #1d2126;
  --soft: #5c6570;
  --line: #dedbd5;
  --accent: #2b5fb4;
  --tint: #e8effa;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15181c;
    --card: #1d2126;
    --ink: #e7e5e1;
    --soft: #a2abb5;
    --line: #363c44;
    --accent: #86b1f5;
    --tint: #25344c;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  max-width: 54rem;
  margin: 0 auto;
  padding: 2rem 1.25rem 4rem;
  background: var(--ground);
  color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -0.02em; }
small { color: var(--soft); font-size: 0.875rem; font-weight: 400; }
mark { padding: 0.1em 0.35em; border-radius: 5px; background: var(--tint);
  color: inherit; }
button {
  padding: 0.55rem 1rem;
  border: 1px solid var(--line);
  border-radius: 8px;
  background: var(--card);
  color: var(--ink);
  font: inherit;
  cursor: pointer;
}
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""
# A stand-alone page may use its own script and style, and load nothing.
_POLICY = (
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)


def frame(title: str, body: str, *, head: str) -> str:
  """Returns an HTML document of a plain title, and HTML."""
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    f"<title>{escape(title)}</title>{head}</head>"
    f"<body>{body}</body></html>\n"
  )


def one_file(title: str, body: str, *, style: str, script: str = "") -> str:
  """Returns an HTML document that loads nothing and can be sent as one file.

  The title is plain text and the body HTML; the style follows STYLE, and the
  script, JavaScript, runs after the body.
  """
  policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
  body += f"<script>{script}</script>" if script else ""
  return frame(title, body, head=f"{policy}<style>{STYLE}{style}</style>")
