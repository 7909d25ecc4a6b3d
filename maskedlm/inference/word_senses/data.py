"""Sentences in which the senses of words are known: SemCor and its kin.

Two formats, told apart by how a file begins, and read alike, as a stream:

- a word a line: token, lemma, part of speech, sense between tabs, _ where a
  word has none; `# doc NAME` begins a document, a blank line ends a sentence;
- the XML of the evaluation framework of Raganato, Camacho-Collados & Navigli
  (EACL 2017, https://aclanthology.org/E17-1010): NAME.data.xml, with the
  senses in NAME.gold.key.txt beside it.
"""

import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from maskedlm.core.errors import DataError
from maskedlm.data import hashing
from maskedlm.data.labelled import text_lines

NONE = "_"  # In a column: the word has none.
XML, KEYS = ".data.xml", ".gold.key.txt"
_CHUNK = 1 << 16  # Bytes of XML that are parsed at a time.


class Target(NamedTuple):
  """A word that has, or is to get, a sense."""

  id: str  # As d000.s003.t001: document, sentence, target.
  word: int  # Its place in the sentence.
  lemma: str  # "" is unknown.
  pos: str  # NOUN, VERB, ADJ, ADV, ...; "" is unknown.
  senses: tuple[str, ...]  # Each of them is right; () = not known.


class Sentence(NamedTuple):
  """Words, and which of them are targets, in their order."""

  words: tuple[str, ...]
  targets: tuple[Target, ...]
  document: str
  file: str
  line: int  # Where it begins.


def read(path: str, *, seen: Counter | None = None) -> Iterator[Sentence]:
  """The sentences of a file of either format, in bounded memory.

  Of XML, the keys are in memory. A word without characters is left out, unless
  it is a target.

  Args:
    path: the file; of XML, it ends in .data.xml.
    seen: gets "bytes" and "texts", how many bytes and sentences were read.

  Raises:
    DataError: no such file, not a single target; with file and line: a line
      or an element that isn't as above, a target without a key.
  """
  seen = Counter() if seen is None else seen
  found = 0
  for sentence in (_xml if _is_xml(path) else _columns)(path, seen):
    seen["texts"] += 1
    found += len(sentence.targets)
    yield sentence
  if not found:
    raise DataError(
      f"{path}: no word with a sense; expected lines of token, lemma, part of "
      f"speech and sense between tabs, or NAME{XML} with NAME{KEYS}."
    )


def is_held_out(document: str, share: float) -> bool:
  """Whether a document is of the share held out, by a hash of its name.

  So a document stays on its side whatever other documents there are.
  """
  return float(hashing.uniform(0, "document of senses", document)) < share


def pick(
  sentences: Iterable[Sentence],
  wanted: Callable[[str], bool],
  *,
  limit: int = 0,
) -> Iterator[Sentence]:
  """Sentences of the documents that are wanted; of `limit` > 0 the first."""
  names: set[str] = set()
  for sentence in sentences:
    name = sentence.document
    if wanted(name):
      if limit and name not in names and len(names) == limit:
        return
      names.add(name)
      yield sentence


def read_first_senses(path: str) -> dict[tuple[str, str], str]:
  """(lemma, part of speech) -> its first sense, the most frequent one.

  Args:
    path: lemma, part of speech, sense between tabs, the first line of each
      lemma and part of speech counts; or WordNet's index.sense.

  Raises:
    DataError: no such file; a line, with its number, that is neither.
  """
  first: dict[tuple[str, str], str] = {}
  for number, line in text_lines.lines(path):
    if not line.strip():
      continue
    if "\t" in line:
      fields = line.split("\t")
      if len(fields) != 3 or not all(map(str.strip, fields)):
        raise DataError(
          f"{path}:{number}: expected lemma, part of speech and sense between "
          f"tabs, not {_shortened(line)!r}."
        )
      lemma, pos, sense = fields
      first.setdefault((lemma, pos), sense)
    else:
      lemma, pos, sense, rank = _wordnet(line, f"{path}:{number}")
      if rank == 1:
        first.setdefault((lemma, pos), sense)
  if not first:
    raise DataError(f"{path}: no sense in the file.")
  return first


# https://wordnet.princeton.edu/documentation/senseidx5wn; 5 is a satellite
# adjective, numbered with the adjectives.
_WORDNET_POS = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}


def _wordnet(line: str, where: str) -> tuple[str, str, str, int]:
  """ "bank%1:14:00:: 08420278 1 25" -> lemma, part of speech, key, number."""
  fields = line.split(" ")
  lemma, percent, rest = fields[0].rpartition("%")
  if (
    len(fields) != 4
    or not percent
    or rest[:1] not in _WORDNET_POS
    or not fields[2].isdecimal()
  ):
    raise DataError(
      f"{where}: neither lemma, part of speech, sense between tabs, nor a line "
      f"of WordNet's index.sense: {_shortened(line)!r}."
    )
  return lemma, _WORDNET_POS[rest[0]], fields[0], int(fields[2])


def _is_xml(path: str) -> bool:
  try:
    with open(path, "rb") as file:
      return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"
  except OSError as error:
    raise DataError(f"{path}: {error.strerror}.") from None


def _columns(path: str, seen: Counter) -> Iterator[Sentence]:
  """Of the format with a word a line."""
  document, number_of_sentence, block = "d000", 0, []
  for number, line in text_lines.lines(path, seen):
    is_document = line.startswith("# doc ") and "\t" not in line
    if is_document or not line.strip(" \r"):
      if block:
        yield _of_block(path, block, document, number_of_sentence)
        number_of_sentence, block = number_of_sentence + 1, []
      if is_document:
        document, number_of_sentence = line.removeprefix("# doc ").strip(), 0
      continue
    fields = line.split("\t")
    if len(fields) != 4:
      raise DataError(
        f"{path}:{number}: {len(fields)} columns between tabs; expected token, "
        f"lemma, part of speech and sense (_ = none): {_shortened(line)!r}."
      )
    block.append((number, fields))
  if block:
    yield _of_block(path, block, document, number_of_sentence)


def _of_block(path, block, document: str, number_of_sentence: int) -> Sentence:
  words, targets = [], []
  for number, (word, lemma, pos, sense) in block:
    senses = () if sense.strip() == NONE else tuple(sense.split())
    if senses:
      id_ = f"{document}.s{number_of_sentence:03d}.t{len(targets):03d}"
      target = Target(id_, len(words), lemma, pos, senses)
      _check(target, word, f"{path}:{number}")
      targets.append(target)
    elif not sense.strip():
      raise DataError(f"{path}:{number}: the sense is empty; write _ for none.")
    if word.strip():
      words.append(word)
  return Sentence(tuple(words), tuple(targets), document, path, block[0][0])


def _check(target: Target, word: str, where: str) -> None:
  for name, value in (
    ("token", word),
    ("lemma", target.lemma),
    ("part of speech", target.pos),
  ):
    if not value.strip() or (name != "token" and value == NONE):
      raise DataError(
        f"{where}: a word with a sense has no {name} ({target.id}); expected "
        "token, lemma, part of speech and sense."
      )


def _xml(path: str, seen: Counter) -> Iterator[Sentence]:
  """Of the framework of Raganato et al."""
  if not path.endswith(XML):
    raise DataError(
      f"{path}: XML, but not named NAME{XML}: its keys are looked for in "
      f"NAME{KEYS}."
    )
  keys_path = path.removesuffix(XML) + KEYS
  keys = _read_keys(keys_path)
  document, begin, text = "", 0, ""
  words: list[str] = []
  targets: list[Target] = []
  for number, event, name, value in _events(path, seen):
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
            f"{where}: the instance {id_!r} has no key, or came before; "
            f"expected a line with it in {keys_path}."
          )
        lemma, pos = value.get("lemma", ""), value.get("pos", "")
        targets.append(Target(id_, len(words), lemma, pos, keys.pop(id_)))
    elif name == "sentence" and words:
      yield Sentence(tuple(words), tuple(targets), document, path, begin)
    elif name in ("wf", "instance"):
      word = " ".join(text.split())
      if name == "instance":
        _check(targets[-1], word, where)
      if word:
        words.append(word)
  if keys:
    raise DataError(
      f"{keys_path}: {len(keys):,} keys are of instances that {path} does not "
      f"have, such as {next(iter(keys))}."
    )


def _events(path: str, seen: Counter) -> Iterator[tuple[int, str, str, Any]]:
  """(line, begin | end | text, the element's name, attributes or text)."""
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
    with open(path, "rb") as file:
      while chunk := file.read(_CHUNK):
        seen["bytes"] += len(chunk)
        parser.Parse(chunk, False)
        yield from events
        events.clear()
      parser.Parse(b"", True)
  except expat.ExpatError as error:
    what = expat.ErrorString(error.code)
    raise DataError(f"{path}:{error.lineno}: not XML: {what}.") from None


def _read_keys(path: str) -> dict[str, tuple[str, ...]]:
  """Instance -> its senses, of lines as "d000.s000.t000 long%3:00:02::"."""
  if not pathlib.Path(path).is_file():
    raise DataError(f"{path}: no such file; expected the keys of the XML.")
  keys: dict[str, tuple[str, ...]] = {}
  for number, line in text_lines.lines(path):
    if not line.strip():
      continue
    id_, *senses = line.split()
    if not senses or id_ in keys:
      problem = "came before" if senses else "has no sense"
      raise DataError(
        f"{path}:{number}: the instance {id_} {problem}; expected each once, "
        "with one or more senses after it."
      )
    keys[id_] = tuple(senses)
  return keys


def _shortened(text: str) -> str:
  return text if len(text) <= 60 else f"{text[:57]}..."
