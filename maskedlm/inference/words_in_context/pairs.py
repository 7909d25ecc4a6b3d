"""Reads pairs of words in context: marked texts, or the WiC data set's files.

WiC (Pilehvar & Camacho-Collados, NAACL 2019, https://aclanthology.org/N19-1128)
asks whether a word has the same meaning in two sentences. Its own files are
NAME.data.txt, with the answers T or F in NAME.gold.txt beside it; SuperGLUE
distributes the same pairs as JSON lines. Both are read.
"""

import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import fields, text_lines
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.word_senses.inputs import split_marks
from maskedlm.inference.word_senses.word_instances import Instance

DATA, GOLD = ".data.txt", ".gold.txt"
_HOW = "expected a word between asterisks, such as: The *bank* rose"
_OBJECT = '{"text": "The *bank* rose", "text_b": "The *bank* lent"}'
_COLUMNS = "word, part of speech, i-j, sentence, sentence between tabs"


class WordPair(NamedTuple):
  """Two words in context."""

  a: Instance
  b: Instance
  where: str  # File and line, for errors.
  same: bool | None = None  # Whether they have the same meaning, if known.


def parse_marked(text: str, *, file: str = "", line: int = 0) -> Instance:
  """Returns the marked word of a text: "He sat on the *bank*."

  Raises:
    DataError: not exactly one word is marked.
  """
  where = f"{file}:{line}: " if file else ""
  parts = split_marks(text, where, how=_HOW)
  if len(parts) > 3:
    count = len(parts) // 2
    raise DataError(f"{where}{count} words are marked in {text!r:.60}; {_HOW}.")
  before, word, after = parts
  if not word.strip():
    raise DataError(f"{where}the marked word of {text!r:.60} is empty; {_HOW}.")
  end = len(before) + len(word)
  return Instance(
    Text(before + word + after, None, file, line), len(before), end, word
  )


def make_pair(a: str, b: str, *, file: str = "", line: int = 0) -> WordPair:
  """Returns the pair of two marked texts; errors as for parse_marked."""
  first, second = (parse_marked(x, file=file, line=line) for x in (a, b))
  return WordPair(first, second, f"{file}:{line}" if file else "the pair")


def read_pairs(paths: Sequence[str], *, form: str = "") -> Iterator[WordPair]:
  """Yields the pairs of files, in bounded memory.

  Args:
    paths: UTF-8 files; "-" is stdin. Blank lines are skipped. A line has two
      marked texts with a tab between them, or is an object with "text" and
      "text_b".
    form: text, jsonl or "": the file decides (text_lines.has_fields).

  Raises:
    DataError: there is no line, or a line is malformed.
  """
  for file, line, entry in text_lines.read_entries(paths, form):
    if isinstance(entry, str):
      texts = entry.split("\t")
      if len(texts) != 2:
        raise DataError(
          f"{file}:{line}: {len(texts)} columns; expected two texts with a tab "
          f"between them, each with a marked word: {entry!r:.60}."
        )
    else:
      kinds = map(fields.text, ("text", "text_b"))
      where = f"{file}:{line}"
      texts = [fields.value_of(entry, x, _OBJECT, where) for x in kinds]
    yield make_pair(*texts, file=file, line=line)


def read_wic(path: str) -> list[WordPair]:
  """Reads WiC's pairs; `same` is None where there is no answer.

  Args:
    path: NAME.data.txt, with NAME.gold.txt beside it if the answers are known;
      or SuperGLUE's .jsonl.

  Raises:
    DataError: the file can't be read or has no pair, a line is malformed, or
      there are not as many answers as pairs.
  """
  if text_lines.has_fields(path, ""):
    entries = text_lines.read_entries([path], "")
    return [_parse_object(entry, file, line) for file, line, entry in entries]
  pairs = [
    _parse_columns(line, path, number)
    for number, line in text_lines.read_lines(path)
    if line.strip()
  ]
  if not pairs:
    raise DataError(f"{path}: no pair; expected lines of {_COLUMNS}.")
  gold = path.removesuffix(DATA) + GOLD
  if not path.endswith(DATA) or not pathlib.Path(gold).is_file():
    return pairs
  answers = _read_gold(gold)
  if len(answers) != len(pairs):
    raise DataError(
      f"{gold}: {len(answers):,} answers, but {path} has {len(pairs):,} pairs; "
      "expected one for each."
    )
  answered = zip(pairs, answers, strict=True)
  return [pair._replace(same=same) for pair, same in answered]


def _parse_columns(line: str, file: str, number: int) -> WordPair:
  where = f"{file}:{number}"
  row = line.split("\t")
  if len(row) != 5:
    raise DataError(
      f"{where}: {len(row)} columns; expected {_COLUMNS}: {line!r:.60}."
    )
  _, _, places, *sentences = row
  i, dash, j = places.partition("-")
  if not (dash and i.isdecimal() and j.isdecimal()):
    raise DataError(
      f"{where}: {places!r:.20}; expected i-j, the index of the word in either "
      "sentence, from 0."
    )
  a, b = (
    _word_at(sentence, int(place), file, number)
    for place, sentence in zip((i, j), sentences, strict=True)
  )
  return WordPair(a, b, where)


def _word_at(sentence: str, place: int, file: str, line: int) -> Instance:
  """Returns the word at an index of a sentence, whose words spaces separate."""
  words = sentence.split(" ")
  if place >= len(words) or not words[place]:
    raise DataError(
      f"{file}:{line}: no word {place} in {sentence!r:.60}, which has "
      f"{len(words)}; expected an index from 0."
    )
  begin = sum(len(word) + 1 for word in words[:place])
  end = begin + len(words[place])
  return Instance(Text(sentence, None, file, line), begin, end, words[place])


def _read_gold(path: str) -> list[bool]:
  answers = []
  for number, line in text_lines.read_lines(path):
    if line.strip() not in ("T", "F", ""):
      raise DataError(f"{path}:{number}: {line!r:.40}; expected T or F.")
    if line.strip():
      answers.append(line.strip() == "T")
  return answers


def _parse_object(entry: str | dict, file: str, line: int) -> WordPair:
  assert isinstance(entry, dict)  # The file's rows have fields.
  where = f"{file}:{line}"
  instances = []
  for i in "12":
    field = fields.text(f"sentence{i}")
    sentence = fields.value_of(entry, field, "WiC of SuperGLUE", where)
    begin, end = entry.get(f"start{i}"), entry.get(f"end{i}")
    if (
      type(begin) is not int
      or type(end) is not int
      or not 0 <= begin < end <= len(sentence)
    ):
      raise DataError(
        f"{where}: start{i}={begin!r}, end{i}={end!r}; expected the characters "
        f"of the word in {sentence!r:.60}, {len(sentence)} long."
      )
    text = Text(sentence, None, file, line)
    instances.append(Instance(text, begin, end, sentence[begin:end]))
  label = fields.truth("label", optional=True)
  same = fields.value_of(entry, label, "WiC of SuperGLUE", where)
  a, b = instances
  return WordPair(a, b, where, same)
