"""Measures the input pipeline on one core: preparing, and making batches.

  python benchmarks/input_pipeline.py --megabytes 8 --json FILE

prepare: MB of text a second with one worker, from the file to the finished
corpus on disk, with a given tokenizer; WordPiece with and without nanotoken, if
that is installed. Peer: the bare tokenizer library (tokenizers, sentencepiece)
on the same lines on one thread, keeping nothing.

batch_at: real tokens a second (without padding) in batches of 256 rows of
sentence pairs, from a memory-mapped corpus of 50 million random tokens in
several shards. Peer: a simple builder that makes row after row from the same
row table and arrays with numpy slices.

Contenders take turns, so that other work on the machine affects both; medians
are reported.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from unittest import mock

from maskedlm.data.corpus import concat

# Set before the import: the library must use one thread, as a worker does.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import arguments
import numpy as np
import sentencepiece
import this_machine
import tokenizers
import trained

from maskedlm.config import defaults as config_lib
from maskedlm.data.batches import pair_rows, pair_table
from maskedlm.data.corpus import store
from maskedlm.data.prepare import prepare
from maskedlm.data.sources import reader
from maskedlm.data.tokenizers import fast_wordpiece

NUM_TOKENS = 50_000_000
SHARD_TOKENS = 1 << 23
BATCH_SIZE = 256
SHORT_SHARE = 0.1


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--megabytes",
    type=arguments.amount,
    default=8,
    help="of text to prepare, at most",
  )
  parser.add_argument(
    "--repeats", type=arguments.count, default=3, help="of prepare"
  )
  parser.add_argument("--json", **arguments.TABLE)
  return parser.parse_args(argv)


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  print(f"{machine()}\n")
  with tempfile.TemporaryDirectory() as directory:
    directory = pathlib.Path(directory)
    text, name = write_text(directory / "text.txt", args.megabytes * 1e6)
    by_kind = {
      kind: train_tokenizer(text, directory / kind, kind)
      for kind in ("wordpiece", "unigram")
    }
    table = [
      compare_prepare(text, name, mode, directory / kind, by, args.repeats)
      for kind, by in ways()
      for mode in ("lines", "split")
    ]
    corpus = random_corpus(directory / "random", by_kind["wordpiece"])
    table += [compare_batches(corpus, length) for length in (128, 512)]
  print("\n| work | ours | peer | ratio | unit |\n|---|---|---|---|---|")
  for row in table:
    print(
      f"| {row['work']} | {row['ours']:.2f} | {row['peer']:.2f} |"
      f" {row['ratio']:.2f} | {row['unit']} |"
    )
  if args.json:
    with args.json.open("w", encoding="utf-8") as file:
      json.dump(table, file, indent=2)


def machine() -> str:
  """Returns a description of this machine."""
  python = f"Python {platform.python_version()}"
  versions = this_machine.versions("numpy", "tokenizers")
  return f"{this_machine.cpu()}; {python}, {versions}"


def record(work: str, ours: list[float], peer: list[float], unit: str) -> dict:
  """Returns a row of the table, from the rates of each turn."""
  ours, peer = statistics.median(ours), statistics.median(peer)
  return {
    "work": work,
    "ours": ours,
    "peer": peer,
    "ratio": ours / peer,
    "unit": unit,
  }


def seconds(run: Callable[[], None]) -> float:
  """Returns the wall time of a call."""
  start = time.perf_counter()
  run()
  return time.perf_counter() - start


# prepare


def write_text(
  path: pathlib.Path, num_bytes: float
) -> tuple[pathlib.Path, str]:
  """Writes at most num_bytes of whole documents; returns (path, title)."""
  source = trained.text_source()
  written = 0
  with open(path, "w", encoding="utf-8") as file:
    for lines in reader.read_documents(source, text_field="", report=Counter()):
      document = "".join(line + "\n" for line in lines) + "\n"
      written += len(document.encode())
      if written > num_bytes:
        break
      file.write(document)
  kind = "novels" if source.startswith("text:") else "docstrings"
  return path, f"{path.stat().st_size / 1e6:.1f} MB of {kind}"


def configure(text: pathlib.Path, *, mode: str, tokenizer: pathlib.Path):
  """Returns the config that prepares the text with one worker."""
  config = config_lib.default("mlm_nsp")
  config.corpus.source = f"text:{text}"
  config.corpus.sentences = mode
  config.corpus.num_workers = 1
  config.tokenizer.path = str(tokenizer)
  return config


def train_tokenizer(text: pathlib.Path, path: pathlib.Path, kind: str):
  """Returns a tokenizer of that kind, trained on the text itself."""
  config = configure(text, mode="lines", tokenizer="")
  config.tokenizer.kind = kind
  config.tokenizer.vocab_size = {"wordpiece": 30_522, "unigram": 8_000}[kind]
  return prepare.train_tokenizer(config, path)


def ways() -> list[tuple[str, str]]:
  """Returns [(kind of tokenizer, library that prepare uses for it)]."""
  pairs = [("wordpiece", "tokenizers"), ("unigram", "sentencepiece")]
  if importlib.util.find_spec("nanotoken"):
    pairs.insert(0, ("wordpiece", "nanotoken"))
  return pairs


def compare_prepare(text, name, mode, tokenizer, by, repeats) -> dict:
  """Compares MB/s of prepare with one worker and of the library alone."""
  megabytes = text.stat().st_size / 1e6
  config = configure(text, mode=mode, tokenizer=tokenizer)
  config.tokenizer.kind = tokenizer.name
  lines = text.read_text(encoding="utf-8").splitlines()
  directory = tokenizer.parent
  peer = LIBRARIES[tokenizer.name](tokenizer, lines)

  def ours():
    slow = mock.patch.object(fast_wordpiece, "make_encoder", lambda *_: None)
    with slow if by == "tokenizers" else contextlib.nullcontext():
      prepare.prepare(config, directory / "corpus", log=lambda line: None)

  rates = {ours: [], peer: []}
  for _ in range(repeats):
    for run, values in rates.items():
      shutil.rmtree(directory / "corpus", ignore_errors=True)
      values.append(megabytes / seconds(run))
  work = f"prepare, {tokenizer.name} by {by}, sentences={mode}, {name}"
  return record(work, rates[ours], rates[peer], "MB/s")


def wordpiece(tokenizer: pathlib.Path, lines: list[str]):
  """Returns a call that encodes the lines with tokenizers alone."""
  library = tokenizers.Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
  return lambda: library.encode_batch_fast(lines, add_special_tokens=False)


def unigram(tokenizer: pathlib.Path, lines: list[str]):
  """Returns a call that encodes the lines with sentencepiece alone."""
  (model,) = tokenizer.glob("*.model")
  library = sentencepiece.SentencePieceProcessor(model_file=str(model))
  return lambda: library.encode(lines, num_threads=1)


LIBRARIES = {"wordpiece": wordpiece, "unigram": unigram}


# batch_at


def random_corpus(path: pathlib.Path, tokenizer) -> store.Corpus:
  """Writes documents of 2 to 99 sentences of 5 to 45 random tokens."""
  rng = np.random.default_rng(0)

  def documents() -> Iterator[tuple[str, list[np.ndarray]]]:
    written = 0
    while written < NUM_TOKENS:
      ends = np.cumsum(rng.integers(5, 46, rng.integers(2, 100)))
      tokens = rng.integers(5, tokenizer.vocab_size, ends[-1], dtype=np.int32)
      yield "train", np.split(tokens, ends[:-1])
      written += len(tokens)

  return store.write_corpus(
    path,
    documents(),
    tokenizer=tokenizer,
    shard_tokens=SHARD_TOKENS,
    options={},
    report=Counter(),
  )


def compare_batches(corpus: store.Corpus, length: int) -> dict:
  """Compares tokens/s of batch_at and of building row after row."""
  config = config_lib.default("mlm_nsp")
  config.data.update(length=length, batch_size=BATCH_SIZE)
  config.train.update(num_steps=1, eval_rows=0)
  batches = pair_rows.nsp_batches(
    config, corpus, (0, 1), short_share=SHORT_SHARE
  )
  opened = pair_table.open_pair_table(
    corpus, "train", length=length, short_share=SHORT_SHARE, seed=0
  )
  one_row = row_builder(opened, corpus.tokenizer.special)
  order = random.Random(0)

  def ours(step):
    return batches.batch_at("train", step)

  def peer(step):
    chosen = [order.randrange(len(opened.table)) for _ in range(BATCH_SIZE)]
    built = [one_row(row) for row in chosen]
    return {name: np.stack([row[name] for row in built]) for name in built[0]}

  rates = {ours: [], peer: []}
  for step in range(60):
    for build, values in rates.items():
      start = time.perf_counter()
      batch = build(step)
      elapsed = time.perf_counter() - start
      values.append(int(batch["segment_ids"].sum()) / elapsed / 1e6)
  work = f"batch_at, L={length}, B={BATCH_SIZE}"
  return record(work, rates[ours], rates[peer], "million tokens/s")


def row_builder(opened: pair_table.PairTable, special) -> Callable[[int], dict]:
  """Returns a function row -> arrays, in plain Python and numpy."""
  rng = random.Random(1)
  table, length = opened.table, opened.length
  # In memory and in one piece, which makes it easier for the peer.
  every = np.arange(concat.size(opened.split.sentences))
  starts = concat.take(opened.split.sentences, every)
  tokens = np.concatenate(opened.split.tokens.arrays)

  def split_point(record) -> int:
    first, count = int(record["sentence"]), int(record["num_sentences"])
    if count > 1:
      return int(starts[first + rng.randint(1, count - 1)])
    begin = int(record["token"])
    return begin + rng.randint(1, int(record["num_tokens"]) - 1)

  def one_row(row: int) -> dict[str, np.ndarray]:
    record = table[row]
    begin, split = int(record["token"]), split_point(record)
    a = tokens[begin:split]
    label = int(rng.random() < 0.5)
    if label:
      other = rng.randrange(len(table))
      while table[other]["document_row"] == record["document_row"]:
        other = rng.randrange(len(table))
      target = length - 3
      if rng.random() < opened.short_share:
        target = rng.randint(2, length - 3)
      b_begin = split_point(table[other])
      end = np.searchsorted(starts, b_begin + max(target - len(a), 1))
      b_end = min(int(starts[end]), int(table[other]["document_end"]))
      b = tokens[b_begin:b_end]
    else:
      b = tokens[split : begin + int(record["num_tokens"])]
    while len(a) + len(b) > length - 3:
      front = rng.random() < 0.5
      if len(a) > len(b):
        a = a[1:] if front else a[:-1]
      else:
        b = b[1:] if front else b[:-1]
    input_ids = np.full(length, special.pad, np.int32)
    token_type_ids = np.zeros(length, np.int32)
    segment_ids = np.zeros(length, np.int32)
    a_sep, b_sep = len(a) + 1, len(a) + len(b) + 2
    input_ids[0] = special.cls
    input_ids[1:a_sep] = a
    input_ids[a_sep] = special.sep
    input_ids[a_sep + 1 : b_sep] = b
    input_ids[b_sep] = special.sep
    token_type_ids[a_sep + 1 : b_sep + 1] = 1
    segment_ids[: b_sep + 1] = 1
    return {
      "input_ids": input_ids,
      "token_type_ids": token_type_ids,
      "segment_ids": segment_ids,
      "nsp_labels": np.int32(label),
    }

  return one_row


if __name__ == "__main__":
  main()
