"""Hundreds of odd files of questions: read as they are, or one line."""

from helpers import odd_answers
from maskedlm.core.errors import DataError
from maskedlm.finetune import data_files
from maskedlm.finetune.config import make_task


def read(path):
  task = make_task("question_answering", {"allow_impossible": True})
  return data_files.read_examples(task, str(path))


def test_good_files_have_their_questions_and_answers(tmp_path):
  asked = [*odd_answers.QUESTIONS, (odd_answers.NONE, None, None)]
  count = 0
  for name, content in odd_answers.good_files():
    path = tmp_path / name
    path.write_bytes(content)
    found = read(path)
    assert len({e.id for e in found}) == len(found) == len(asked), name
    assert len({id(e.context) for e in found}) == 1  # They share one string.
    for example, (question, text, start) in zip(found, asked, strict=True):
      answers = () if text is None else ((text, start),)
      assert (example.question, example.answers) == (question, answers), name
      for text, start in answers:
        assert example.context[start : start + len(text)] == text
    count += 1
  assert count > 600


def test_broken_files_are_refused_in_a_line(tmp_path):
  count = 0
  for name, content in odd_answers.broken_files():
    path = tmp_path / name
    path.write_bytes(content)
    try:
      read(path)
    except DataError as error:
      assert "\n" not in str(error) and str(error).startswith(str(path)), name
    else:
      raise AssertionError(name)
    count += 1
  assert count > 90
