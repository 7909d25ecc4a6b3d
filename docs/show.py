"""Makes what the pages show of the quickstart's model: output and pictures.

  maskedlm pretrain --config=quickstart
  python docs/show.py runs/quickstart

First the notebook is run, which makes runs/small and runs/returns. Then, in
each page, a ```console block becomes what its commands ("$ ...") print, and
```pycon blocks what their lines (">>> ...") give. They run in a folder that has
the model as runs/quickstart, beside the notebook's. A picture that a command
draws replaces the one of that name in docs/assets/.
tests/test_show.py runs the pages with models that aren't trained.
"""

import argparse
import contextlib
import doctest
import io
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
NOTEBOOK = "getting-started/first-hour.ipynb"
BLOCK = re.compile(r"(?<=^```)(console|pycon)\n(.*?)(?=^```$)", re.M | re.S)


def has_blocks(page: pathlib.Path) -> bool:
  """Returns whether a page shows what something prints."""
  return bool(BLOCK.search(page.read_text("utf-8")))


def show(page: pathlib.Path) -> int:
  """Rewrites the blocks of a page; returns how many there are.

  Raises:
    CalledProcessError: a command failed.
    Exception: a line of Python failed, with an error that is not maskedlm's.
  """
  names: dict = {}  # Of all blocks of ```pycon.

  def rerun(block: re.Match[str]) -> str:
    kind, text = block.groups()
    shown = run_commands(text) if kind == "console" else run_lines(text, names)
    return f"{kind}\n{shown}"

  text, count = BLOCK.subn(rerun, page.read_text("utf-8"))
  page.write_text(text, "utf-8")
  return count


def run_commands(text: str) -> str:
  """Returns the commands of a block, and what they print in this folder."""
  shown = ""
  for command in re.findall(r"^\$ ((?:.*\\\n)*.*)", text, re.M):
    ended = subprocess.run(
      command, shell=True, check=True, stdout=subprocess.PIPE, text=True
    )
    shown += f"$ {command}\n{ended.stdout}"
  return shown


def run_lines(text: str, names: dict) -> str:
  """Returns the lines of a block, and what they give."""
  shown = ""
  for example in doctest.DocTestParser().get_examples(text):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
      try:
        exec(compile(example.source, "<page>", "single"), names)
      except (ValueError, RuntimeError) as error:
        kind = type(error)
        if not kind.__module__.startswith("maskedlm."):
          raise
        print(f"{kind.__module__}.{kind.__name__}: {error}")
    first, *rest = example.source.splitlines()
    lines = [f">>> {first}", *(f"... {line}" for line in rest)]
    shown += "\n".join(lines) + f"\n{printed.getvalue()}"
  return shown


def run_notebook(path: pathlib.Path) -> None:
  """Runs the notebook's cells, and keeps what they give."""
  import nbclient
  import nbformat

  notebook = nbformat.read(path, as_version=4)
  nbclient.NotebookClient(notebook).execute()
  for cell in notebook.cells:
    cell.metadata.clear()  # When each cell ran.
    if cell.cell_type == "code":
      # Not the log: stderr, and what training prints.
      cell.outputs = [x for x in cell.outputs if x.output_type != "stream"]
  nbformat.write(notebook, path)


def main() -> None:
  """Shows the model on all pages, and in the notebook."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("run", type=pathlib.Path)
  parser.add_argument("--docs", type=pathlib.Path, default=DOCS)
  args = parser.parse_args()
  docs = args.docs.resolve()
  with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(args.run, pathlib.Path(folder, "runs", "quickstart"))
    os.chdir(folder)
    run_notebook(docs / NOTEBOOK)
    for page in sorted(docs.rglob("*.md")):
      if has_blocks(page):
        print(f"{page.relative_to(docs)}: {show(page)} blocks", flush=True)
    for picture in pathlib.Path().glob("*.png"):
      shutil.copy(picture, docs / "assets" / picture.name)
      print(f"assets/{picture.name}", flush=True)


if __name__ == "__main__":
  main()
