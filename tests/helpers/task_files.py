"""Makes a small labelled file for each task of fine-tuning."""

import itertools
import json
import random
from typing import Any, NamedTuple

PEOPLE = ("cat", "dog", "man", "company")
PLACES = ("house", "table", "mat", "room", "book")


class TaskFile(NamedTuple):
  """A labelled file, and the options and input that go with it."""

  text: str  # The labelled file.
  suffix: str
  line: str  # One line of input of `predict`.
  options: dict[str, Any]  # config.task, where it differs from the default.


def make_file(task: str, count: int, seed: int = 0) -> TaskFile:
  """Returns a file of `count` examples of a task, drawn from a seed."""
  return _MAKERS[task](count, random.Random(seed))


def task_names() -> list[str]:
  """Returns the tasks that have a file here."""
  return sorted(_MAKERS)


def _classification(count, draw):
  lines = ["text\tlabel"]
  for i in range(count):
    label = ("good", "bad")[i % 3 == 0]
    tail = " the house" * draw.randrange(5)
    lines.append(f"the {label} {draw.choice(PLACES)}{tail}\t{label}")
  return TaskFile("\n".join(lines) + "\n", ".tsv", "the good cat", {})


def _multi_label(count, draw):
  lines = ["text\tlabels"]
  for _ in range(count):
    people = sorted(draw.sample(PEOPLE, draw.randrange(3)))
    lines.append(f"the {' and the '.join(people)} ran\t{', '.join(people)}")
  return TaskFile("\n".join(lines) + "\n", ".tsv", "the dog ran", {})


def _tagging(count, draw):
  lines = []
  for _ in range(count):
    for _ in range(draw.randrange(1, 5)):
      lines += [f"{draw.choice(['the', 'a', 'house'])} O"] * draw.randrange(3)
      lines += ["man O", f"{draw.choice(['dog', 'cat', 'film'])} B-PER"]
      if draw.random() < 0.5:
        lines += [f"{draw.choice(['end', 'red', 'book'])} I-PER"]
    lines.append("")
  text = "\n".join(lines) + "\n"
  return TaskFile(
    text, ".conll", "a man Dog red the man cat", {"decode": "crf"}
  )


def _features(count, draw):
  options = {"lstm_width": 13}
  return _tagging(count, draw)._replace(options=options)


def _spans(count, draw):
  """Marks "the PERSON from PLACE" as a thing, and the place in it."""
  lines = []
  for i in range(count):
    lines += ["and\tO\tO"] * draw.randrange(3)
    if i % 3 == 0:
      lines += ["york\tB-PLACE\tO"]
    else:
      lines += ["the\tB-THING\tO", f"{draw.choice(PEOPLE)}\tI-THING\tO"]
      lines += ["from\tI-THING\tO", "paris\tI-THING\tB-PLACE"]
    lines.append("")
  options = {"nested": True, "max_span_words": 6}
  text = "\n".join(lines) + "\n"
  return TaskFile(text, ".tsv", "the Film from Paris", options)


def _constituency(count, draw):
  """A sentence is a person, perhaps from a place, and a verb."""
  lines = []
  for _ in range(count):
    subject = f"(NP (DT the) (NN {draw.choice(PEOPLE)}))"
    if draw.random() < 0.5:
      place = f"(PP (IN from) (NP (NN {draw.choice(PLACES)})))"
      subject = f"(NP {subject} {place})"
    lines.append(f"(TOP (S {subject} (VP (VBD ran)) (. .)))")
  line = "the man from new york said a word ."
  return TaskFile("\n".join(lines) + "\n", ".ptb", line, {})


def _dependency(count, draw):
  """A sentence is a person, perhaps from a place, and a verb, its root."""
  lines = []
  for _ in range(count):
    tree = [("the", 2, "det"), (draw.choice(PEOPLE), 3, "nsubj")]
    tree.append(("ran", 0, "root"))
    if draw.random() < 0.5:
      tree += [("from", 5, "case"), (draw.choice(PLACES), 2, "nmod:x")]
    for i, (word, head, label) in enumerate(tree, 1):
      lines.append(f"{i}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_")
    lines.append("")
  line = "the man from new york said a word ."
  return TaskFile("\n".join(lines) + "\n", ".conllu", line, {})


def _relations(count, draw):
  relations = {
    "from": "Entity-Origin(e1,e2)",
    "made": "Product-Producer(e2,e1)",
    "and": "Other",
  }
  lines = []
  pairs = itertools.cycle(itertools.permutations(PEOPLE, 2))
  for i, (a, b) in zip(range(count), pairs, strict=False):
    verb, relation = draw.choice([*relations.items()])
    text = f"the <e1>{a}</e1> {verb} the <e2>{b}</e2> ."
    lines += [f'{i + 1}\t"{text}"', relation, "Comment:", ""]
  line = "the <e1>cat</e1> from the <e2>house</e2>"
  # The small tokenizer can't spell markers.
  return TaskFile("\n".join(lines), ".txt", line, {"pair": "spans"})


def _coreference_chains(count, draw):
  """Writes documents of sentences in which "she" is the person before."""
  lines = []
  for i in range(count):
    lines.append(f"#begin document (d/{i}); part 000")
    for _ in range(draw.randrange(1, 5)):
      words = ["the", draw.choice(PEOPLE), "sat", ".", "", "she", "ran", ""]
      marks = {0: "(0", 1: "0)", 5: "(0)"}
      if draw.random() < 0.3:
        words[1], marks = draw.choice(PLACES), {}
      for j, word in enumerate(words):
        row = f"d/{i} 0 {j} {word} - * - - - - * {marks.get(j, '-')}"
        lines.append(row if word else "")
    lines.append("#end document")
  options = {"max_mention_words": 4, "segments": 2}
  text = "\n".join(lines) + "\n"
  return TaskFile(text, ".conll", "the cat sat . she ran", options)


def _multiple_choice(count, draw):
  lines = []
  for _ in range(count):
    choices = [f"the {draw.choice(PLACES)} on it" for _ in range(3)]
    label = draw.randrange(3)
    choices[label] = "the red cat"
    made = {"context": "a good film", "choices": choices, "label": label}
    lines.append(json.dumps(made) + "\n")
  line = "the film\tthe old dog\tred cat ran\tthe good book"
  return TaskFile("".join(lines), ".jsonl", line, {})


def _retrieval(count, draw):
  lines = ["query\tpassage"]
  for _ in range(count):
    words = draw.sample(PEOPLE + PLACES, 2)
    lines.append(f"{' the '.join(words)}\ton the {' and '.join(words)}")
  line = "the cat is a dog\tdog on a cat\tparis in the film"
  options = {"pool": "cls", "query_prefix": "it is the "}
  return TaskFile("\n".join(lines) + "\n", ".tsv", line, options)


def _splade(count, draw):
  return _retrieval(count, draw)._replace(options={"query_prefix": "it is "})


def _reranking(count, draw):
  lines = []
  for i in range(count):
    words = draw.sample(PEOPLE + PLACES, 3)
    wrong = [f"on the {word}" for word in words[1 : 2 + i % 2]]
    made = {"query": words[0], "passage": f"in {words[0]}", "negatives": wrong}
    lines.append(json.dumps(made) + "\n")
  line = "the cat is a dog\tdog on a cat\tparis in the film"
  return TaskFile("".join(lines), ".jsonl", line, {})


def _similarity(count, draw):
  lines = ["sentence1\tsentence2\tscore"]
  for i in range(count):
    a, b, c = draw.sample(PEOPLE + PLACES, 3)
    other = (f"the {a}", f"the {b}", f"the {a} {c}")[i % 3]
    lines.append(f"on the {a}\t{other}\t{(5, 0.5, 3)[i % 3]}")
  return TaskFile("\n".join(lines) + "\n", ".tsv", "the cat\tthe dog", {})


def _question_answering(count, draw):
  """Asks where a person is; every third one is not in the text."""
  paragraphs = []
  for i in range(count):
    people = draw.sample(PEOPLE, 3)
    places = draw.choices(PLACES, k=2)
    parts = [
      f"the {who} sat on the {place} ."
      for who, place in zip(people, places, strict=False)
    ]
    context, asked = " ".join(parts), i % 3
    start = context.find(places[i % 2], context.index(people[i % 2]))
    answer = {"text": places[i % 2], "answer_start": start}
    entry = {"id": f"q{i}", "question": f"where is the {people[i % 2]} ?"}
    entry |= {"answers": [answer]}
    if asked == 2:
      entry["question"] = f"where is the {people[2]} ?"
      entry |= {"answers": [], "is_impossible": True}
    paragraphs.append({"context": context, "qas": [entry]})
  data = {"version": "2.0", "data": [{"title": "T", "paragraphs": paragraphs}]}
  options = {"stride": 5, "max_answer_length": 3, "allow_impossible": True}
  line = "where is the dog ?\tthe cat sat on the mat . the dog sat on the table"
  return TaskFile(json.dumps(data), ".json", line, options)


def _semantic_roles(count, draw):
  """Writes two columns of CoNLL-2005: PERSON sold (V) the PLACE (ARG1)."""
  lines = []
  for i in range(count):
    lines += [f"the - {'(A0*' if i % 3 else '*'}"]
    lines += [f"{draw.choice(PEOPLE)} - {'*)' if i % 3 else '(A0*)'}"]
    lines += ["sold sell (V*)"]
    lines += ["the - (A1*", f"{draw.choice(PLACES)} - *)"]
    lines += ["for - (C-A1*)"] * (i % 4 == 0) + [". - *", ""]
  text = "\n".join(lines) + "\n"
  return TaskFile(text, ".conll", "the dog sold the house", {})


_MAKERS = {
  "classification": _classification,
  "constituency": _constituency,
  "coreference_chains": _coreference_chains,
  "dependency": _dependency,
  "features": _features,
  "multi_label": _multi_label,
  "multiple_choice": _multiple_choice,
  "question_answering": _question_answering,
  "relations": _relations,
  "reranking": _reranking,
  "retrieval": _retrieval,
  "semantic_roles": _semantic_roles,
  "similarity": _similarity,
  "spans": _spans,
  "splade": _splade,
  "tagging": _tagging,
  "text_features": _classification,
}
