"""Defines what finetune.py compares: tasks, recipes, and the shared data.

Subsets are drawn once and written in plain formats, which maskedlm and the peer
read each with their own code. In order: the tasks, a run's config, the
examples, the vectors from which both start.
"""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.data import hashing
from maskedlm.data.batches.text_pairs import pair_row
from maskedlm.data.labelled import columns
from maskedlm.finetune import config as base
from maskedlm.modeling import masked_lm
from maskedlm.training.checkpoints import load

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path(
  os.environ.get("MASKEDLM_DATA", HERE.parent.parent / "shared" / "data")
)
OURS, PEER, SCRATCH = "ours", "transformers", "scratch"
FEATURES, PADDED = "features", "padded"
ONCE = 1e-6  # Evaluations in an epoch; the last step has one too.


class Row(NamedTuple):
  """A task of the table. Files are under DATA; 0 examples means all."""

  title: str
  task: str
  train: str
  train_examples: int
  epochs: int
  learning_rate: float
  metrics: tuple[str, ...]
  dev: str = ""  # If empty, a tenth of the training file, by its texts.
  dev_examples: int = 0
  batch_size: int = 32
  length: int = 128
  source: Mapping[str, Any] = {}  # Task options for reading the files.
  task_options: Mapping[str, Any] = {}  # config.task.NAME -> value.
  contenders: tuple[str, ...] = (OURS, PEER, SCRATCH)


ROWS = {
  "mrpc": Row(
    title="MRPC",
    task="classification",
    train="glue/MRPC/train.tsv",
    dev="glue/MRPC/dev.tsv",
    train_examples=0,
    epochs=3,
    learning_rate=1e-4,
    metrics=("accuracy", "f1"),
    source={"layout": "mrpc"},
    task_options={"text_b": "text_b"},
    contenders=(OURS, PEER, PADDED, SCRATCH),
  ),
  "sst2": Row(
    title="SST-2",
    task="classification",
    train="glue/SST-2/train.tsv",
    train_examples=10_000,
    dev_examples=2_000,
    epochs=2,
    learning_rate=3e-4,
    metrics=("accuracy",),
    length=64,
    source={"layout": "sst2"},
  ),
  "ner": Row(
    title="WNUT-17 NER",
    task="tagging",
    train="ner/wnut17/wnut17train.conll",
    dev="ner/wnut17/emerging.dev.conll",
    train_examples=0,
    epochs=4,
    learning_rate=5e-4,
    batch_size=16,
    metrics=("f1",),
    task_options={"decode": "words"},
    contenders=(OURS, PEER, SCRATCH, FEATURES),
  ),
  "pos": Row(
    title="EWT POS",
    task="tagging",
    train="ud_pos/English-EWT/en_ewt-ud-train.rebuilt.conllu",
    dev="ud_pos/English-EWT/en_ewt-ud-dev.conllu",
    train_examples=4_000,
    epochs=3,
    learning_rate=5e-4,
    metrics=("accuracy",),
    source={"task": "pos"},
    task_options={"task": "pos", "decode": "words"},
  ),
  "squad": Row(
    title="SQuAD 1.1",
    task="question_answering",
    train="squad/train-v1.1.json",
    train_examples=1_500,
    dev_examples=400,
    epochs=2,
    learning_rate=3e-4,
    metrics=("exact_match", "f1"),
    task_options={"stride": 80},
  ),
}


def missing(names: Sequence[str]) -> pathlib.Path | None:
  """Returns a training file of these rows that is absent, if one is."""
  files = (DATA / ROWS[name].train for name in names)
  return next((file for file in files if not file.is_file()), None)


def configure(
  name: str, contender: str, seed: int, *, files: Sequence[str], encoder: str
):
  """Returns the config of a run, which the peer reads too."""
  row = ROWS[name]
  config = base.default(FEATURES if contender == FEATURES else row.task)
  config.name = f"{name}-{contender}-seed{seed}"
  config.seed = seed
  config.init_from = encoder
  config.pretrained = contender != SCRATCH
  config.task.update(row.task_options)
  config.data.update(length=row.length, batch_size=row.batch_size)
  config.data.train, config.data.dev = files
  config.optimizer.learning_rate = row.learning_rate
  config.train.update(epochs=row.epochs, evals_per_epoch=ONCE)
  if contender == PADDED:
    config.data.pack = False
  if (
    contender == FEATURES
  ):  # As in configs/features.py, but as wide as the encoder.
    config.task.lstm_width = 256
    config.optimizer.update(frozen_layers=-1, learning_rate=1e-3)
    config.train.epochs = 8
  return config


# --- The same data and the same encoder for both ---


def write_examples(name: str, folder: pathlib.Path, scale: float):
  """Writes the examples of a row; returns the files (train, dev).

  Args:
    name: of ROWS.
    folder: for the files.
    scale: share of the examples to write, at least 64 of them.
  """
  row = ROWS[name]
  task = base.make_task(row.task, row.source)
  examples = task.read_examples(str(DATA / row.train))
  if row.dev:
    dev = task.read_examples(str(DATA / row.dev))
  else:
    is_dev = [
      hashing.uniform(0, "dev", task.split_key(e)) < 0.1 for e in examples
    ]
    dev = [e for e, held in zip(examples, is_dev, strict=True) if held]
    examples = [e for e, held in zip(examples, is_dev, strict=True) if not held]
  write, ending = WRITERS[row.task]
  files = []
  for part, chosen, count in (
    ("train", examples, row.train_examples),
    ("dev", dev, row.dev_examples),
  ):
    size = max(round((count or len(chosen)) * scale), 64)
    file = folder / f"{name}.{part}{ending}"
    file.write_bytes(write(draw(chosen, size)).encode("utf-8"))
    files.append(str(file))
  return tuple(files)


def draw(examples: list, count: int) -> list:
  """Returns `count` random examples, in their order."""
  key = hashing.bits(0, "draw")
  place = hashing.permute(np.arange(len(examples)), len(examples), key)
  return [x for x, p in zip(examples, place, strict=True) if p < count]


def texts(examples) -> str:
  """Returns JSON lines."""
  names = ("text", "text_b", "label")
  records = ({n: getattr(e, n) for n in names} for e in examples)
  return "".join(
    json.dumps({n: x for n, x in record.items() if x is not None}) + "\n"
    for record in records
  )


def sentences(examples) -> str:
  """Returns CoNLL columns."""
  return columns.format_columns([(e.words, e.tags) for e in examples])


def questions(examples) -> str:
  """Returns JSON in SQuAD's format."""
  paragraphs: dict[str, list] = {}
  for e in examples:
    answers = [{"text": a.text, "answer_start": a.start} for a in e.answers]
    paragraphs.setdefault(e.context, []).append(
      {"id": e.id, "question": e.question, "answers": answers}
    )
  records = [{"context": c, "qas": qas} for c, qas in paragraphs.items()]
  return json.dumps({"version": "1.1", "data": [{"paragraphs": records}]})


WRITERS = {
  "classification": (texts, ".jsonl"),
  "tagging": (sentences, ".conll"),
  "question_answering": (questions, ".json"),
}


# Pairs of words, names and signs, of different lengths.
TEXTS = (
  ("The cat sat on the mat.", "It did n't sit there for long , did it ?"),
  ("U.S. shares rose 2.5 % on Monday", "Yucaipa sold 'em for $ 1.8 billion!"),
  ("Ångström's naïve café", 'She said: "no".'),
)


def write_start(
  encoder: str,
  path: pathlib.Path,
  *,
  length: int = 48,
  pairs: Sequence[tuple[str, str]] = TEXTS,
) -> None:
  """Writes pairs of texts and maskedlm's vectors, for the peer to check.

  Arrays: texts [n, 2], hidden [n, length, D] of the last layer, lengths [n].
  """
  start = load.open_best(encoder)
  ids, types, real = np.zeros((3, len(pairs), length), np.int32)
  for i, pair in enumerate(pairs):
    a, b = start.tokenizer.encode_batch(list(pair))
    row = pair_row(
      *(start.tokenizer, a, b, length),
      separators=start.cfg.pair_separators,
      num_types=start.cfg.type_vocab_size,
    )
    size = len(row[0])
    ids[i, :size], types[i, :size], real[i, :size] = row[0], row[1], 1
  batch = {"input_ids": ids, "token_type_ids": types, "segment_ids": real}
  hidden = masked_lm.encode(start.cfg, start.params, batch, None, False)
  np.savez(
    path,
    texts=np.array(pairs),
    hidden=np.asarray(hidden),
    lengths=real.sum(axis=1),
  )
