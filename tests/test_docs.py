"""Options, files and sections that docs, configs and programs name exist."""

import itertools
import pathlib
import re
import shlex
import sys

from helpers.repository import ROOT
from maskedlm.cli import frame, verbs
from maskedlm.config import defaults as configs
from maskedlm.finetune import config as finetune_configs
from maskedlm.pretraining import objectives
from maskedlm.training.checkpoints import resume

PAGES = [
  *(ROOT / name for name in ("README.md", "CHANGELOG.md", "launch/README.md")),
  *sorted((ROOT / "docs").rglob("*.md")),
]
PROGRAMS = [
  path
  for folder in ("maskedlm", "configs", "launch", "benchmarks")
  for path in sorted((ROOT / folder).rglob("*"))
  if path.suffix in (".py", ".sh", ".sbatch")
]


def found(paths, pattern):
  """Yields (file, group 1) of every match in the files."""
  for path in paths:
    for name in re.findall(pattern, path.read_text()):
      yield path.relative_to(ROOT), name


def prose(page: pathlib.Path) -> str:
  """Returns the page without its code blocks."""
  return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def sections(page: pathlib.Path) -> set[str]:
  """Returns the anchors of a page's headings, as GitHub makes them."""
  headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
  return {
    re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    for heading in headings
  }


def test_options():
  made = [configs.default(name) for name in objectives.names()]
  made += map(finetune_configs.default, finetune_configs.task_names())
  flat = [resume.flatten(config.to_dict()) for config in made]
  assert {"features", "spans"} < {config.get("task.kind") for config in flat}
  # Two placeholders; and a preset, which replaces the whole optimizer.
  known = {"a.b", "section.option", "optimizer"}.union(*flat)
  known.add("objective.summary_weight")  # Of the program that a page shows.
  pattern = r"--config\.([a-z_0-9]+(?:\.[a-z_0-9]+)*)(?![\w.])"
  wrong = [x for x in found([*PAGES, *PROGRAMS], pattern) if x[1] not in known]
  assert wrong == []


def test_links():
  for page in PAGES:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
      if link.startswith(("http://", "https://")):
        continue
      name, _, section = link.partition("#")
      target = (page.parent / name).resolve() if name else page
      assert target.exists(), (page, link)
      assert not section or section in sections(target), (page, link)


def test_files():
  folders = "maskedlm|configs|tests|benchmarks|launch|docs"
  for page, name in found(PAGES, rf"`((?:{folders})/[\w./*]+)`"):
    assert list(ROOT.glob(name)), (page, name)
  for path, name in found(PROGRAMS, r"\bdocs/[\w/]+\.(?:md|json)"):
    assert (ROOT / name).is_file(), (path, name)


def test_every_extra_is_in_the_table():
  setup = (ROOT / "setup.py").read_text().split("extras_require=")[1]
  page = (ROOT / "docs" / "getting-started" / "installation.md").read_text()
  table = [row.split("|")[1] for row in page.splitlines() if row[:1] == "|"]
  names = re.findall(r"`(\w+)`", " ".join(table))
  assert sorted(names) == sorted(re.findall(r'^    "(\w+)": \[', setup, re.M))


def test_generated_pages_are_current():
  """If not, run `python docs/generate.py`."""
  sys.path.insert(0, str(ROOT / "docs"))
  import generate

  for name, make_page in generate.PAGES.items():
    if name.endswith("cli.md") and sys.version_info[:2] != (3, 11):
      continue  # Other versions of argparse format --help differently.
    assert (ROOT / name).read_text() == make_page(), name


def shell_words(block):
  """Yields the words of each line of a block of shell."""
  block = re.sub(r"<<'?(\w+)'?\n.*?\n\1\n", "\n", block, flags=re.DOTALL)
  text = ""
  for line in block.replace("\\\n", " ").splitlines():
    text += line
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
      yield list(lexer)
    except ValueError:  # A quote goes on.
      text += "\n"
    else:
      text = ""


def shell_blocks(page):
  """Yields the commands of each block of shell, without what they print."""
  for kind, block in re.findall(
    r"```(sh|console)\n(.*?)```", page.read_text(), re.DOTALL
  ):
    shown = re.findall(r"^\$ ((?:.*\\\n)*.*)", block, re.MULTILINE)
    yield block if kind == "sh" else "\n".join(shown)


def commands():
  """Yields (page, words) of every `maskedlm ...` in a block of shell."""
  for page in PAGES:
    for block in shell_blocks(page):
      for words in shell_words(block):
        ends = [i for i, w in enumerate(words) if set(w) <= {*"<>|&;()"}]
        for begin, end in itertools.pairwise([-1, *ends, len(words)]):
          own = words[begin + 1 : end]
          if "maskedlm" in own[:-1]:
            yield page.relative_to(ROOT), own[own.index("maskedlm") + 1 :]


def test_commands():
  """Each has a verb and flags that are there."""
  found = list(commands())
  assert len(found) > 150
  for page, words in found:
    if words[0].startswith("--"):
      continue
    called, argv = verbs.find(words)
    cls = verbs.load(called)
    parser = frame.make_parser(cls, called)
    try:
      _, more = parser.parse_known_args(frame.normalise(cls, argv))
    except SystemExit:
      raise AssertionError((page, words)) from None
    unknown = [w for w in more if w.startswith("-")]
    wrong = [w for w in unknown if not re.match(r"--(config|beam)\b", w)]
    assert not wrong, (page, words)
