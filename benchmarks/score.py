"""Times pseudo-log-likelihoods: batched over masks, and one call a token.

  python benchmarks/score.py --json FILE
  python benchmarks/score.py --checkpoint runs/own --input texts.txt

All read the same texts with the same model: by default BERT of 2 layers x 128,
trained for a few steps, which does not change the speed. "one row" is the
plain loop, whose calls have one row, a copy of the text with one mask;
"fill_mask" is a loop over Model.fill_mask, with its candidates; "transformers"
is the plain loop through the exported model, if the extra `peer` is installed.
Every shape is compiled before the clock starts. The time is that of the clock
and, for machines that other work shares, of the processor.
docs/results/score.md has the table.
"""

import argparse
import itertools
import pathlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator

import arguments
import numpy as np
import peer_process
import table
import trained

import maskedlm
from maskedlm.data.labelled import text_lines
from maskedlm.data.sources import reader
from maskedlm.inference import rows, token_model
from maskedlm.inference.batch_tokens import BATCH_TOKENS
from maskedlm.inference.score import texts
from maskedlm.inference.score.rows import make_row_cutter
from maskedlm.interop.huggingface import exporter

CONFIG = "bert.py:tiny"
OPTIONS = {  # Of `maskedlm pretrain`, if no checkpoint is given.
  "corpus.source": "docstrings:json,email,unittest",
  "tokenizer.vocab_size": 8_192,
  "data.length": 64,
  "train.num_steps": 4,
  "train.eval_rows": 0,
  "optimizer.warmup_steps": 1,
}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--checkpoint", help="default: a model is trained")
  parser.add_argument(
    "--input", help="a text on each line; default: novels, or docstrings"
  )
  parser.add_argument("--texts", type=arguments.count, default=512)
  parser.add_argument("--loop_texts", type=arguments.count, default=32)
  parser.add_argument(
    "--batch_tokens", type=arguments.count, default=BATCH_TOKENS
  )
  parser.add_argument("--json", **arguments.TABLE)
  return parser.parse_args(argv)


def main() -> None:
  """Measures, prints a table, writes the JSON."""
  args = parse()
  with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    checkpoint = args.checkpoint
    if not checkpoint:
      checkpoint = folder / "run"
      trained.pretrain(CONFIG, checkpoint, OPTIONS)
    model, theirs = maskedlm.load(checkpoint), None
    if why := peer_process.lacking():
      print(f"transformers: left out, {why}")
    else:
      exporter.export_huggingface(
        pathlib.Path(checkpoint), folder / "hf", part="", log=print
      )
      theirs = _load_peer(str(folder / "hf"))
  given = list(itertools.islice(_lines(args.input), args.texts))
  few = given[: args.loop_texts]
  scorer = token_model.make_token_model(
    model.opened, model.path, batch_tokens=args.batch_tokens
  )

  def batched():
    return [made.log_probabilities for made in texts.score(scorer, given)]

  found = {
    "batched": _time(batched),
    "one row": _time(lambda: [_one_row(scorer, text) for text in few]),
    "fill_mask": _time(lambda: [_fill(model, text) for text in few]),
  }
  if theirs:
    found["transformers"] = _time(
      lambda: [_one_call(theirs, model, text) for text in few]
    )
  apart = max(
    float(np.abs(a - b).max(initial=0))
    for other in found.keys() & {"one row", "transformers"}
    for a, b in zip(found["batched"][2], found[other][2], strict=False)
  )
  print(f"largest difference of two log-probabilities: {apart:.1e}")
  rates = {
    name: [sum(map(len, made)) / taken for taken in (clock, processor)]
    for name, (clock, processor, made) in found.items()
  }
  compared = [
    table.against(
      f"pseudo-log-likelihoods, batched, against {name} for each token",
      *(rates["batched"][i], rates[name][i], unit),
    )
    for name in list(rates)[1:]
    for i, unit in enumerate(("tokens/s", "tokens/s of CPU time"))
  ]
  print(table.show(compared))
  table.write(args.json, compared)


def _lines(path: str | None) -> Iterator[str]:
  """Yields lines of text that are not blank; novels or docstrings for None."""
  if path:
    lines = (text for _, text in text_lines.read_lines(path))
  else:
    documents = reader.read_documents(
      trained.text_source(), text_field="", report=Counter()
    )
    lines = itertools.chain.from_iterable(documents)
  return filter(str.strip, lines)


def _time(call: Callable) -> tuple[float, float, list]:
  """Returns the seconds by the clock and the processor's, and the result."""
  call()
  clock, processor = time.perf_counter(), time.process_time()
  made = call()
  return time.perf_counter() - clock, time.process_time() - processor, made


def _one_row(model: token_model.TokenModel, text: str) -> np.ndarray:
  """Returns the log-probabilities [n] of a text, one call for each."""
  cut = make_row_cutter(
    model.tokenizer, length=model.length, reads="both", pll="original"
  )
  log_probabilities = texts.make_log_probabilities(model.cfg)
  found = []
  for row, _ in cut(text, model.tokenizer.encode(text)):
    L = min(rows.power_of_2(len(row.ids)), model.length)
    batch = rows.pad_rows([row], 1, L, pad=model.tokenizer.special.pad)
    found.append(float(log_probabilities(model.params, batch)[0, 0]))
  return np.array(found, np.float32)


def _fill(model: maskedlm.Model, text: str) -> list[float]:
  """Returns the best candidate's probability for each token of a text."""
  return [
    model.fill_mask(f"{text[:begin]}[MASK]{text[end:]}", top=1)[0][0][1]
    for begin, end in model.tokenize(text).offsets
  ]


def _load_peer(folder: str):
  """Returns transformers' model of a folder, in eval mode."""
  import transformers

  return transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()


def _one_call(theirs, model: maskedlm.Model, text: str) -> np.ndarray:
  """Returns the log-probabilities [n] by transformers, one call for each."""
  import torch

  special = model.tokenizer.special
  ids = model.tokenize(text).ids.astype(np.int64)
  row = torch.tensor([special.cls, *ids, special.sep])
  found = []
  with torch.inference_mode():
    for i, token in enumerate(ids, 1):
      masked = row.clone()
      masked[i] = special.mask
      logits = theirs(input_ids=masked[None]).logits[0, i]
      found.append(float(torch.log_softmax(logits, -1)[token]))
  return np.array(found, np.float32)


if __name__ == "__main__":
  main()
