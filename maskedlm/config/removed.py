"""Options of earlier versions, and what to do without them."""

_MRQA = (
  "TriviaQA is read from MRQA's copy, which has the texts "
  "(docs/guides/finetune/question-answering.md)"
)
REMEDIES = {
  "task.fix_offsets": "correct answer_start in the file: an error lists the "
  "places that have the answer",
  "task.evidence": _MRQA,
  "task.evidence_words": _MRQA,
}


def remedy(name: str) -> str:
  """Returns "; it was removed: ..." for such an option, such as task.evidence.

  For any other name it is "".
  """
  return f"; it was removed: {REMEDIES[name]}" if name in REMEDIES else ""
