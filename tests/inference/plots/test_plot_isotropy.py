"""Curves over layers, from tables of `maskedlm isotropy --out`."""

import json

from maskedlm.inference.plots import isotropy


def table(path, *, spearman=True):
  layers = [
    {
      "layer": n,
      "anisotropy": {"as is": n / 10, "standardised": 0.0},
      "rogue": [[3, 0.5]],
      "spearman": {"as is": 0.5, "standardised": 0.6} if spearman else {},
    }
    for n in range(3)
  ]
  path.write_text(json.dumps(layers))
  return path


def test_read_table(tmp_path):
  made = isotropy.read_table(table(tmp_path / "a.json"))
  assert made["anisotropy"] == {"as is": [0, 0.1, 0.2], "standardised": [0] * 3}
  assert list(made["spearman"]["standardised"]) == [0.6] * 3
  assert "spearman" not in isotropy.read_table(
    table(tmp_path / "b.json", spearman=False)
  )


def test_the_verb(workdir, text, tmp_path, size, verb):
  made = tmp_path / "tiny.json"
  measured = ["isotropy", f"--checkpoint={workdir}", f"--input={text}"]
  verb(*measured, f"--out={made}")
  out = tmp_path / "isotropy.png"
  shown = verb("plot", "isotropy", made, f"--out={out}").out
  assert shown == f"{out}: tiny\n"
  narrow, height = size(out)
  other = table(tmp_path / "other.json")
  verb("plot", "isotropy", made, other, f"--out={out}")
  # A second measure adds a panel; a second table a line in the legend.
  assert size(out)[0] == narrow + round(150 * (4.6 + 0.8))
  assert size(out)[1] - height in (25, 26)
