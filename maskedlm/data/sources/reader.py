"""Reads the documents of a source, each a list of lines.

`config.corpus.source` is one of
  text:GLOBS       text files; a blank line or a file's end ends a document
  lines:GLOBS      text files; every non-blank line is a document
  jsonl:GLOBS      one JSON object per line, its text in `corpus.text_field`
  parquet:GLOBS    Parquet files, their text in the column `corpus.text_field`
  tfds:NAME[:VERSION][:SPLIT][@DATA_DIR]   a TFDS dataset, without TensorFlow
  fasta:GLOBS      FASTA; a record is a document of one line
  docstrings:[NAMES]   docstrings of all installed packages, or of those named
GLOBS and NAMES are separated by commas (a path that contains one must be the
only item), and may be addresses, hf://datasets/NAME/*.parquet; a folder stands
for every .txt (.jsonl, .parquet, .fa ...) file under it; .gz and .zst files are
decompressed. SPLIT defaults to "train", DATA_DIR to the data folder of TFDS.

Reading is streaming: files, lines and documents of any length take bounded
memory. Documents come in the order of the sorted paths. Oddities in the text
are repaired and counted in `report`, whose names and counts are printed at the
end. A file that can't be read to its end raises CorpusError, so that no corpus
silently lacks half of a download.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.errors import CorpusError, check_name, did_you_mean
from maskedlm.core.parse_json import parse_json
from maskedlm.data.repair import repair
from maskedlm.data.sources import (
  docstrings,
  encodings,
  fasta,
  files,
  parquet,
  tfds,
)
from maskedlm.data.sources.sentences import cut_text, stripped

SOURCE_TYPES = (
  *("text", "lines", "jsonl", "parquet", "tfds", "fasta", "docstrings"),
)
FIELD_TYPES = ("jsonl", "parquet", "tfds")  # Those with corpus.text_field.
# Characters; longer lines and documents are cut.
MAX_LINE = 1 << 20
MAX_DOCUMENT = 1 << 22
MAX_BLANK = 1 << 10  # Blank lines in a row; more are dropped.
MAX_RECORD = 1 << 25  # Characters of a JSON line; longer ones are dropped.
RECORD_BYTES = 1 << 12  # Rough size of a TFDS record, for sizing pieces.
_MAX_WITHOUT_TEXT = 1_000  # Records without the text field before giving up.


class Piece(NamedTuple):
  """A subset of a source's documents that can be read independently."""

  paths: tuple[str, ...] = ()  # Files, or
  records: range = range(0)  # records of a TFDS dataset.


def list_pieces(source: str, *, text_field: str, num_bytes: int) -> list[Piece]:
  """Divides a source into pieces of about num_bytes, in order.

  Files are never split, so a larger one is a piece of its own. `docstrings:` is
  one piece, since modules are compared with one another.

  Raises:
    CorpusError: the source is misspelt, matches nothing or can't be opened.
  """
  source_type = _source_type(source)
  if source_type == "tfds":
    size = len(_tfds(source, text_field))
    step = max(num_bytes // RECORD_BYTES, 1)
    return [
      Piece(records=range(low, min(low + step, size)))
      for low in range(0, size, step)
    ]
  paths = _paths(source)
  if source_type == "docstrings":
    return [Piece(tuple(paths))]
  groups: list[list[str]] = [[]]
  size = 0
  for path in paths:
    if size >= num_bytes:
      groups.append([])
      size = 0
    groups[-1].append(path)
    size += files.size(path)
  return [Piece(tuple(group)) for group in groups]


def read_documents(
  source: str,
  *,
  text_field: str,
  report: Counter,
  piece: Piece | None = None,
  num_workers: int = 1,
  letters: fasta.Letters = fasta.USUAL,
) -> Iterator[list[str]]:
  """Yields the documents of a source as lists of lines, with their indentation.

  The first and the last line of a document are not blank. Docstrings are parsed
  by num_workers processes.

  Args:
    report: updated as the documents are read.
    piece: what to read; None: all. The documents of all pieces are those of the
      source, and their reports add up to its report.
    letters: how the sequences of FASTA are read.

  Raises:
    CorpusError: at once if the source is misspelt or matches nothing; later if
      a file can't be read; at the end if there was no text, unless in a piece.
  """
  paths = piece.paths if piece else _paths(source)
  raw: Iterable[Iterable[str]]
  match _source_type(source):
    case "text":
      raw = _text(paths, report)
    case "lines":
      raw = ([line] for lines in _text(paths, report) for line in lines)
    case "jsonl":
      raw = _jsonl(paths, source, text_field, report, has_text=bool(piece))
    case "tfds":
      dataset = _tfds(source, text_field)
      indices = piece.records if piece else range(len(dataset))
      raw = _tfds_texts(dataset, source, text_field, report, indices)
    case "parquet":
      raw = _parquet(paths, source, text_field, report)
    case "fasta":
      raw = fasta.read_sequences(paths, letters, report)
    case _:
      modules = docstrings.read_documents(
        paths, report=report, num_workers=num_workers
      )
      raw = ((repair(line, report) for line in lines) for lines in modules)
  documents = _count_documents(raw, report)
  return documents if piece else _require_text(documents, source, report)


def _source_type(source: str) -> str:
  name = source.partition(":")[0]
  option = f"corpus.source={source!r} must be TYPE:...; TYPE"
  check_name(option, name, SOURCE_TYPES, CorpusError)
  return name


def _paths(source: str) -> Sequence[str]:
  source_type, spec = _source_type(source), source.partition(":")[2]
  if source_type == "tfds":
    return ()
  if source_type == "docstrings":
    return docstrings.find_modules(
      [name for name in map(str.strip, spec.split(",")) if name]
    )
  return files.expand_globs(
    source,
    spec,
    endings=_ENDINGS[source_type],
    instead=_INSTEAD.get(source_type, ()),
  )


_ENDINGS = {
  "text": (".txt", ".txt.gz", ".txt.zst"),
  "lines": (".txt", ".txt.gz", ".txt.zst"),
  "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
  "parquet": (".parquet",),  # Its pages are compressed inside the file.
  "fasta": fasta.ENDINGS,
}
# C4's names. A folder of .jsonl files may have .json files that describe it.
_INSTEAD = {"jsonl": (".json", ".json.gz", ".json.zst")}


def _count_documents(
  documents: Iterable[Iterable[str]], report: Counter
) -> Iterator[list[str]]:
  for document in _bounded(documents, report):
    lines = stripped(document)
    report["documents"] += 1
    report["lines"] += len(lines)
    report["characters"] += sum(map(len, lines))
    if len(lines) == 1:
      report["documents of a single line"] += 1
    yield document


def _require_text(
  documents: Iterable[list[str]], source: str, report: Counter
) -> Iterator[list[str]]:
  yield from documents
  if not report["documents"]:
    counts = "; ".join(f"{name}: {n}" for name, n in report.items() if n)
    raise CorpusError(
      f"corpus.source={source!r} holds no text; expected at least one line "
      f"({counts}); give files or a dataset with text."
    )


def _bounded(
  documents: Iterable[Iterable[str]], report: Counter
) -> Iterator[list[str]]:
  """Yields the lines of each document, cut at MAX_DOCUMENT.

  Blank lines stay between others only, and MAX_BLANK of them in a row.
  """
  for lines in documents:
    document: list[str] = []
    size = blank = 0
    for line in lines:
      if size >= MAX_DOCUMENT:
        report[f"cuts in documents over {MAX_DOCUMENT:,} characters"] += 1
        yield document
        document, size = [], 0
      if text := line.strip():
        document += [""] * min(blank, MAX_BLANK) * bool(document)
        document.append(line.rstrip())
        size += len(text)
      blank = 0 if text else blank + 1
    if document:
      yield document
    else:
      report["empty documents dropped"] += 1


# --- text:, lines: and jsonl: ---


def _text(paths: Iterable[str], report: Counter) -> Iterator[Iterable[str]]:
  for path in paths:
    chunks = files.read_text(path, report)
    first = next(chunks, "")
    if markup := encodings.name_of_markup(first):
      report[f"{files.WARNING}{path} is {markup}"] += 1
    lines = _lines(itertools.chain((first,), chunks), report)
    is_empty = True
    for blank, document in itertools.groupby(lines, key=_is_blank):
      if not blank:
        is_empty = False
        yield document
    if is_empty:
      report["files without text"] += 1


def _is_blank(line: str) -> bool:
  return not line or line.isspace()


def _jsonl(
  paths: Iterable[str],
  source: str,
  text_field: str,
  report: Counter,
  *,
  has_text: bool,  # Whether some record has the field; other files may.
) -> Iterator[Iterable[str]]:
  lacking, fields = 0, {}
  for record in _records(paths, report):
    try:  # Not strict: strings may contain tabs.
      fields = parse_json(repair(record, report), strict=False)
    except ValueError:
      is_python = record.lstrip().startswith("{'")
      kind = "dicts of Python, not" if is_python else "broken"
      report[f"{kind} JSON records dropped"] += 1
      continue
    text = fields.get(text_field) if isinstance(fields, dict) else None
    if isinstance(text, str):
      has_text = True
      yield _lines([repair(text, report)], report)
    else:
      report[f"records dropped without a text in {text_field!r}"] += 1
      lacking += 1
      if lacking >= _MAX_WITHOUT_TEXT and not has_text:
        break
  if lacking and not has_text:
    where = f" of the first {lacking:,} records"
    raise _no_text_field(source, text_field, fields, where)


def _no_text_field(
  source: str, text_field: str, fields, where: str = ""
) -> CorpusError:
  names = sorted(fields) if isinstance(fields, dict) else []
  return CorpusError(
    f"corpus.source={source!r}: no text in corpus.text_field={text_field!r}"
    f"{where}{did_you_mean(text_field, names)}; expected a field with a string;"
    f" a record has {', '.join(names) or 'no fields'}."
  )


def _records(paths: Iterable[str], report: Counter) -> Iterator[str]:
  """Yields the files' non-blank lines of at most MAX_RECORD characters."""
  for path in paths:
    tail = ""
    for chunk in itertools.chain(files.read_text(path, report), ("\n",)):
      *lines, tail = (tail + chunk).split("\n")
      tail = tail[: MAX_RECORD + 1]  # Too long already, and dropped below.
      for line in lines:
        if len(line) > MAX_RECORD:
          report[f"records dropped over {MAX_RECORD:,} characters"] += 1
        elif not _is_blank(line):
          yield line


def _lines(chunks: Iterable[str], report: Counter) -> Iterator[str]:
  """Yields cleaned lines, long ones cut; a line may span several chunks."""
  cut = functools.partial(cut_text, limit=MAX_LINE, what="lines", report=report)
  tail = ""
  for chunk in itertools.chain(chunks, ("\n",)):
    *lines, tail = (tail + chunk).split("\n")
    *begun, tail = cut(tail)
    for piece in itertools.chain(*map(cut, lines), begun):
      yield repair(piece, report)


# --- parquet: and tfds: ---


def _parquet(
  paths: Iterable[str], source: str, text_field: str, report: Counter
) -> Iterator[Iterable[str]]:
  for path in paths:
    report["files read"] += 1
    try:
      if text_field not in (names := parquet.text_columns(path)):
        raise _no_text_field(source, text_field, dict.fromkeys(names))
      texts = parquet.read_texts(path, text_field)
      decoded = _decoded(texts, text_field, report)
      for text in files.check_encoding(decoded, path, report):
        yield _lines([repair(text, report)], report)
    except parquet.ParquetError as error:
      remedy = "fetch it again or leave it out of corpus.source"
      if path.lower().endswith(".arrow"):
        remedy = encodings.ARROW_REMEDY
      raise CorpusError(f"{error}; {remedy}.") from error


def _tfds(source: str, text_field: str) -> tfds.Records:
  """Opens the dataset's records; raises CorpusError if it can't."""
  try:
    records = tfds.open_records(source)
  except tfds.TfdsError as error:
    raise CorpusError(f"corpus.source={error}") from error
  if text_field not in (features := records.dataset_info.features):
    raise _no_text_field(source, text_field, dict(features))
  return records


def _tfds_texts(
  records: tfds.Records,
  source: str,
  text_field: str,
  report: Counter,
  indices: range,
) -> Iterator[Iterable[str]]:
  try:
    selected = tfds.read_records(records, source, indices)
    texts = (record[text_field] for record in selected)
    for text in _decoded(texts, text_field, report):
      yield _lines([repair(text, report)], report)
  except tfds.TfdsError as error:
    raise CorpusError(f"corpus.source={error}") from error


def _decoded(
  texts: Iterable[bytes | None], text_field: str, report: Counter
) -> Iterator[str]:
  """Yields the texts that are there; invalid bytes are surrogates."""
  for text in texts:
    if isinstance(text, bytes):
      report["bytes read"] += len(text)
      yield text.decode("utf-8", "surrogateescape")
    else:
      report[f"records dropped without a text in {text_field!r}"] += 1
