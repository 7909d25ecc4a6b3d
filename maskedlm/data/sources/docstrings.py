"""Reads the docstrings of installed modules, prose found on every machine.

This is the source "docstrings:" of reader.py. The .py files of the standard
library and of the installed packages are parsed, never imported; a module is a
document. Code, doctests, tables and markup are dropped, and what remains must
read as English sentences. In order: files, docstrings, paragraphs, prose.
"""

import ast
import gc
import inspect
import itertools
import os
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence

from maskedlm.core.errors import CorpusError, did_you_mean
from maskedlm.data import workers

# Folders of tests (deliberately odd text) and of copies of other packages.
_SKIPPED = re.compile(
  r"(idle_)?tests?|_?vendor(ed)?|third_party|extern(als?)?"
  r"|site-packages|dist-packages|__pycache__|\..*"
)
GROUP = 64  # Modules that a worker parses at a time.
_SKIPPED_FILE = re.compile(r"test_.*|.*_test|conftest|.*_pb2")


def find_modules(names: list[str]) -> list[str]:
  """Returns the .py files of the named packages, or of all if `names` is empty.

  Raises:
    CorpusError: a package is not installed.
  """
  if not names:
    return [path for root in _roots() for path in _walk(root)]
  paths = [path for name in names for path in _package(name)]
  return list(dict.fromkeys(paths))


def _roots() -> list[str]:
  """Returns the folders of the standard library and site-packages."""
  installed = [
    path
    for path in sys.path
    if os.path.basename(path) in ("site-packages", "dist-packages")
  ]
  folders = [sysconfig.get_path("stdlib"), *installed]
  return list(dict.fromkeys(map(os.path.realpath, folders)))


def _package(name: str) -> list[str]:
  known = set()
  for root in _roots():
    path = os.path.join(root, *name.split("."))
    if os.path.isfile(path + ".py"):
      return [path + ".py"]
    if os.path.isdir(path):
      return _walk(path)
    known |= {entry.removesuffix(".py") for entry in os.listdir(root)}
  raise CorpusError(
    f'corpus.source="docstrings:{name}": no package {name!r} is installed'
    f"{did_you_mean(name, known)}; install it, or name none to read all."
  )


def _walk(root: str) -> list[str]:
  paths = []
  for folder, folders, files in os.walk(root):
    folders[:] = sorted(f for f in folders if not _SKIPPED.fullmatch(f))
    paths += [
      os.path.join(folder, file)
      for file in sorted(files)
      if file.endswith(".py") and not _SKIPPED_FILE.fullmatch(file[:-3])
    ]
  return paths


def read_documents(
  paths: Sequence[str], *, report: Counter, num_workers: int = 1
) -> Iterator[list[str]]:
  """Yields each module's paragraphs of prose and updates the report's counts.

  Repeated paragraphs are dropped: packages repeat their boilerplate and contain
  copies of one another. Modules are parsed by num_workers processes, unless
  they are few.
  """
  groups = [paths[i : i + GROUP] for i in range(0, len(paths), GROUP)]
  few = len(groups) < 4 * num_workers
  modules = workers.ordered_map(
    _make_reader, (), groups, num_workers=1 if few else num_workers
  )
  seen = set()
  for texts, counts in itertools.chain.from_iterable(modules):
    report.update(counts)
    document = []
    for paragraph in texts:
      if paragraph in seen:
        report["repeated paragraphs of docstrings dropped"] += 1
      else:
        seen.add(paragraph)
        document.append(paragraph)
    if document:
      yield document


def _make_reader():
  return lambda paths: list(map(_read_module, paths))


def _read_module(path: str) -> tuple[list[str], dict[str, int]]:
  """Returns the prose in a file's docstrings, and counts for the report."""
  counts: Counter[str] = Counter()
  texts = []
  for docstring in _docstrings(path, counts):
    for paragraph in paragraphs(docstring):
      text = clean_prose(paragraph)
      if text:
        texts.append(text)
      else:
        counts["paragraphs of docstrings dropped as not prose"] += 1
  return texts, counts


def _docstrings(path: str, counts: Counter) -> list[str]:
  try:
    with open(path, "rb") as file:
      source = file.read()
    counts["files read"] += 1
    counts["bytes read"] += len(source)
    if b'"""' not in source and b"'''" not in source:
      return []  # No long docstring; parsing it would cost the most time.
    return _collect(_parse(source))
  except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
    counts["modules dropped because they do not parse"] += 1
    return []


def _parse(source: bytes) -> ast.Module:
  """Parses without warnings, since the code is not the user's.

  The garbage collector is off while parsing: the many new nodes trigger it, and
  with jax in memory it takes as long as the parsing itself.
  """
  collects = gc.isenabled()
  gc.disable()
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      return ast.parse(source)
  finally:
    if collects:
      gc.enable()


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _collect(node) -> list[str]:
  docstrings = []
  if isinstance(node, _DOCUMENTED):
    docstrings.append(ast.get_docstring(node, clean=False) or "")
  for child in node.body:
    if isinstance(getattr(child, "body", None), list):
      docstrings += _collect(child)
  return docstrings


# A line that is not running text: blank, a rule under a heading, a heading
# ("Args:"), a directive, a table, a comment, or numpydoc's "x : int".
_BREAK = re.compile(
  r"$|[-=~^\"*#+.`_:']{3,}$|[A-Z][\w ]{0,30}:$|\.\. |[#|+$%<@\\.\]})]"
  r"|[\w.*, ]+ : "
)
_FENCE = re.compile(r"```|~~~")
# Lines indented under such a line are code; under a note they are text.
_CODE = re.compile(
  r"(?!\.\. (note|warning|important|tip|caution|hint|attention)::)"
  r"(\.\. |.*::$)"
)
# The marker of a list item, ":param x:" or "x (int):"; its text is kept.
_ENTRY = re.compile(
  r"(?:[-*+•]|\(?(?:\d{1,2}|[a-zA-Z])[.)]|:\w[^:`]*:"
  r"|\*{0,2}\w+(?:, \*{0,2}\w+)*(?: \([^)]*\))?:)(?:\s+|$)"
)


def paragraphs(docstring: str) -> Iterator[str]:
  """Yields the running text of each paragraph or list item of a docstring.

  A change of indentation ends a paragraph, except for the continuation lines of
  a list item.
  """
  words: list[str] = []
  indent, hangs = 0, False
  for depth, text in itertools.chain(_text_lines(docstring), [(0, "")]):
    entry = _ENTRY.match(text)
    moved = depth != indent and not (hangs and depth > indent)
    if words and (entry or moved or not text):
      yield " ".join(words)
      words = []
    text = text[entry.end() :] if entry else text
    if text:
      words.append(text)
    indent, hangs = depth, bool(entry)


def _text_lines(docstring: str) -> Iterator[tuple[int, str]]:
  """Yields (indentation, text) for each line; "" if it is not running text."""
  fenced = doctest = False
  code = None  # Lines indented deeper than this are code.
  for line in inspect.cleandoc(docstring).split("\n"):
    text = line.strip()
    depth = len(line) - len(line.lstrip())
    fence = bool(_FENCE.match(text))
    fenced ^= fence
    doctest = bool(text) and (doctest or text.startswith(">>>"))
    if text and code is not None and depth <= code:
      code = None
    dropped = fence or fenced or doctest or code is not None
    yield (0, "") if dropped or _BREAK.match(text) else (depth, text)
    if code is None and _CODE.match(text):
      code = depth


# Inline markup and its replacement.
_MARKUP = (
  (re.compile(r"\[([^]]+)\]\([^)\s]+\)"), r"\1"),  # [text](address)
  (re.compile(r"`([^`<]+?)\s*<[^`>]*>`_*"), r"\1"),  # `text <address>`_
  (re.compile(r":[\w:+.-]+:`[~!]?([^`]+)`"), r"\1"),  # :role:`name`
  (re.compile(r"`+([^`]+)`+_*"), r"\1"),
  (
    re.compile(r"(?<![\w*])\*{1,2}(?=\S)([^*]+?)(?<=\S)\*{1,2}(?![\w*])"),
    r"\1",
  ),
  (re.compile(r"\s*\[[\w#*]+\]_"), ""),  # A footnote reference.
)
_MARKED = re.compile(r"[`*\[]")
_ENDS = re.compile(r"[.!?][\"')]*$")
# The last sentence introduces dropped text ("For example:").
_ANNOUNCES = re.compile(r"(.*[.!?][\"')]*) [A-Z][^.!?]*:$")
_WORD = re.compile(
  r"(?<!\S)[\"'(]*[A-Za-z]+(?:[-'/][A-Za-z]+)*[)\"']*[.,;:!?]?[)\"']*(?!\S)"
)
_FUNCTION_WORD = re.compile(
  r"\b(?:the|an?|of|to|is|are|and|in|for|be|with|or|this|that|if|by|from|it"
  r"|as|on|not|can|will|which|when|was|at)\b",
  re.IGNORECASE,
)


def clean_prose(paragraph: str) -> str:
  """Returns a paragraph as plain English sentences, or "" if it is not prose.

  Prose has at least 4 words, starts with a capital letter and ends with ".",
  "!" or "?"; at least 3/4 of its words consist of letters only, and 1/8 are
  function words. Code, lists of names, formulas and other languages fail one of
  these tests.
  """
  text = " ".join(paragraph.split())
  if _MARKED.search(text):
    for markup, replacement in _MARKUP:
      text = markup.sub(replacement, text)
  if not _ENDS.search(text):
    match = _ANNOUNCES.match(text)
    text = match[1] if match else ""
  count = text.count(" ") + 1
  if count < 4 or not (text[0].isupper() or text[0] in "\"'("):
    return ""
  if "\\" in text or "{" in text:
    return ""
  if len(_WORD.findall(text)) < 0.75 * count:
    return ""
  return text if len(_FUNCTION_WORD.findall(text)) >= count / 8 else ""
