"""Questions in SQuAD's format on a text with an emoji."""

from maskedlm.data.labelled.formats import squad

CONTEXT = "Ada met Bob. Then Bob, of Köln, left 😀 with Bob."
#          0       8         18        26          38     45


def question(key="q1", text="Who?", answers=(("Bob", 8),), **more):
  answers = [{"text": t, "answer_start": s} for t, s in answers]
  return {"id": key, "question": text, "answers": answers, **more}


def read(path, *, allow_impossible=False):
  return squad.read_questions(path, allow_impossible=allow_impossible)
