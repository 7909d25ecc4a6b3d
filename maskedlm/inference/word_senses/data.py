"""Reads sentences with labelled word senses: SemCor and similar corpora.

Two formats are read as a stream:

- a word per line: token, lemma, part of speech and sense, separated by tabs,
  with _ for none; `# doc NAME` begins a document, a blank line ends a sentence;
- the XML of the evaluation framework of Raganato, Camacho-Collados & Navigli
  (EACL 2017, https://aclanthology.org/E17-1010): files NAME.data.xml, with
  the senses in NAME.gold.key.txt beside it.
"""

import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from maskedlm.core.errors import DataError
from maskedlm.data import hashing
from maskedlm.data.labelled import lines, text_lines

NO_VALUE = "_"  # Marks an empty column.
DATA_XML, GOLD_KEYS = ".data.xml", ".gold.key.txt"
_CHUNK = 1 << 16  # Bytes of XML parsed at a time.


class TargetWord(NamedTuple):
  """A word that has a sense, or is to be disambiguated."""

  id: str  # Document, sentence, target: d000.s003.t001.
  word: int  # Its index in the sentence.
  lemma: str  # "" = unknown.
  pos: str  # NOUN, VERB, ADJ, ADV, ...; "" = unknown.
  senses: tuple[str, ...]  # Any of them is correct; () = unknown.


class Sentence(NamedTuple):
  """Words and, in order, the targets among them."""

  words: tuple[str, ...]
  targets: tuple[TargetWord, ...]
  document: str
  file: str
  line: int  # The number of its first line.


def read_sentences(
  path: str, *, seen: Counter | None = None
) -> Iterator[Sentence]:
  """Yields the sentences of a file in either format, in bounded memory.

  Only the keys of XML are read at once. A word without characters is skipped
  unless it is a target.

  Args:
    path: the file; XML ends in .data.xml.
    seen: is updated with "bytes" and "texts", the bytes and sentences read.

  Raises:
    DataError: the file doesn't exist or has no target; a line or an element is
      malformed, or a target has no key.
  """
  seen = Counter() if seen is None else seen
  num_targets = 0
  read = _read_xml if path.endswith(DATA_XML) else _read_columns
  for sentence in read(path, seen):
    seen["texts"] += 1
    num_targets += len(sentence.targets)
    yield sentence
  if not num_targets:
    raise DataError(
      f"{path}: no word with a sense; expected lines of token, lemma, part of "
      f"speech and sense between tabs, or NAME{DATA_XML} with NAME{GOLD_KEYS}."
    )


def is_held_out(document: str, share: float) -> bool:
  """Returns whether a document is in the held-out share, by a hash of its name.

  The result doesn't depend on other documents.
  """
  return float(hashing.uniform(0, "document of senses", document)) < share


def select_documents(
  sentences: Iterable[Sentence],
  wanted: Callable[[str], bool],
  *,
  limit: int = 0,
) -> Iterator[Sentence]:
  """Yields sentences of the wanted documents; at most `limit` if it isn't 0."""
  names: set[str] = set()
  for sentence in sentences:
    name = sentence.document
    if wanted(name):
      if limit and name not in names and len(names) == limit:
        return
      names.add(name)
      yield sentence


def read_first_senses(path: str) -> dict[tuple[str, str], str]:
  """Reads the first, most frequent, sense of each (lemma, part of speech).

  Args:
    path: WordNet's index.sense, or lines of lemma, part of speech and sense
      separated by tabs, of which the first for a lemma and part of speech is
      used.

  Raises:
    DataError: the file doesn't exist or has no sense; a line is malformed.
  """
  first: dict[tuple[str, str], str] = {}
  for number, line in text_lines.read_lines(path):
    if not line.strip():
      continue
    if "\t" in line:
      fields = line.split("\t")
      if len(fields) != 3 or not all(map(str.strip, fields)):
        raise DataError(
          f"{path}:{number}: expected lemma, part of speech and sense between "
          f"tabs, not {line!r:.60}."
        )
      lemma, pos, sense = fields
      first.setdefault((lemma, pos), sense)
    else:
      lemma, pos, sense, rank = _parse_wordnet(line, f"{path}:{number}")
      if rank == 1:
        first.setdefault((lemma, pos), sense)
  if not first:
    raise DataError(f"{path}: no sense in the file.")
  return first


# https://wordnet.princeton.edu/documentation/senseidx5wn; 5 is a satellite
# adjective, numbered with the adjectives.
_WORDNET_POS = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}


def _parse_wordnet(line: str, where: str) -> tuple[str, str, str, int]:
  """Returns (lemma, POS, key, rank) from "bank%1:14:00:: 08420278 1 25"."""
  fields = line.split(" ")
  lemma, percent, rest = fields[0].rpartition("%")
  if (
    len(fields) != 4
    or not percent
    or rest[:1] not in _WORDNET_POS
    or not fields[2].isdecimal()
  ):
    raise DataError(
      f"{where}: neither lemma, part of speech, sense with tabs, nor a line "
      f"of WordNet's index.sense: {line!r:.60}."
    )
  return lemma, _WORDNET_POS[rest[0]], fields[0], int(fields[2])


def _read_columns(path: str, seen: Counter) -> Iterator[Sentence]:
  """Yields the sentences of a file with a word per line."""
  document, number_of_sentence = "d000", 0
  block: list[tuple[int, list[str]]] = []
  for number, line in text_lines.read_lines(path, seen):
    is_document = line.startswith("# doc ") and "\t" not in line
    if is_document or not line.strip(" \r"):
      if block:
        yield _parse_block(path, block, document, number_of_sentence)
        number_of_sentence, block = number_of_sentence + 1, []
      if is_document:
        document, number_of_sentence = line.removeprefix("# doc ").strip(), 0
      continue
    fields = line.split("\t")
    if len(fields) != 4:
      raise DataError(
        f"{path}:{number}: {len(fields)} columns between tabs; expected token, "
        "lemma, part of speech and sense (_ = none), or XML in a file "
        f"NAME{DATA_XML}: {line!r:.60}."
      )
    block.append((number, fields))
  if block:
    yield _parse_block(path, block, document, number_of_sentence)


def _parse_block(
  path, block, document: str, number_of_sentence: int
) -> Sentence:
  """Returns the sentence in a block of (line number, columns)."""
  words: list[str] = []
  targets: list[TargetWord] = []
  for number, (word, lemma, pos, sense) in block:
    senses = () if sense.strip() == NO_VALUE else tuple(sense.split())
    if senses:
      id_ = f"{document}.s{number_of_sentence:03d}.t{len(targets):03d}"
      target = TargetWord(id_, len(words), lemma, pos, senses)
      _check_target(target, word, f"{path}:{number}")
      targets.append(target)
    elif not sense.strip():
      raise DataError(f"{path}:{number}: the sense is empty; write _ for none.")
    if word.strip():
      words.append(word)
  return Sentence(tuple(words), tuple(targets), document, path, block[0][0])


def _check_target(target: TargetWord, word: str, where: str) -> None:
  """Raises DataError for a target without token, lemma or part of speech."""
  for name, value in (
    ("token", word),
    ("lemma", target.lemma),
    ("part of speech", target.pos),
  ):
    if not value.strip() or (name != "token" and value == NO_VALUE):
      raise DataError(
        f"{where}: a word with a sense has no {name} ({target.id}); expected "
        "token, lemma, part of speech and sense."
      )


def _read_xml(path: str, seen: Counter) -> Iterator[Sentence]:
  """Yields the sentences of the XML of Raganato et al."""
  keys_path = path.removesuffix(DATA_XML) + GOLD_KEYS
  keys = _read_keys(keys_path)
  document, begin, text = "", 0, ""
  words: list[str] = []
  targets: list[TargetWord] = []
  for number, event, name, value in _parse_events(path, seen):
    where = f"{path}:{number}"
    if event == "text":
      text += value
    elif event == "begin":
      text = ""
      if name == "text":
        document = value.get("id", "")
      elif name == "sentence":
        begin, words, targets = number, [], []
      elif name == "instance":
        id_ = value.get("id", "")
        if id_ not in keys:
          raise DataError(
            f"{where}: the instance {id_!r} has no key or is repeated; "
            f"expected a line with it in {keys_path}."
          )
        lemma, pos = value.get("lemma", ""), value.get("pos", "")
        targets.append(TargetWord(id_, len(words), lemma, pos, keys.pop(id_)))
    elif name == "sentence" and words:
      yield Sentence(tuple(words), tuple(targets), document, path, begin)
    elif name in ("wf", "instance"):
      word = " ".join(text.split())
      if name == "instance":
        _check_target(targets[-1], word, where)
      if word:
        words.append(word)
  if keys:
    raise DataError(
      f"{keys_path}: {len(keys):,} keys have no instance in {path}, such as "
      f"{next(iter(keys))}."
    )


def _parse_events(
  path: str, seen: Counter
) -> Iterator[tuple[int, str, str, Any]]:
  """Yields (line, begin | end | text, element name, attributes or text)."""
  events: list[tuple[int, str, str, Any]] = []
  parser = expat.ParserCreate()

  def handler(event: str) -> Callable:
    return lambda name, value=None: events.append(
      (parser.CurrentLineNumber, event, name, value)
    )

  parser.StartElementHandler = handler("begin")
  parser.EndElementHandler = handler("end")
  parser.CharacterDataHandler = lambda text: handler("text")("", text)
  try:
    for chunk in lines.raw_lines(path, most=_CHUNK):
      seen["bytes"] += len(chunk)
      parser.Parse(chunk, False)
      yield from events
      events.clear()
    parser.Parse(b"", True)
  except expat.ExpatError as error:
    reason = expat.ErrorString(error.code)
    raise DataError(f"{path}:{error.lineno}: not XML: {reason}.") from None


def _read_keys(path: str) -> dict[str, tuple[str, ...]]:
  """Reads {instance: senses} from lines as "d000.s000.t000 long%3:00:02::"."""
  if not pathlib.Path(path).is_file():
    raise DataError(f"{path}: no such file; expected the keys of the XML.")
  keys: dict[str, tuple[str, ...]] = {}
  for number, line in text_lines.read_lines(path):
    if not line.strip():
      continue
    id_, *senses = line.split()
    if not senses or id_ in keys:
      problem = "is repeated" if senses else "has no sense"
      raise DataError(
        f"{path}:{number}: the instance {id_} {problem}; expected each once "
        "with one or more senses."
      )
    keys[id_] = tuple(senses)
  return keys
