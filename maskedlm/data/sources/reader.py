"""Where text comes from: a source option becomes documents, lists of lines.

`config.corpus.source` is one of
  text:GLOBS       text files; a blank line or a file's end ends a document
  lines:GLOBS      text files; every line that isn't blank is a document
  jsonl:GLOBS      one JSON object a line, its text in `corpus.text_field`
  parquet:GLOBS    Parquet files, their text in the column `corpus.text_field`
  tfds:NAME[:VERSION][:SPLIT][@DATA_DIR]   a TFDS dataset, without TensorFlow
  docstrings:[NAMES]   docstrings of all installed packages, or of those named
GLOBS and NAMES are separated by commas (a path that contains one must be the
only one); a folder stands for every .txt (or .jsonl, .parquet) file under it;
.gz and .zst files are decompressed. SPLIT defaults to "train", DATA_DIR to
where TFDS keeps its data.

Reading is streaming: a file, a line or a document of any length takes bounded
memory. Documents come in the order of the sorted paths. Oddities in the text
are repaired and counted in `report`, under names that the user sees at the end.
A file that can't be read to its end is a CorpusError: a corpus must not
silently lack half of a download.
"""

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.errors import CorpusError, did_you_mean
from maskedlm.data.sources import docstrings, files, parquet, tfds
from maskedlm.data.sources.sentences import cut_text

SOURCE_TYPES = ("text", "lines", "jsonl", "parquet", "tfds", "docstrings")
# Characters; a longer line or document becomes several.
MAX_LINE = 1 << 20
MAX_DOCUMENT = 1 << 22
MAX_RECORD = 1 << 25  # Characters of a JSON line; a longer one is dropped.
RECORD_BYTES = 1 << 12  # Of a TFDS record, about: to cut them to pieces.
_PATIENCE = 1_000  # Records without the text field before giving up.


def read_documents(
  source: str, *, text_field: str, report: Counter
) -> Iterator[list[str]]:
  """Yields the documents of a source as lists of non-empty, stripped lines.

  `report` is added to while they are read.

  Raises:
    CorpusError: at once if the source is misspelt or matches nothing; later if
      a file can't be read; at the end if there was no text.
  """
  if _kind(source) == "tfds":
    records = _tfds(source, text_field)
    found = _tfds_texts(records, source, text_field, report)
  else:
    paths = _paths(source)
    found = _texts(source, paths, text_field, report)
  return _not_empty(_counted(found, report), source, report)


class Piece(NamedTuple):
  """Some of a source's documents, which can be read without the others."""

  paths: tuple[str, ...] = ()  # Of files, or
  records: range = range(0)  # of a TFDS dataset.


def list_pieces(source: str, *, text_field: str, num_bytes: int) -> list[Piece]:
  """Returns the source as pieces of about num_bytes of files, in order.

  A file is never cut, so a larger one is a piece. `docstrings:` is one piece,
  as modules are compared with one another. Raises as `read_documents` does.
  """
  kind = _kind(source)
  if kind == "tfds":
    size = len(_tfds(source, text_field))
    step = max(num_bytes // RECORD_BYTES, 1)
    return [
      Piece(records=range(low, min(low + step, size)))
      for low in range(0, size, step)
    ]
  paths = _paths(source)
  if kind == "docstrings":
    return [Piece(tuple(paths))]
  found, size = [[]], 0
  for path in paths:
    if size >= num_bytes:
      found.append([])
      size = 0
    found[-1].append(path)
    size += os.path.getsize(path)
  return [Piece(tuple(group)) for group in found]


def read_piece(
  source: str, piece: Piece, *, text_field: str, report: Counter
) -> Iterator[list[str]]:
  """Yields the documents of a piece.

  Those of all pieces are the source's, and their reports add up to its report.
  Whether the source holds any text is not checked.
  """
  if _kind(source) == "tfds":
    records = _tfds(source, text_field)
    found = _tfds_texts(records, source, text_field, report, piece.records)
  else:
    found = _texts(source, piece.paths, text_field, report, found=True)
  return _counted(found, report)


def _texts(
  source: str,
  paths: Sequence[str],
  text_field: str,
  report: Counter,
  *,
  found: bool = False,  # A text in this source before.
) -> Iterable[Iterable[str]]:
  """Returns the documents of a source's files, as cleaned lines."""
  kind = _kind(source)
  if kind in ("text", "lines"):
    return (_text if kind == "text" else _each_line)(paths, report)
  if kind == "jsonl":
    return _jsonl(paths, source, text_field, report, found=found)
  if kind == "parquet":
    return _parquet(paths, source, text_field, report)
  found = docstrings.read_documents(paths, report=report)
  return ((_clean(line, report) for line in lines) for lines in found)


def _kind(source: str) -> str:
  kind = source.partition(":")[0]
  if kind not in SOURCE_TYPES:
    raise CorpusError(
      f"corpus.source={source!r}: {kind!r} is no kind of source"
      f"{did_you_mean(kind, SOURCE_TYPES)}; write text:GLOB, lines:GLOB, "
      "jsonl:GLOB, parquet:GLOB, tfds:NAME or docstrings:"
    )
  return kind


def _paths(source: str) -> list[str]:
  """Returns the files of a source, in order."""
  kind, _, spec = source.partition(":")
  if kind == "docstrings":
    return docstrings.find_modules(
      [name for name in map(str.strip, spec.split(",")) if name]
    )
  return files.expand_globs(source, spec, endings=_ENDINGS[kind])


_ENDINGS = {
  "text": (".txt", ".txt.gz", ".txt.zst"),
  "lines": (".txt", ".txt.gz", ".txt.zst"),
  "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
  "parquet": (".parquet",),  # It compresses its pages itself.
}


def _counted(
  found: Iterable[Iterable[str]], report: Counter
) -> Iterator[list[str]]:
  for document in _bounded(found, report):
    report["documents"] += 1
    report["lines"] += len(document)
    report["characters"] += sum(map(len, document))
    if len(document) == 1:
      report["documents of a single line"] += 1
    yield document


def _not_empty(
  found: Iterable[list[str]], source: str, report: Counter
) -> Iterator[list[str]]:
  yield from found
  if not report["documents"]:
    counts = "; ".join(f"{name}: {n}" for name, n in report.items() if n)
    raise CorpusError(
      f"corpus.source={source!r} holds no text; expected at least a line "
      f"({counts}); name files or a dataset with text."
    )


def _bounded(
  found: Iterable[Iterable[str]], report: Counter
) -> Iterator[list[str]]:
  """Yields each document's stripped lines; starts anew at MAX_DOCUMENT."""
  for lines in found:
    document, size = [], 0
    for line in lines:
      if size >= MAX_DOCUMENT:
        report[f"cuts in documents over {MAX_DOCUMENT:,} characters"] += 1
        yield document
        document, size = [], 0
      text = line.strip()
      if text:
        document.append(text)
        size += len(text)
    if document:
      yield document
    else:
      report["empty documents dropped"] += 1


# What no tokenizer should see. Surrogates are what invalid bytes are decoded
# to (files.chunks), and what a lone \ud800 escape of JSON becomes.
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_REPAIRS = (
  ("NUL characters removed", re.compile("\0"), ""),
  ("byte order marks removed", re.compile("\ufeff"), ""),
  (
    "invalid UTF-8 bytes or lone surrogates replaced by U+FFFD",
    re.compile("[\ud800-\udfff]"),
    "\ufffd",
  ),
  ("control characters replaced by a space", _ODD, " "),
)


def _clean(text: str, report: Counter) -> str:
  if not _ODD.search(text):
    return text
  for name, odd, replacement in _REPAIRS:
    text, count = odd.subn(replacement, text)
    if count:
      report[name] += count
  return text


# --- text:, lines: and jsonl: ---


def _text(paths: Iterable[str], report: Counter) -> Iterator[Iterable[str]]:
  for path in paths:
    lines = _lines(files.read_text(path, report), report)
    empty = True
    for blank, document in itertools.groupby(lines, key=_is_blank):
      if not blank:
        empty = False
        yield document
    if empty:
      report["files without text"] += 1


def _each_line(
  paths: Iterable[str], report: Counter
) -> Iterator[Iterable[str]]:
  for document in _text(paths, report):
    for line in document:
      yield [line]


def _is_blank(line: str) -> bool:
  return not line or line.isspace()


def _jsonl(
  paths: Iterable[str],
  source: str,
  text_field: str,
  report: Counter,
  *,
  found: bool = False,  # A text in this source before.
) -> Iterator[Iterable[str]]:
  lacking, fields = 0, {}
  for record in _records(paths, report):
    try:  # Tabs may stand in strings: not strict.
      fields = json.loads(_clean(record, report), strict=False)
    except (ValueError, RecursionError):
      report["broken JSON records dropped"] += 1
      continue
    text = fields.get(text_field) if isinstance(fields, dict) else None
    if isinstance(text, str):
      found = True
      yield _lines([_unix(text)], report)
    else:
      report[f"records dropped without a text in {text_field!r}"] += 1
      lacking += 1
      if lacking >= _PATIENCE and not found:
        break
  if lacking and not found:
    where = f" of the first {lacking:,} records"
    raise _no_text_field(source, text_field, fields, where)


def _no_text_field(
  source: str, text_field: str, fields, where: str = ""
) -> CorpusError:
  names = sorted(fields) if isinstance(fields, dict) else []
  return CorpusError(
    f"corpus.source={source!r}: no text in corpus.text_field={text_field!r}"
    f"{where}{did_you_mean(text_field, names)}; expected a field that holds a"
    f" string; a record has {', '.join(names) or 'no fields'}."
  )


def _records(paths: Iterable[str], report: Counter) -> Iterator[str]:
  """Yields the files' non-blank lines, whole, at most MAX_RECORD long."""
  for path in paths:
    tail = ""
    for chunk in itertools.chain(files.read_text(path, report), ("\n",)):
      *lines, tail = (tail + chunk).split("\n")
      tail = tail[: MAX_RECORD + 1]  # It is too long by then, and dropped.
      for line in lines:
        if len(line) > MAX_RECORD:
          report[f"records dropped over {MAX_RECORD:,} characters"] += 1
        elif not _is_blank(line):
          yield line


def _lines(chunks: Iterable[str], report: Counter) -> Iterator[str]:
  """Yields cleaned lines, long ones in pieces; chunk bounds do not matter."""
  for piece in _pieces(chunks, report):
    yield _clean(piece, report)


def _pieces(chunks: Iterable[str], report: Counter) -> Iterator[str]:
  tail = ""
  for chunk in itertools.chain(chunks, ("\n",)):
    *lines, tail = (tail + chunk).split("\n")
    for line in lines:
      yield from cut_text(line, MAX_LINE, what="lines", report=report)
    *pieces, tail = cut_text(tail, MAX_LINE, what="lines", report=report)
    yield from pieces


def _unix(text: str) -> str:
  return text.replace("\r\n", "\n").replace("\r", "\n")


# --- parquet: and tfds: ---


def _parquet(
  paths: Iterable[str], source: str, text_field: str, report: Counter
) -> Iterator[Iterable[str]]:
  for path in paths:
    report["files read"] += 1
    try:
      if text_field not in (names := parquet.text_columns(path)):
        raise _no_text_field(source, text_field, dict.fromkeys(names))
      for text in parquet.read_texts(path, text_field):
        yield from _document(text, text_field, report)
    except parquet.ParquetError as error:
      raise CorpusError(
        f"{error}; fetch it again or leave it out of corpus.source."
      ) from error


def _tfds(source: str, text_field: str) -> Sequence[dict]:
  """Opens the dataset's records. Raises CorpusError."""
  try:
    records = tfds.open_records(source)
  except tfds.TfdsError as error:
    raise CorpusError(f"corpus.source={error}") from error
  if text_field not in (features := records.dataset_info.features):
    raise _no_text_field(source, text_field, dict(features))
  return records


def _tfds_texts(
  records: Sequence[dict],
  source: str,
  text_field: str,
  report: Counter,
  indices: range | None = None,  # None: all.
) -> Iterator[Iterable[str]]:
  try:
    for record in tfds.read_records(records, source, indices):
      yield from _document(record[text_field], text_field, report)
  except tfds.TfdsError as error:
    raise CorpusError(f"corpus.source={error}") from error


def _document(
  text: bytes | None, text_field: str, report: Counter
) -> Iterator[Iterable[str]]:
  if isinstance(text, bytes):
    report["bytes read"] += len(text)
    yield _lines([_unix(text.decode("utf-8", "surrogateescape"))], report)
  else:
    report[f"records dropped without a text in {text_field!r}"] += 1
