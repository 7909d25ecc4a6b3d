"""TriviaQA's own files: questions, and beside them the texts of the evidence.

Joshi et al. 2017, https://arxiv.org/abs/1705.03551 (triviaqa-rc):

  qa/web-train.json, ...     {"Data": [{"QuestionId", "Question",
                             "Answer": {"Value", "Aliases", ...},
                             "EntityPages": [{"Filename"}],
                             "SearchResults": [{"Filename"}]}], "Split"}
  evidence/wikipedia/*.txt   the texts of "EntityPages"
  evidence/web/*/*.txt       those of "SearchResults"

Where the answer is in a text is not annotated. It is taken to be where one of
its names occurs first, as a whole word, in any case (distant supervision). A
question on each of its texts is an example.
"""

import itertools
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import objects
from maskedlm.data.labelled.lines import read_lines
from maskedlm.finetune.question_answering.questions import (
  ABSENT,
  Example,
  GoldAnswer,
  get_field,
  parse,
)

_HEAD = re.compile(r'\s*\{\s*"(Data|Domain|Split|VerifiedEval|Version)"\s*:')
_FOLDERS = {"EntityPages": "wikipedia", "SearchResults": "web"}

WITHOUT_TEXT = "questions without any text, which are left out"
TWICE = "texts that a question names twice, which are read once"
CUT = "texts cut to task.evidence_words"
LEFT_OUT = "texts without their answer, which are left out of training"
UNMATCHED = "texts without their answer, whose questions can't be answered"


def is_file(source: str) -> bool:
  """Returns whether a source begins as TriviaQA's files do."""
  path = pathlib.Path(source)
  if not path.is_file() or objects.are_named(source):
    return False
  return bool(_HEAD.match("\n".join(itertools.islice(read_lines(path), 3))))


def read_file(
  path: str, *, evidence: str, words: int, seen: Counter
) -> Iterator[Example]:
  """Yields a question for each of its texts; its id is QUESTION--FILE.

  Args:
    path: the file of questions. Of one whose "Split" is train, texts without
      the answer are left out; in others none of the answers has a place.
    evidence: the folder of the texts; "" for evidence/ beside the file's.
    words: of a text that are read; 0 for all.
    seen: WITHOUT_TEXT, TWICE, CUT, LEFT_OUT and UNMATCHED are increased.

  Raises:
    DataError: a text is missing; a field is missing or has the wrong type.
  """
  top = parse("\n".join(read_lines(pathlib.Path(path))), path, 1)
  folder = pathlib.Path(
    evidence or pathlib.Path(path).parent.parent / "evidence"
  )
  if not folder.is_dir():
    raise DataError(
      f"{path}: no folder {folder} with the texts of its questions; unpack "
      "TriviaQA's evidence/, or set --config.task.evidence=FOLDER."
    )
  is_train = top.get("Split") == "train"
  for i, entry in enumerate(get_field(top, "Data", list, path)):
    key = get_field(entry, "QuestionId", str, f"{path}: Data[{i}]")
    where = f"{path}: question {key}"
    question = objects.encodable(get_field(entry, "Question", str, where))
    if not question.strip():
      raise DataError(f"{where}: the question is empty.")
    names = _names(entry.get("Answer"), where)
    files = list(_files(entry, where))
    seen[WITHOUT_TEXT] += not files
    seen[TWICE] += len(files) - len({*files})
    for file in dict.fromkeys(files):
      place = f"{where}, {file[1]}"
      text = _read(folder.joinpath(*file), place)
      context, is_cut = _first_words(text, words)
      answers = _gold_answers(context, names)
      if is_train and names and answers[0].start == ABSENT:
        seen[LEFT_OUT] += 1
        continue
      seen[UNMATCHED] += bool(names) and answers[0].start == ABSENT
      seen[CUT] += is_cut
      text_key = objects.encodable(f"{key}--{file[1]}")
      yield Example(question, context, text_key, answers, place)


def _gold_answers(
  text: str, names: Sequence[str]
) -> tuple[GoldAnswer, ...] | None:
  """Returns the answer in a text, then the other names; None without names."""
  if not names:
    return None
  found = find_answer(text, names)
  placed = [found] if found else []
  others = [x for x in names if x not in [answer.text for answer in placed]]
  return (*placed, *(GoldAnswer(x, ABSENT) for x in others))


def find_answer(text: str, names: Sequence[str]) -> GoldAnswer | None:
  """Returns the first place of one of an answer's names; None if it has none.

  A name is found in any case, but not inside of a word. Of names that begin at
  the same place, the longest is taken.
  """
  folded = _folded(text)
  places = []
  for name in map(_folded, names):
    at = folded.find(name)
    while at >= 0 and not _is_whole(folded, at, at + len(name)):
      at = folded.find(name, at + 1)
    if at >= 0:
      places.append((at, -len(name)))
  if not places:
    return None
  at, size = min(places)
  return GoldAnswer(text[at : at - size], at)


def _folded(text: str) -> str:
  """Returns the text in lower case, character by character."""
  lower = text.lower()
  if len(lower) == len(text):
    return lower
  return "".join(x.lower() if len(x.lower()) == 1 else x for x in text)


def _is_whole(text: str, begin: int, end: int) -> bool:
  return not any(
    0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
    for at in (begin, end)
  )


def _names(answer: Any, where: str) -> list[str]:
  """Returns an answer's names, the main one first; [] if there is no answer."""
  if answer is None:
    return []
  names = [get_field(answer, "Value", str, where)]
  for field in ("Aliases", "HumanAnswers", "NormalizedAliases"):
    if answer.get(field) is not None:
      names += get_field(answer, field, list, where)
  for name in names:
    if not isinstance(name, str):
      raise DataError(
        f"{where}: the answer {str(name)[:40]!r}; expected a text."
      )
  names = [x for x in map(objects.encodable, map(str.strip, names)) if x]
  if not names:
    raise DataError(f"{where}: the answer is empty.")
  return [*dict.fromkeys(names)]


def _files(entry: Mapping[str, Any], where: str) -> Iterator[tuple[str, str]]:
  """Yields (folder, name) of each text of a question."""
  for field, folder in _FOLDERS.items():
    if entry.get(field) is not None:
      for document in get_field(entry, field, list, where):
        yield folder, get_field(document, "Filename", str, f"{where}: {field}")


def _read(path: pathlib.Path, where: str) -> str:
  if not path.is_file():
    raise DataError(
      f"{where}: no such text in {path.parent}; is TriviaQA's evidence/ "
      "unpacked completely?"
    )
  return objects.encodable("\n".join(read_lines(path)))


def _first_words(text: str, count: int) -> tuple[str, bool]:
  """Returns the first words of a text, and whether any were cut off."""
  words = re.finditer(r"\S+", text)
  if not count:
    return text, False
  end = 0
  for _, match in zip(range(count), words, strict=False):
    end = match.end()
  return text[:end], bool(text[end:].strip())
