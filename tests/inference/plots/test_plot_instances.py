"""A word's instances: groups and samples by hand; the picture and the page."""

import json
import re

import numpy as np

from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.plots import html_page, instances
from maskedlm.inference.plots.scatter import Group, Point, Scatter
from maskedlm.inference.word_senses.word_instances import Instance

EVIL = 'the house </script><script>alert(1)</script> & "<b>'


def made_of(*groups):
  return Scatter("A <title>", "layer 2", ("across", "up"), True, list(groups))


def test_groups_are_sorted_by_size():
  labels = ["few", "many", "many", "few", "many"]
  text = Text("the old house ran", file="data/en.txt", line=7)
  found = [Instance(text, 8, 13, "house", label) for label in labels]
  made = instances.group_by_label(found, np.arange(10.0).reshape(5, 2))
  assert [(each.label, len(each.points)) for each in made] == [
    ("many", 3),
    ("few", 2),
  ]
  first = Point(2.0, 3.0, "the old ", "house", " ran", "en.txt:7")
  assert made[0].points[0] == first


def stored(html):
  (data,) = re.findall(r'id="points">(.*?)</script>', html, re.DOTALL)
  return json.loads(data)


def test_the_page_loads_nothing_and_runs_no_text():
  evil = Point(0.0, 1.0, EVIL, "<i>", "é\u2028 中", "f<s>:1")
  html = html_page.render_page(
    made_of(Group(EVIL, [evil, evil._replace(x=3.0)]))
  )
  # No address, no attribute and no rule that could load anything.
  assert not re.search(r"//|(src|href|srcset|action)=|url\(|@import", html)
  # The data and the script, no third element.
  assert html.count("<script") == html.count("</script>") == 2
  assert "alert(1)</script>" not in html and "<b>" not in html
  assert "<i>" not in html and "A &lt;title&gt;" in html
  assert stored(html)[0] == [EVIL, EVIL, "<i>", "é\u2028 中", "f<s>:1"]
  assert "default-src 'none'" in html


def test_the_verb(workdir, text, tmp_path, size, verb):
  out, html = tmp_path / "house.png", tmp_path / "house.html"
  text.write_text(f"{text.read_text()}\n{EVIL}\n")
  other = tmp_path / "de.txt"
  other.write_text("ein house , the HOUSE und mehr\n")
  command = ["plot", "instances", f"--checkpoint={workdir}", "--word", "House"]
  files = [f"--out={out}", f"--html={html}"]
  title = "9 instances of “House”"
  assert verb(*command, "--data", text, other, *files).out.splitlines() == [
    f"{out}: {title}",
    f"{html}: {title}",
    "      7  en",
    "      2  de",
  ]
  width, height = size(out)
  # 150 pixels an inch; few and short sentences make it smaller than the most.
  assert 900 < width < 2047 and 700 < height < 1110
  assert out.stat().st_size > 30_000
  points = stored(html.read_text())
  assert len(points) == 9 and title in html.read_text()
  assert [p[2] for p in points[-2:]] == ["house", "HOUSE"]
  assert points[-1][0] == "de" and points[-1][4] == "de.txt:1"
  assert any(p[3].startswith(" </script><script>") for p in points)
  # The page is reproducible, whatever other outputs are written.
  before = html.read_text()
  verb(*command, "--data", text, other, files[1])
  assert html.read_text() == before


def test_texts_by_their_labels(workdir, tmp_path, verb):
  """A table's rows have labels; the lines of a text have their file's name."""
  table, lines = tmp_path / "a.tsv", tmp_path / "en.txt"
  rows = ["text\tlabel", "the old house\tgood", "a house\tbad", "the\tgood"]
  table.write_text("\n".join([*rows, ""]))
  lines.write_text("a house ran\nthe old\n")
  out, html = tmp_path / "v.png", tmp_path / "v.html"
  argv = ["plot", "vectors", f"--checkpoint={workdir}", f"--out={out}"]
  argv += [f"--html={html}", "--data", table, lines]
  title = "5 texts"
  assert verb(*argv).out.splitlines() == [
    f"{out}: {title}",
    f"{html}: {title}",
    "      2  good",
    "      2  en",
    "      1  bad",
  ]
  points = stored(html.read_text())
  assert [p[1:] for p in points[:2]] == [
    ["", "", "the old house", "a.tsv:2"],
    ["", "", "the", "a.tsv:4"],
  ]


def test_words_and_senses(workdir, tmp_path, verb):
  data = tmp_path / "few.tsv"
  bank = "the\t_\t_\t_\nbanks\tbank\tNOUN\t{}\n\n"
  data.write_text("# doc d0\n" + bank.format("s.1") + bank.format("s.2") * 2)
  command = ["plot", "instances", f"--checkpoint={workdir}", f"--data={data}"]
  command.append(f"--html={tmp_path}/a.html")
  shown = verb(
    *command, "--word", "bank", "--layers", "-1,-2"
  ).out.splitlines()[1:]
  assert shown == ["      2  noun s.2", "      1  noun s.1"]
  page_text = (tmp_path / "a.html").read_text()
  assert "tiny_encoder, mean of layers 2, 1, PCA" in page_text
  printed = verb(*command, "--word", "bank", "river", "--limit=2")
  assert "2 of 3 instances of “bank”, “river”" in printed.out
  assert "bank: noun s.2" in printed.out
  assert printed.err == f"“river”: no occurrence with a sense in {data}.\n"
