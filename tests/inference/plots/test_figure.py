"""File names, labels and fonts of pictures."""

import sys

import pytest

from maskedlm.cli import main
from maskedlm.inference.plots import figure


@pytest.mark.parametrize("picture", ["attention", "run"])
def test_without_matplotlib(picture, tmp_path, monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  more = ["--checkpoint=x"] if picture == "attention" else []
  command = ["plot", picture, *more, f"--out={tmp_path}/a.png", "x"]
  assert main.main(command) == 2
  expected = (
    "error: a picture needs matplotlib: pip install 'maskedlm[plot]'.\n"
  )
  assert capsys.readouterr().err == expected


def test_pictures_are_reproducible(tmp_path):
  for name in ("a", "b"):
    with figure.open_figure(tmp_path / f"{name}.svg", width=2, height=1) as fig:
      fig.text(0.5, 0.5, "$1 and $2")
  a, b = ((tmp_path / f"{name}.svg").read_text() for name in ("a", "b"))
  assert a.partition("<defs>")[2] == b.partition("<defs>")[2] != ""


def test_short_names_distinguish_paths(tmp_path):
  assert figure.short_names([f"{tmp_path}/x/", f"{tmp_path}/y"]) == ["x", "y"]
  paths = [f"{tmp_path}/a/run", f"{tmp_path}/b/run", f"{tmp_path}/b/z"]
  assert figure.short_names(paths) == ["a/run", "b/run", "b/z"]
  assert figure.short_names(["x", "x"]) == ["x", "x"]


def test_fonts_for_a_text(monkeypatch):
  assert figure.fonts("Zürich – Ж\n\t…")[0] == ["DejaVu Sans"]
  assert figure.fonts("Zürich ж")[1] == ""
  characters = {"west.ttf": frozenset("東西a"), "a.ttf": frozenset("a")}
  known = figure.drawable
  monkeypatch.setattr(
    figure, "drawable", lambda path: characters.get(path) or known(path)
  )
  families = [("A", "a.ttf"), ("West", "west.ttf")]
  monkeypatch.setattr(figure, "font_families", lambda: families)
  assert figure.fonts("a西b東")[0] == ["DejaVu Sans", "West"]
  assert figure.fonts("a西水\nb東中")[1] == "中水"


def test_the_list_of_pictures(capsys):
  assert main.main(["plot"]) == 2
  assert main.main(["plot", "--help"]) == 0
  assert "  instances  " in capsys.readouterr().out
