"""Trains with PyTorch + transformers, step by step, for pretrain_step.py.

  python benchmarks/pretrain_peer.py SHAPE.json BATCHES.npz

Runs in its own process (started by peer_process.py), so that neither framework
has the other's threads and memory fragments. It prints its device, then answers
each line {"name", "count"} of stdin with a line {"seconds", "cpu", "loss"}:
wall and CPU seconds of that many steps and the loss of the last; or with
{"error"}.

BERT on MLM + NSP with dropout 0.1 and AdamW (clipping, decay), on masked rows;
float32, on a GPU bfloat16 by autocast. It runs eager and under torch.compile,
each with transformers' own head over all positions, and with the head over the
predicted positions only, as in maskedlm.
"""

# ruff: noqa: E402

import itertools
import json
import os
import sys
import time
from collections.abc import Callable

from maskedlm.runtime import allocator

allocator.keep_freed()  # As `maskedlm` does; PyTorch gains from it too.

import numpy as np
import torch
import transformers
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DROPOUT = 0.1


def main() -> None:
  """Answers until stdin ends."""
  # Libraries may print: stdout is for answers only.
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)
  with open(sys.argv[1], encoding="utf-8") as file:
    shape = json.load(file)
  with np.load(sys.argv[2]) as arrays:
    stacked = {k: torch.from_numpy(arrays[k]).long() for k in arrays}
  count = len(stacked["labels"])
  batches = [{k: v[i] for k, v in stacked.items()} for i in range(count)]
  variants = make(shape, batches)

  def answer(**fields) -> None:
    print(json.dumps(fields), file=answers, flush=True)

  answer(device=DEVICE)
  for line in sys.stdin:
    request = json.loads(line)
    began, cpu = time.perf_counter(), time.process_time()
    try:
      loss = variants[request["name"]](request["count"])
    except Exception as error:  # torch.compile may fail in many ways.
      answer(error=f"{type(error).__name__}: {str(error)[:300]}")
      continue
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    answer(seconds=seconds, cpu=cpu, loss=loss)


def make(shape: dict, batches: list) -> dict[str, Callable[[int], float]]:
  """Returns its variants, which train one model in turn."""
  torch.manual_seed(0)
  architecture = transformers.BertConfig(
    vocab_size=shape["vocab"],
    num_hidden_layers=shape["layers"],
    hidden_size=shape["width"],
    num_attention_heads=shape["heads"],
    intermediate_size=shape["mlp_width"],
    hidden_dropout_prob=DROPOUT,
    attention_probs_dropout_prob=DROPOUT,
  )
  model = transformers.AutoModelForPreTraining.from_config(
    architecture, attn_implementation="sdpa"
  )
  model.to(DEVICE).train()
  named = dict(model.named_parameters())
  undecayed = [p for n, p in named.items() if "bias" in n or "LayerNorm" in n]
  decayed = [p for p in named.values() if all(p is not k for k in undecayed)]
  optimizer = torch.optim.AdamW(
    [{"params": decayed}, {"params": undecayed, "weight_decay": 0.0}],
    lr=1e-4,
    weight_decay=0.01,
    fused=True,  # The fastest of its implementations.
  )

  def train_step(loss_of, batch) -> torch.Tensor:
    batch = {k: v.to(DEVICE, non_blocking=True) for k, v in batch.items()}
    on_gpu = DEVICE == "cuda"
    with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=on_gpu):
      loss = loss_of(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach()

  def variant(loss_of):
    turn = itertools.cycle(batches)

    def run(count: int) -> float:
      for _ in range(count):
        loss = train_step(loss_of, next(turn))
      return float(loss)  # Waits for the GPU.

    return run

  return {
    "eager": variant(full_loss),
    "eager, gathered": variant(gathered_loss),
    "compiled": variant(torch.compile(full_loss)),
    "compiled, gathered": variant(torch.compile(gathered_loss)),
  }


def full_loss(model, batch) -> torch.Tensor:
  """Returns transformers' own loss, with logits for every position."""
  return model(
    input_ids=batch["input_ids"],
    attention_mask=batch["segment_ids"],
    token_type_ids=batch["token_type_ids"],
    labels=batch["labels"],
    next_sentence_label=batch["nsp_labels"],
  ).loss


def gathered_loss(model, batch) -> torch.Tensor:
  """Returns the same loss, with logits for the predicted positions only."""
  hidden, pooled = model.bert(
    input_ids=batch["input_ids"],
    attention_mask=batch["segment_ids"],
    token_type_ids=batch["token_type_ids"],
    return_dict=False,
  )
  rows = torch.arange(len(hidden), device=hidden.device)[:, None]
  mlm, nsp = model.cls(hidden[rows, batch["masked_positions"]], pooled)
  loss_of = functional.cross_entropy
  mlm_loss = loss_of(mlm.flatten(0, 1), batch["slot_labels"].flatten())
  return mlm_loss + loss_of(nsp, batch["nsp_labels"])


if __name__ == "__main__":
  main()
