"""Options of earlier versions, and what to do without them."""

import re
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
_PAPER = "as in the paper"
OPTIONS = {
  "objective.chunk": Removed("it is 64", default=64),
  "objective.discriminator_weight": Removed(
    f"it is 50, {_PAPER}", default=50.0
  ),
  "objective.max_span_words": Removed(
    f"it is 10, {_PAPER}", default=10
  ),  # Of spanbert.
  "objective.place_width": Removed(f"it is 200, {_PAPER}", default=200),
  "objective.span_p": Removed(f"it is 0.2, {_PAPER}", default=0.2),
  "objective.temperature": Removed(f"it is 1, {_PAPER}", default=1.0),
  "train.prefetch": Removed("4 batches are made ahead"),
  "task.crf_rate": Removed(
    "a CRF's scores are 100 times its parameters", default=100.0
  ),
  "task.fix_offsets": Removed(
    "correct answer_start in the file: an error lists the places that have the "
    "answer"
  ),
  "task.punctuation": Removed(
    "words tagged , : `` '' or . don't count, as in EVALB's COLLINS.prm",
    default=[",", ":", "``", "''", "."],
  ),
  "task.arc_width": Removed(f"it is 500, {_PAPER}", default=500),
  "task.label_width": Removed(f"it is 100, {_PAPER}", default=100),
  "task.top_ratio": Removed(f"it is 0.4, {_PAPER}", default=0.4),
  "task.max_antecedents": Removed("it is 2000 spans", default=2000),
  "task.mention_loss": Removed("its weight is 1", default=1.0),
  "task.lstm_layers": Removed(f"there are 2, {_PAPER}", default=2),
  "task.max_query": Removed(
    "a question is cut to 64 tokens, or to what leaves room for the answer",
    default=64,
  ),
  "task.n_best": Removed("a prediction has 20 answers", default=20),
  "task.evidence": Removed(_MRQA),
  "task.evidence_words": Removed(_MRQA),
}


def remedy(name: str) -> str:
  """Returns "; it was removed: ..." for such an option, such as task.evidence.

  For any other name it is "".
  """
  found = OPTIONS.get(name)
  return f"; it was removed: {found.remedy}" if found else ""


def remedy_in(message: str) -> str:
  """Returns `remedy` for the option that a locked config's error names."""
  key = re.search(r'Key "(\w+)" does not exist', message)
  names = [x for x in OPTIONS if key and x.endswith(f".{key.group(1)}")]
  return remedy(names[0]) if names else ""


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
