"""Times pseudo-log-likelihoods: batched over masks, and one call a token.

  maskedlm export --checkpoint runs/quickstart --to hf --out exported
  python benchmarks/score.py --checkpoint runs/quickstart --input texts.txt \
    --peer exported

All read the same texts with the same model. "one row" is the plain loop, whose
calls have one row, a copy of the text with one mask; "fill_mask" is a loop over
Model.fill_mask, with its candidates; "transformers" is the plain loop through
the exported model. Every shape is compiled before the clock starts. The time is
that of the clock and, for machines that other work shares, of the processor.
docs/results/score.md has the table.
"""

import argparse
import itertools
import time
from collections.abc import Callable

import numpy as np

import maskedlm
from maskedlm.data.labelled import text_lines
from maskedlm.inference.score import rows, texts


def main() -> None:
  """Prints tokens per second of each way."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--checkpoint", required=True)
  parser.add_argument("--input", required=True, help="a text on each line")
  parser.add_argument("--peer", default="", help="the model as exported to hf")
  parser.add_argument("--texts", type=int, default=512)
  parser.add_argument("--loop_texts", type=int, default=32)
  parser.add_argument("--batch_tokens", type=int, default=texts.BATCH_TOKENS)
  args = parser.parse_args()
  model = maskedlm.load(args.checkpoint)
  lines = (text for _, text in text_lines.read_lines(args.input))
  given = list(itertools.islice(filter(str.strip, lines), args.texts))
  few = given[: args.loop_texts]

  def batched():
    options = {"batch_tokens": args.batch_tokens}
    return [
      made.log_probabilities
      for made in texts.score(model._scorer, given, **options)
    ]

  found = {
    "batched": _time(batched),
    "one row": _time(lambda: [_one_row(model._scorer, text) for text in few]),
    "fill_mask": _time(lambda: [_fill(model, text) for text in few]),
  }
  if args.peer:
    theirs = _load_peer(args.peer)
    found["transformers"] = _time(
      lambda: [_one_call(theirs, model, text) for text in few]
    )
  apart = max(
    float(np.abs(a - b).max(initial=0))
    for other in found.keys() & {"one row", "transformers"}
    for a, b in zip(found["batched"][2], found[other][2], strict=False)
  )
  print(f"largest difference of two log-probabilities: {apart:.1e}")
  print("| way | tokens | tokens/s | tokens/s of the processor |")
  print("|---|---:|---:|---:|")
  for name, (seconds, processor, made) in found.items():
    n = sum(map(len, made))
    print(f"| {name} | {n:,} | {n / seconds:,.0f} | {n / processor:,.0f} |")


def _time(call: Callable) -> tuple[float, float, list]:
  """Returns the seconds by the clock and the processor's, and the result."""
  call()
  clock, processor = time.perf_counter(), time.process_time()
  made = call()
  return time.perf_counter() - clock, time.process_time() - processor, made


def _one_row(model: texts.TextScorer, text: str) -> np.ndarray:
  """Returns the log-probabilities [n] of a text, one call for each."""
  cut = rows.make_row_cutter(
    model.tokenizer, length=model.length, reads="both", pll="original"
  )
  found = []
  for row in cut(text, model.tokenizer.encode(text)):
    L = min(1 << (len(row.ids) - 1).bit_length(), model.length)
    batch = texts._make_batch([row], 1, L, model.tokenizer.special.pad)
    found.append(float(model.log_probabilities(batch)[0, 0]))
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
