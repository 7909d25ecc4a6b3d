"""Workdirs of untrained models: pretrained and fine-tuned."""

import dataclasses

import jax
import numpy as np

from helpers import finetune_runs, workdirs
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune.config import make_task
from maskedlm.finetune.contract import Setup
from maskedlm.training.checkpoints import manager

D, H, N, POSITIONS, LENGTH = 24, 3, 2, 48, 32
SIZES = {"width": D, "num_heads": H, "num_layers": N}
VOCAB = {"wordpiece": 90, "bpe": 300, "unigram": 56}
# name -> (task, options, facts that a training set would have decided).
TUNED = {
  "pos": ("tagging", {"task": "pos"}, {"labels": ["ADJ", "NOUN", "VERB"]}),
  "ner": ("tagging", {}, {"labels": ["B-PER", "I-PER", "O"]}),
  "mood": ("classification", {}, {"labels": ["bad", "good", "so so"]}),
  "qa": ("question_answering", {"max_answer_length": 8}, {}),
  "four": ("multiple_choice", {}, {"choices": 4}),
  "many": ("multi_label", {"threshold": 1e-9}, {"labels": ["dull", "long"]}),
}


def make_tokenizer(kind="wordpiece"):
  return train_tokenizer(
    finetune_runs.TEXTS, kind=kind, vocab_size=VOCAB[kind], lowercase=True
  )


def pretrained(folder, *, kind="wordpiece", heads=("pooler", "mlm_head")):
  """Saves a workdir of pretraining that fills masks; returns its path."""
  tokenizer = make_tokenizer(kind)
  cfg = workdirs.config(tokenizer, max_positions=POSITIONS, **SIZES)
  params = workdirs.make_params(cfg, heads)
  return workdirs.save(folder, params, cfg, tokenizer)


def finetuned(folder, name, *, metrics=(None,)):
  """Saves a workdir of fine-tuning; returns its path.

  Args:
    folder: the workdir.
    name: a key of TUNED.
    metrics: one for each checkpoint (lower is better), steps 1, 2, ...; their
      parameters differ.
  """
  return save_tuned(folder, *TUNED[name], metrics=metrics)


def save_tuned(
  folder,
  task_name,
  options,
  label_info,
  *,
  metrics=(None,),
  heldout=None,
  **changes,
):
  """Saves a workdir of any task; returns its path.

  Args:
    folder: the workdir.
    task_name: the task.
    options: of config.task, where they differ from the defaults.
    label_info: facts that a training set would have decided.
    metrics: as for `finetuned`.
    heldout: thresholds and metrics of each checkpoint.
    **changes: further fields of EncoderConfig.
  """
  tokenizer = make_tokenizer()
  sizes = {"max_positions": POSITIONS, **SIZES, **changes}
  cfg = workdirs.config(tokenizer, **sizes)
  bound = make_task(task_name, options)
  app = bound.make_application(Setup(tokenizer, cfg, label_info, LENGTH))
  shapes = {
    "encoder": workdirs.make_params(cfg, ())["encoder"],
    **jax.eval_shape(app.init, jax.random.key(0)),
  }
  task = {
    "objective": task_name,
    "kind": task_name,
    "options": dataclasses.asdict(bound.options),
    "about": label_info,
    "length": LENGTH,
    "encoder": dataclasses.asdict(cfg),
  }
  if pooling := bound.sentence_pooling:
    task["sentences"] = {**pooling, "length": LENGTH}
  folder.mkdir(parents=True)
  tokenizer.save(folder / "tokenizer")
  opened = manager.open_checkpoints(
    folder, keep_last=len(metrics), keep_best=1, log=print
  )
  for step, metric in enumerate(metrics, 1):
    params = workdirs.clear_unused(workdirs.randomise(shapes, step), cfg)
    state = workdirs.State(params, np.int32(step))
    opened.save(
      step, state, {"task": task, "heldout": heldout or {}}, metric=metric
    )
  opened.close()
  return folder


def causal(folder, **changes):
  """Saves a workdir of a left-to-right model; returns its path.

  Args:
    folder: the workdir.
    **changes: further fields of EncoderConfig.
  """
  tokenizer = make_tokenizer()
  cfg = workdirs.config(
    tokenizer, max_positions=POSITIONS, causal=True, **SIZES, **changes
  )
  params = workdirs.make_params(cfg, ("mlm_head",))
  params["mlm_head"] = params.pop("mlm_head")
  return workdirs.save(folder, params, cfg, tokenizer, objective="causal")


def bilm(folder):
  """Saves a workdir of two language models of LSTMs; returns its path."""
  tokenizer = make_tokenizer()
  cfg = workdirs.config(
    tokenizer,
    max_positions=POSITIONS,
    family="bilm",
    embedding_width=D // 2,
    **SIZES,
  )
  params = workdirs.make_params(cfg, ())
  params["bilm_head"] = {"bias": np.zeros(cfg.padded_vocab_size, np.float32)}
  return workdirs.save(folder, params, cfg, tokenizer, objective="bilm")
