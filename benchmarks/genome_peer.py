"""Trains transformers' EsmForMaskedLM on the rows of a run, for its CPU time.

  python benchmarks/genome_peer.py RUN SECONDS OUT [RATE]

RUN is a workdir of docs/results/sequences.md, SECONDS are CPU seconds. The
model has ESM-2's layers, and the run's sizes; masks are those of transformers'
collator, the optimizer is AdamW with a linear schedule over the steps that the
time allows. OUT is a folder that `maskedlm import` reads.
"""

import pathlib
import sys
import time

import torch
import transformers

from ml_collections import ConfigDict

from maskedlm.data.corpus import store
from maskedlm.pretraining import config as pretraining
from maskedlm.pretraining import objectives
from maskedlm.training.checkpoints import resume


def main(run: str, seconds: float, out: pathlib.Path, rate: float) -> None:
  config = ConfigDict(resume.read_config(pathlib.Path(run)))
  corpus = store.open_corpus(f"{run}/corpus")
  task = objectives.make_task(pretraining.typed(config), corpus)
  m, special = config.model, corpus.tokenizer.special
  torch.manual_seed(0)
  model = transformers.EsmForMaskedLM(
    transformers.EsmConfig(
      vocab_size=corpus.tokenizer.vocab_size,
      mask_token_id=special.mask,
      pad_token_id=special.pad,
      hidden_size=m.width,
      num_hidden_layers=m.num_layers,
      num_attention_heads=m.num_heads,
      intermediate_size=4 * m.width,
      max_position_embeddings=m.max_positions,
      hidden_dropout_prob=0.0,
      attention_probs_dropout_prob=0.0,
      position_embedding_type="rotary",
      token_dropout=True,
    )
  )
  print(sum(x.numel() for x in model.parameters()), "parameters")
  adamw = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
  began, losses, step = time.process_time(), [], 0
  while (spent := (time.process_time() - began) / seconds) < 1:
    batch = task.batch_at("train", step)
    ids = torch.tensor(batch["input_ids"]).long()
    real = torch.tensor(batch["segment_ids"] > 0)
    letters = real & (ids >= 5)  # After the special tokens.
    chosen = letters & (torch.rand(ids.shape) < 0.15)
    how = torch.rand(ids.shape)
    inputs = torch.where(chosen & (how < 0.8), special.mask, ids)
    drawn = torch.randint(5, corpus.tokenizer.vocab_size, ids.shape)
    inputs = torch.where(chosen & (how > 0.9), drawn, inputs)
    loss = model(
      input_ids=inputs,
      attention_mask=real.long(),
      labels=torch.where(chosen, ids, -100),
    ).loss
    adamw.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in adamw.param_groups:
      group["lr"] = rate * min(1, (step + 1) / 50) * (1 - spent)
    adamw.step()
    losses.append(loss.item())
    step += 1
    if step % 100 == 0:
      recent = sum(losses[-100:]) / 100
      print(f"step {step}, {spent:.0%}: {recent:.3f}", flush=True)
  model.save_pretrained(out)
  corpus.tokenizer.save(out)


if __name__ == "__main__":
  run, seconds, out, *rest = sys.argv[1:]
  main(run, float(seconds), pathlib.Path(out), float(*rest or ["1e-3"]))
