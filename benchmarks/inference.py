"""Times sentence vectors on a CPU: maskedlm, and other programs.

  python benchmarks/inference.py --checkpoint runs/minilm --texts 3000 --turns 5
  python benchmarks/inference.py --shape bert-base --texts 300

All read the same texts, sorted by length, with the same weights, and return the
mean of each text's tokens: maskedlm by Model.embed, the others in batches of 32
texts. "int8" is the second graph of `maskedlm export --to onnx --int8`. Each
has a process of its own, with --threads threads, and they take turns; the
numbers are medians. In the first pass over the texts, before the turns,
maskedlm compiles its shapes. Time is that of the clock and, for machines that
other work shares, of the processor, all threads together; use one thread there,
as onnxruntime's otherwise wait for each other without sleeping. Without
--checkpoint the model has random weights.
"""

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import itertools
import json
import multiprocessing
import os
import pathlib
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import arguments
import jax
import numpy as np
import table
import this_machine
import trained

from maskedlm.data.sources import reader
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.interop.huggingface import exporter
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import allocator
from maskedlm.training.checkpoints import write

PACKAGES = ("jax", "onnxruntime", "openvino", "torch", "transformers")
ROWS = 32  # A batch.
# Of all-MiniLM-L6-v2 and BERT-base.
SHAPES = {
  "minilm": {
    "num_layers": 6,
    "width": 384,
    "num_heads": 12,
    "mlp_width": 1_536,
  },
  "bert-base": {
    "num_layers": 12,
    "width": 768,
    "num_heads": 12,
    "mlp_width": 3_072,
  },
}
Embed = Callable[[Sequence[str]], np.ndarray]


class Turn(NamedTuple):
  """What reading all texts took."""

  seconds: float
  processor: float


# --- The contenders: each returns a function from texts to vectors ---


def load_maskedlm(folder: pathlib.Path, threads: int) -> Embed:
  """Loads the checkpoint."""
  import maskedlm

  os.environ["NPROC"] = str(threads)  # XLA reads it when it starts.
  model = maskedlm.load(folder / "checkpoint")
  return lambda texts: model.embed(texts, pool="mean", normalize=False)


def load_onnxruntime(name: str, folder: pathlib.Path, threads: int) -> Embed:
  """Loads a graph of the export."""
  import onnxruntime

  options = onnxruntime.SessionOptions()
  options.intra_op_num_threads = threads
  path = folder / "onnx" / "onnx" / name
  model = onnxruntime.InferenceSession(path, options)
  inputs = [x.name for x in model.get_inputs()]
  return of_graph(
    folder, inputs, lambda feed: model.run(["last_hidden_state"], feed)[0]
  )


def load_openvino(name: str, folder: pathlib.Path, threads: int) -> Embed:
  """Loads a graph of the export."""
  import openvino

  # Otherwise its matmuls are in bfloat16 where the CPU has it.
  options = {
    "INFERENCE_NUM_THREADS": threads,
    "INFERENCE_PRECISION_HINT": "f32",
  }
  path = folder / "onnx" / "onnx" / name
  model = openvino.Core().compile_model(path, "CPU", options)
  inputs = [x.any_name for x in model.inputs]
  return of_graph(folder, inputs, lambda feed: model(feed)["last_hidden_state"])


def of_graph(folder: pathlib.Path, inputs: Sequence[str], run) -> Embed:
  """Returns the Embed of a graph: run(feed of inputs) -> [B, L, D]."""
  from tokenizers import Tokenizer

  tokenizer = Tokenizer.from_file(str(folder / "onnx" / "tokenizer.json"))
  settings = json.loads((folder / "onnx/tokenizer_config.json").read_text())
  tokenizer.enable_truncation(settings["model_max_length"])
  tokenizer.enable_padding(
    pad_id=tokenizer.token_to_id(settings["pad_token"]),
    pad_token=settings["pad_token"],
  )

  def embed(texts):
    rows = tokenizer.encode_batch(texts)
    arrays = {
      "input_ids": np.array([row.ids for row in rows]),
      "token_type_ids": np.array([row.type_ids for row in rows]),
      "attention_mask": np.array([row.attention_mask for row in rows]),
    }
    x = run({name: arrays[name] for name in inputs})
    mask = arrays["attention_mask"][..., None].astype(np.float32)
    return (x * mask).sum(1) / mask.sum(1)

  return lambda texts: in_batches(embed, texts)


def load_transformers(folder: pathlib.Path, threads: int) -> Embed:
  """Loads the export to Hugging Face's format."""
  import torch
  from transformers import AutoModel, AutoTokenizer, logging

  logging.set_verbosity_error()  # The pooler, which is not used, is missing.
  torch.set_num_threads(threads)
  model = AutoModel.from_pretrained(folder / "hf").eval()
  tokenizer = AutoTokenizer.from_pretrained(folder / "hf")

  def embed(texts):
    feed = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
      x = model(**feed).last_hidden_state
      mask = feed["attention_mask"][..., None]
      return ((x * mask).sum(1) / mask.sum(1)).numpy()

  return lambda texts: in_batches(embed, texts)


def in_batches(embed: Embed, texts: Sequence[str]) -> np.ndarray:
  """Returns the vectors of texts, read ROWS at a time."""
  starts = range(0, len(texts), ROWS)
  return np.concatenate([embed(texts[i : i + ROWS]) for i in starts])


PEER = "transformers, PyTorch"
# Name -> (its packages, the function that loads it, its arguments).
CONTENDERS = {
  "maskedlm": ((), load_maskedlm, ()),
  "onnxruntime, float32": (("onnxruntime",), load_onnxruntime, ("model.onnx",)),
  "onnxruntime, int8": (
    ("onnxruntime",),
    load_onnxruntime,
    ("model_int8.onnx",),
  ),
  "openvino, float32": (("openvino",), load_openvino, ("model.onnx",)),
  PEER: (("torch", "transformers"), load_transformers, ()),
}


def contend(name: str, folder: pathlib.Path, texts, threads: int, pipe) -> None:
  """Loads a contender and answers each message with a Turn and the vectors."""
  os.environ["HF_HUB_OFFLINE"] = "1"
  start = time.perf_counter(), time.process_time()
  _, load, args = CONTENDERS[name]
  embed = load(*args, folder, threads)
  pipe.send(_taken(start))
  while pipe.recv():
    start = time.perf_counter(), time.process_time()
    vectors = embed(texts)
    pipe.send((_taken(start), vectors))


def _taken(start) -> Turn:
  wall, processor = start
  return Turn(time.perf_counter() - wall, time.process_time() - processor)


# --- The measurement ---


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  model = parser.add_mutually_exclusive_group()
  model.add_argument("--checkpoint", help="default: random weights")
  model.add_argument("--shape", choices=SHAPES, default="minilm")
  parser.add_argument("--texts", type=arguments.count, default=3_000)
  parser.add_argument("--turns", type=arguments.count, default=5)
  parser.add_argument(
    "--threads", type=arguments.count, default=len(os.sched_getaffinity(0))
  )
  parser.add_argument("--json", **arguments.TABLE)
  return parser.parse_args(argv)


def main() -> None:
  """Prints the table."""
  args = parse()
  texts = sorted(itertools.islice(read_texts(), args.texts), key=len)
  names = []
  for name, (packages, *_) in CONTENDERS.items():
    lacking = [p for p in packages if importlib.util.find_spec(p) is None]
    if lacking:
      print(f"left out: {name}: {', '.join(lacking)} is not installed")
    else:
      names.append(name)
  with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    prepare(args, folder, texts, names)
    rows = measure(names, folder, texts, args)
  print(
    f"\n{this_machine.cpu()}; {this_machine.versions(*PACKAGES)}; "
    f"{args.threads} threads, {len(texts):,} texts, {args.turns} turns\n"
  )
  print(
    "| | start, s | first pass, s | texts/s | processor, ms/text | cosine |\n"
    "|---|---:|---:|---:|---:|---:|"
  )
  for row in rows:
    print(
      f"| {row['name']} | {row['start']:.1f} | {row['first']:.1f} | "
      f"{row['texts_per_second']:.0f} | {row['processor_ms']:.2f} | "
      f"{row['cosine']:.4f} |"
    )
  print("\nstart, first pass: of the processor; cosine: the least of a text's")
  print("vector and maskedlm's")
  table.write(args.json, compare(rows))


def compare(rows: Sequence[dict]) -> list[table.Row]:
  """Returns the time of the processor for a text, against transformers'."""
  taken = {row["name"]: row["processor_ms"] for row in rows}
  peer = taken.pop(PEER, None)
  if peer is None:
    return [table.Row(name, ms, unit="ms") for name, ms in taken.items()]
  return [
    table.against(f"{name}, against transformers", ms, peer, "ms")
    for name, ms in taken.items()
  ]


def read_texts() -> Iterator[str]:
  """Yields the lines of the novels in shared/data, or else of docstrings."""
  documents = reader.read_documents(
    trained.text_source(), text_field="", report=Counter()
  )
  return itertools.chain.from_iterable(documents)


def prepare(args, folder: pathlib.Path, texts, names) -> None:
  """Makes what the contenders load: checkpoint, hf, onnx."""
  path = folder / "checkpoint"
  if args.checkpoint:
    path.symlink_to(pathlib.Path(args.checkpoint).absolute())
  else:
    save_random(path, texts, SHAPES[args.shape])
  options = {"part": "encoder", "log": lambda line: None}
  exporter.export_huggingface(path, folder / "hf", **options)
  if any(CONTENDERS[name][2] for name in names):
    from maskedlm.interop.onnx import exporter as onnx_exporter

    onnx_exporter.export_onnx(path, folder / "onnx", int8=True, **options)


def save_random(
  path: pathlib.Path, texts: Sequence[str], shape: Mapping[str, int]
) -> None:
  """Saves an encoder of this shape."""
  tokenizer = train_tokenizer(
    texts, kind="wordpiece", vocab_size=30_522, lowercase=True
  )
  tokenizer.save(path / "tokenizer")
  cfg = EncoderConfig(vocab_size=tokenizer.vocab_size, **shape)
  encoder = masked_lm.init_encoder(cfg, jax.random.key(0))
  write.write_workdir(
    path,
    {"encoder": jax.tree.map(np.asarray, encoder)},
    {"objective": "mlm_nsp", "encoder": dataclasses.asdict(cfg)},
    origin={},
    corpus="random",
    tokenizer=tokenizer.sha256,
    log=lambda line: None,
  )


def measure(names, folder: pathlib.Path, texts, args) -> list[dict]:
  """Returns a row of the table for each contender."""
  os.environ["GLIBC_TUNABLES"] = allocator.TUNABLES  # As `maskedlm` sets it.
  spawn = multiprocessing.get_context("spawn")
  pipes, starts = {}, {}
  for name in names:  # One after another: loading them uses all cores.
    pipes[name], theirs = spawn.Pipe()
    job = (name, folder, texts, args.threads, theirs)
    spawn.Process(target=contend, args=job, daemon=True).start()
    theirs.close()
    starts[name] = pipes[name].recv()

  def run(name: str) -> tuple[Turn, np.ndarray]:
    pipes[name].send(True)
    return pipes[name].recv()

  firsts = {name: run(name) for name in names}
  taken = {name: [] for name in names}
  for _ in range(args.turns):
    for name in names:
      taken[name].append(run(name)[0])
  for pipe in pipes.values():
    pipe.send(False)
  vectors = {name: unit(x) for name, (_, x) in firsts.items()}
  return [
    {
      "name": name,
      "start": starts[name].processor,
      "first": firsts[name][0].processor,
      "texts_per_second": len(texts)
      / statistics.median(turn.seconds for turn in taken[name]),
      "processor_ms": 1e3
      * statistics.median(turn.processor for turn in taken[name])
      / len(texts),
      "cosine": float((vectors[name] * vectors["maskedlm"]).sum(1).min()),
    }
    for name in names
  ]


def unit(x: np.ndarray) -> np.ndarray:
  """Returns vectors [n, D], each scaled to length 1."""
  return x / np.linalg.norm(x, axis=1, keepdims=True)


if __name__ == "__main__":
  main()
