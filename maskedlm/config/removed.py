"""Options of earlier versions, and what to do without them."""

from typing import Any, NamedTuple

from maskedlm.core.errors import ConfigError


class Removed(NamedTuple):
  """An option that there is no more."""

  remedy: str
  # The value with which a checkpoint means what is done now; None for any, as
  # of options that said how a file was read.
  default: Any = None


_MRQA = (
  "TriviaQA is read from MRQA's copy, which has the texts "
  "(docs/guides/finetune/question-answering.md)"
)
OPTIONS = {
  "task.crf_rate": Removed(
    "a CRF's scores are 100 times its parameters", default=100.0
  ),
  "task.fix_offsets": Removed(
    "correct answer_start in the file: an error lists the places that have the "
    "answer"
  ),
  "task.evidence": Removed(_MRQA),
  "task.evidence_words": Removed(_MRQA),
}


def remedy(name: str) -> str:
  """Returns "; it was removed: ..." for such an option, such as task.evidence.

  For any other name it is "".
  """
  found = OPTIONS.get(name)
  return f"; it was removed: {found.remedy}" if found else ""


def is_removed(name: str, value: Any) -> bool:
  """Returns whether an option was removed, and a checkpoint's value is as now.

  Raises:
    ConfigError: the value meant something that there is no more.
  """
  found = OPTIONS.get(name)
  if found is None:
    return False
  if found.default is not None and value != found.default:
    raise ConfigError(
      f"{name}={value!r}: there is no such option{remedy(name)}."
    )
  return True
