"""Fine-tunes with PyTorch and transformers, as the peer of finetune.py.

  python benchmarks/finetune_peer.py JOB.json

transformers' own recipes (run_glue.py, run_ner.py, run_qa.py) as plain loops:
Auto classes on the directory that `maskedlm export --to hf` wrote, batches
padded to their longest row, fused AdamW, linear warm-up and decay. Files,
rates and sizes come from maskedlm's config. Needs the extra `peer`, and seqeval
(extra `test`). In order: a job, training, the three tasks.

PyTorch's threads spin while they wait: on a machine with other work set
OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0. To measure times, the machine must be
idle instead.
"""

import itertools
import json
import math
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import seqeval.metrics
import torch
import transformers
from sklearn.metrics import accuracy_score, f1_score

from maskedlm.finetune.question_answering import metrics as squad_metrics

# transformers' options of BERT and ModernBERT -> maskedlm's.
DROPOUTS = {
  "attention_probs_dropout_prob": "attention_dropout",
  "attention_dropout": "attention_dropout",
  "hidden_dropout_prob": "dropout",
  "mlp_dropout": "dropout",
  "embedding_dropout": "dropout",
  "classifier_dropout": "dropout",
}
IGNORED = -100  # transformers' label for positions without loss.
Features = list[dict[str, Any]]  # One dict a row, not padded.


class Task(NamedTuple):
  """What the training loop needs from a task."""

  model_class: Any
  num_labels: int
  rows: Features
  collate: Callable[[Features], dict[str, torch.Tensor]]
  score: Callable[[Any], dict[str, float]]  # model -> metrics.


def run(job: dict[str, Any]) -> dict[str, Any]:
  """Trains and scores a job; returns what finetune.py records."""
  config = job["config"]
  torch.set_num_threads(len(os.sched_getaffinity(0)))
  torch.manual_seed(config["seed"])
  tokenizer = transformers.AutoTokenizer.from_pretrained(job["hf"])
  task = TASKS[config["task"]["kind"]](config, tokenizer)
  model = load(job["hf"], task.model_class, task.num_labels, config["model"])
  difference = start_difference(model, tokenizer, job["start"])
  wall, cpu = time.perf_counter(), time.process_time()
  steps = train(model, task, config)
  seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
  metrics = task.score(model)
  wall = time.perf_counter()
  task.score(model)
  return {
    "seconds": seconds,
    "cpu_seconds": cpu_seconds,
    "predict_seconds": time.perf_counter() - wall,
    "steps": steps,
    "rows": len(task.rows),
    "start_difference": difference,
    "metrics": metrics,
  }


def load(folder: str, model_class, num_labels: int, options: dict):
  """Returns the exported encoder with a new head and maskedlm's dropout."""
  config = transformers.AutoConfig.from_pretrained(
    folder, num_labels=num_labels
  )
  for name, ours in DROPOUTS.items():
    if hasattr(config, name):
      setattr(config, name, options[ours])
  if model_class is transformers.AutoModelForQuestionAnswering:
    config.classifier_dropout = (
      0.0  # BERT's head has none, nor does maskedlm's.
    )
  return model_class.from_pretrained(folder, config=config)


def start_difference(model, tokenizer, path: str) -> float:
  """Returns how far its last layer's vectors are from maskedlm's at the start.

  Args:
    model, tokenizer: as loaded.
    path: .npz file of finetune_rows.write_start.

  Raises:
    AssertionError: the two don't start from the same vectors.
  """
  with np.load(path) as ours:
    texts, hidden, lengths = ours["texts"], ours["hidden"], ours["lengths"]
  model.eval()
  most = 0.0
  for (a, b), wanted, length in zip(texts, hidden, lengths, strict=True):
    row = tokenizer(str(a), str(b), truncation=True, max_length=hidden.shape[1])
    with torch.no_grad():
      batch = {name: torch.tensor([ids]) for name, ids in row.items()}
      vectors = model.base_model(**batch)[0][0].numpy()
    assert len(vectors) == length, "its tokens are not maskedlm's"
    most = max(most, float(np.abs(vectors - wanted[:length]).max()))
  assert most < 1e-4, f"its encoder is not maskedlm's: they differ by {most}"
  return most


def train(model, task: Task, config: dict[str, Any]) -> int:
  """Trains as the example scripts do; returns the number of steps."""
  o = config["optimizer"]
  loader = torch.utils.data.DataLoader(
    task.rows,
    batch_size=config["data"]["batch_size"],
    shuffle=True,
    collate_fn=task.collate,
  )
  epochs = config["train"]["epochs"]  # May be fractional, as in maskedlm.
  num_steps = max(math.ceil(epochs * len(loader)), 1)
  no_decay = ("bias", "norm")
  groups: tuple[list, list] = ([], [])
  for name, parameter in model.named_parameters():
    groups[any(x in name.lower() for x in no_decay)].append(parameter)
  decayed, undecayed = (
    {"params": group, "weight_decay": 0.0} for group in groups
  )
  decayed["weight_decay"] = o["weight_decay"]
  rates = {"lr": o["learning_rate"], "betas": (o["b1"], o["b2"])}
  # Fused, as in the Trainer.
  adamw = torch.optim.AdamW(
    [decayed, undecayed], **rates, eps=o["eps"], fused=True
  )
  schedule = transformers.get_linear_schedule_with_warmup(
    adamw, round(config["optimizer"]["warmup_steps"] * num_steps), num_steps
  )
  model.train()
  # Each pass over the loader shuffles again.
  batches = itertools.chain.from_iterable(itertools.repeat(loader))
  for step, batch in enumerate(itertools.islice(batches, num_steps), 1):
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip_norm"])
    adamw.step()
    schedule.step()
    adamw.zero_grad()
    if step % config["train"]["log_every"] == 0:
      print(f"step {step:,}/{num_steps:,} | loss {float(loss):.3f}")
  return num_steps


def predict(model, rows: Features, collate, batch_size: int = 32) -> list:
  """Returns the outputs of each row, in their order.

  Rows of similar length share a batch, so that there is little padding.
  """
  model.eval()
  order = np.argsort([len(row["input_ids"]) for row in rows], kind="stable")
  results: list = [None] * len(rows)
  for begin in range(0, len(order), batch_size):
    indices = order[begin : begin + batch_size]
    with torch.no_grad():
      outputs = model(**collate([rows[i] for i in indices])).to_tuple()
    for i, *values in zip(indices, *(x.numpy() for x in outputs), strict=True):
      results[i] = values
  return results


# --- Classification, as in run_glue.py ---


def classification(config: dict[str, Any], tokenizer) -> Task:
  """Returns the task of labelling a text or a pair."""
  data = config["data"]
  train_set, dev_set = (
    [json.loads(line) for line in lines_of(data[part])]
    for part in ("train", "dev")
  )
  labels = sorted({example["label"] for example in train_set})

  def encode(examples) -> Features:
    names = [name for name in ("text", "text_b") if name in examples[0]]
    texts = ([e[name] for e in examples] for name in names)
    return by_row(tokenizer(*texts, truncation=True, max_length=data["length"]))

  rows = encode(train_set)
  for row, example in zip(rows, train_set, strict=True):
    row["labels"] = labels.index(example["label"])
  collate = transformers.DataCollatorWithPadding(tokenizer)
  dev_rows = encode(dev_set)

  def score(model) -> dict[str, float]:
    outputs = predict(model, dev_rows, collate)
    predicted = [labels[int(np.argmax(logits))] for (logits,) in outputs]
    gold = [example["label"] for example in dev_set]
    return {
      "accuracy": float(accuracy_score(gold, predicted)),
      "f1": float(f1_score(gold, predicted, pos_label=labels[1])),
    }

  head = transformers.AutoModelForSequenceClassification
  return Task(head, len(labels), rows, collate, score)


# --- Tagging, as in run_ner.py ---


def tagging(config: dict[str, Any], tokenizer) -> Task:
  """Returns the task of tagging words, at their first subwords."""
  data = config["data"]
  train_set, dev_set = (read_conll(data[part]) for part in ("train", "dev"))
  labels = sorted({tag for _, tags in train_set for tag in tags})
  assert config["task"]["decode"] == "words"

  def encode(sentences) -> tuple[Features, list[list[int | None]]]:
    """Returns (rows, index of each word's first token or None if cut off)."""
    words = [words for words, _ in sentences]
    options = {"truncation": True, "max_length": data["length"]}
    encoding = tokenizer(words, is_split_into_words=True, **options)
    places = []
    for i, of_row in enumerate(words):
      first: list[int | None] = [None] * len(of_row)
      for place, word in reversed([*enumerate(encoding.word_ids(i))]):
        if word is not None:
          first[word] = place
      places.append(first)
    return by_row(encoding), places

  rows, places = encode(train_set)
  for row, first, (_, tags) in zip(rows, places, train_set, strict=True):
    row["labels"] = [IGNORED] * len(row["input_ids"])
    for place, tag in zip(first, tags, strict=True):
      if place is not None:
        row["labels"][place] = labels.index(tag)
  collate = transformers.DataCollatorForTokenClassification(tokenizer)
  dev_rows, dev_places = encode(dev_set)

  def score(model) -> dict[str, float]:
    pad = transformers.DataCollatorWithPadding(tokenizer)
    outputs = predict(model, dev_rows, pad)
    predicted = []
    for first, (logits,) in zip(dev_places, outputs, strict=True):
      tags = [labels[i] for i in np.argmax(logits, axis=-1)]
      predicted.append(
        ["O" if place is None else tags[place] for place in first]
      )
    gold = [tags for _, tags in dev_set]
    if config["task"]["task"] == "ner":
      return {"f1": float(seqeval.metrics.f1_score(gold, predicted))}
    return {"accuracy": float(seqeval.metrics.accuracy_score(gold, predicted))}

  head = transformers.AutoModelForTokenClassification
  return Task(head, len(labels), rows, collate, score)


def read_conll(path: str) -> list[tuple[list[str], list[str]]]:
  """Reads (words, tags) of each sentence of a file with two columns."""
  sentences: list = []
  block: list = []
  for line in [*lines_of(path), ""]:
    if line:
      block.append(line.split("\t"))
    elif block:
      words, tags = zip(*block, strict=True)
      sentences.append((list(words), list(tags)))
      block = []
  return sentences


# --- Question answering, as in run_qa.py ---

N_BEST, LONGEST_ANSWER = 20, 30
# Tokens that two windows of a text share. maskedlm has the stride instead, 80
# tokens: with questions of 16 tokens on average that makes about as many rows.
OVERLAP = 32


def question_answering(config: dict[str, Any], tokenizer) -> Task:
  """Returns the task of finding answers in windows of the text."""
  data = config["data"]
  train_set, dev_set = (read_squad(data[part]) for part in ("train", "dev"))

  def encode(questions):
    """Returns (rows, their questions, character spans of tokens or None)."""
    encoding = tokenizer(
      [q["question"] for q in questions],
      [q["context"] for q in questions],
      truncation="only_second",
      max_length=data["length"],
      stride=OVERLAP,
      return_overflowing_tokens=True,
      return_offsets_mapping=True,
    )
    offsets = [
      [
        place if part == 1 else None
        for place, part in zip(row, encoding.sequence_ids(i), strict=True)
      ]
      for i, row in enumerate(encoding["offset_mapping"])
    ]
    return by_row(encoding), encoding["overflow_to_sample_mapping"], offsets

  rows, owners, offsets = encode(train_set)
  for row, owner, places in zip(rows, owners, offsets, strict=True):
    span = answer_span(train_set[owner]["answers"][0], places)
    row["start_positions"], row["end_positions"] = span
  collate = transformers.DataCollatorWithPadding(tokenizer)
  dev_rows, dev_owners, dev_offsets = encode(dev_set)

  def score(model) -> dict[str, float]:
    best: dict[int, tuple[float, str]] = {}
    outputs = predict(model, dev_rows, collate)
    for owner, places, (start, end) in zip(
      dev_owners, dev_offsets, outputs, strict=True
    ):
      context = dev_set[owner]["context"]
      for answer in answers_of(start, end, places, context):
        best[owner] = max(best.get(owner, answer), answer)
    return squad_metrics.evaluate_v1(
      {q["id"]: [a["text"] for a in q["answers"]] for q in dev_set},
      {dev_set[i]["id"]: text for i, (_, text) in best.items()},
    )

  return Task(
    transformers.AutoModelForQuestionAnswering, 2, rows, collate, score
  )


def read_squad(path: str) -> list[dict[str, Any]]:
  """Reads the questions of a file, each with its context."""
  articles = json.loads(pathlib.Path(path).read_text("utf-8"))["data"]
  return [
    {**question, "context": paragraph["context"]}
    for article in articles
    for paragraph in article["paragraphs"]
    for question in paragraph["qas"]
  ]


def answer_span(answer: dict[str, Any], places: Sequence) -> tuple[int, int]:
  """Returns the answer's first and last token; (0, 0), [CLS], if absent."""
  begin = answer["answer_start"]
  end = begin + len(answer["text"])
  context = [i for i, place in enumerate(places) if place is not None]
  if places[context[0]][0] > begin or places[context[-1]][1] < end:
    return 0, 0
  return (
    max(i for i in context if places[i][0] <= begin),
    min(i for i in context if places[i][1] >= end),
  )


def answers_of(start, end, places: Sequence, context: str):
  """Yields (score, text) of the spans among the best starts and ends."""
  for first in np.argsort(start)[: -N_BEST - 1 : -1]:
    for last in np.argsort(end)[: -N_BEST - 1 : -1]:
      if (
        len(places) > max(first, last)  # Not padding.
        and places[first] is not None
        and places[last] is not None
        and first <= last < first + LONGEST_ANSWER
      ):
        text = context[places[first][0] : places[last][1]]
        yield float(start[first] + end[last]), text


# --- Shared by the tasks ---


def by_row(encoding) -> Features:
  """Returns the model's inputs for each row."""
  names = [n for n in encoding if n.endswith(("_ids", "_mask"))]
  return [
    dict(zip(names, row, strict=True))
    for row in zip(*(encoding[name] for name in names), strict=True)
  ]


def lines_of(path: str) -> list[str]:
  """Returns the lines, ended by line feeds alone: words may have the rest."""
  text = pathlib.Path(path).read_bytes().decode("utf-8")
  return text.removesuffix("\n").split("\n")


TASKS = {
  "classification": classification,
  "tagging": tagging,
  "question_answering": question_answering,
}


def main() -> None:
  path = pathlib.Path(sys.argv[1])
  job = json.loads(path.read_text("utf-8"))
  transformers.logging.set_verbosity_error()
  pathlib.Path(job["out"]).write_text(json.dumps(run(job)), "utf-8")


if __name__ == "__main__":
  main()
