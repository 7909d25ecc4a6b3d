"""The cost of a batch of inference by XLA's analysis; nothing is timed.

As tests/training/test_step_cost.py does for pretraining. tests/runtime/
test_compile_cache.py counts how many programs are compiled.
"""

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

from helpers import finetune_runs, workdirs
from helpers.program_cost import (
  arrays,
  compile_program,
  materialised,
  matmul_flops,
)
from maskedlm.data.tokenizers.tokenizer import train_tokenizer
from maskedlm.finetune.config import make_task
from maskedlm.finetune.contract import Setup
from maskedlm.inference import fill_mask, token_model
from maskedlm.inference.pretrained import evaluate
from maskedlm.inference.rows import Row, pad_rows
from maskedlm.inference.vectors import vectors
from maskedlm.training.checkpoints.load import LoadedCheckpoint

# P, the masked tokens of a row, is padded to 8; V is 90, padded to 128.
B, L, P, D, H, F, V = 5, 32, 8, 48, 3, 136, 128
T = B * L
CLASSES = 3

# A dense layer takes 2 FLOPs for each weight and token. A layer has 4 D^2
# weights in qkv and out, and 2 D F in the MLP; attention multiplies D numbers
# for each pair of tokens twice.
ENCODER = 2 * (T * (4 * D * D + 2 * D * F) + 2 * D * B * L * L)
MLM_HEAD = 2 * B * P * (D * D + D * V)
MATMULS = {
  "embed": ENCODER,
  "predict tagging": ENCODER + 2 * T * CLASSES * D,
  "evaluate": ENCODER + MLM_HEAD,
  "fill_mask": ENCODER + MLM_HEAD,
}
# Numbers for each masked token and word: losses need the logits once, to find
# maximum, sum and label; fill_mask returns their softmax.
LOGITS = {"evaluate": 1, "fill_mask": 2}


@functools.cache
def tokenizer():
  return train_tokenizer(
    finetune_runs.TEXTS, kind="wordpiece", vocab_size=90, lowercase=True
  )


def pretrained():
  """Returns a LoadedCheckpoint of one layer."""
  cfg = workdirs.config(
    tokenizer(),
    num_layers=1,
    width=D,
    num_heads=H,
    mlp_width=F,
    max_positions=L,
  )
  params = workdirs.make_params(cfg, ("pooler", "mlm_head"))
  task = {"encoder": dataclasses.asdict(cfg)}
  return LoadedCheckpoint(params, cfg, tokenizer(), {"task": task})


def rows():
  """Returns a batch [B, L] with P places, of which 5 are used."""
  places = np.arange(1, 6)
  some = [np.arange(5, 5 + L - i, dtype=np.int32) for i in range(B)]
  made = [Row(ids, places, ids[places]) for ids in some]
  return pad_rows(made, B, L, pad=0, least=P)


def embed():
  """Returns (function, params, *arguments) as `embed` calls it; so the next."""
  opened = pretrained()
  encode = vectors.make_layer_encoder(opened.cfg, (1,), "mean")
  return encode, {"encoder": opened.params["encoder"]}, rows()


def predict():
  opened = pretrained()
  task = make_task("tagging", {})
  setup = Setup(tokenizer(), opened.cfg, {"labels": ["B-x", "I-x", "O"]}, L)
  app = task.make_application(setup)
  heads = jax.eval_shape(app.init, jax.random.key(0))
  params = {"encoder": opened.params["encoder"], **heads}
  batch = {"example_weights": np.ones(B, np.float32)}
  batch["word_starts"] = np.zeros((B, L), np.int32)
  return app.outputs, params, rows() | batch


def measured():
  opened = pretrained()
  model = evaluate.make_model(opened, "here")
  return model.scores.func, *model.scores.args, rows()


def filled():
  model = token_model.make_token_model(pretrained(), "here")
  special_ids = (*model.tokenizer.special_ids,)
  fill = fill_mask.make_probabilities(model.cfg, special_ids)
  return fill, model.params, rows()


CALLS = {
  "embed": embed,
  "predict tagging": predict,
  "evaluate": measured,
  "fill_mask": filled,
}


@functools.cache
def compiled(name):
  return compile_program(*CALLS[name]())


@pytest.fixture(params=list(MATMULS))
def call(request):
  return request.param


def test_matmuls_are_those_of_the_formula(call):
  found = matmul_flops(compiled(call).text)
  assert found == pytest.approx(MATMULS[call], rel=1e-3)


def test_other_flops(call):
  made = compiled(call)
  by_hand = (
    MATMULS[call]
    # Per token: three norms of 8, residuals and biases 8; GELU 12.
    + T * (32 * D + 12 * F)
    # Scale, mask, maximum, exp, sum, division.
    + 7 * B * H * L * L
    + 6 * LOGITS.get(call, 0) * B * P * V
  )
  assert made.flops < 1.05 * by_hand


def test_bytes(call):
  def dense(rows, i, o):
    return rows * (i + o) + i * o

  made = compiled(call)
  by_hand = (
    dense(T, D, 3 * D)
    + dense(T, D, D)
    + 2 * dense(T, D, F)
    + 7 * B * H * L * L
    + T * (16 * D + 4 * F)
    + LOGITS.get(call, 0) * (dense(B * P, D, V) + 4 * B * P * V)
  )
  # XLA counts a buffer for each of its readers: see test_step_cost.py.
  assert made.bytes_accessed < 1.6 * 4 * by_hand


def test_attention_is_written_a_few_times(call):
  # Scores, masked scores, exp, weights.
  assert materialised(compiled(call).text, B * H * L * L) <= 4


def test_memory(call):
  # At once: a token's vectors before and after a layer's part, 8 of them, or
  # 2 of its MLP; or scores and weights of attention; or logits.
  made = compiled(call)
  kept = max(T * 8 * D, 2 * T * F, 2 * B * H * L * L, 2 * B * P * V)
  assert made.memory.temp_size_in_bytes < 1.3 * 4 * kept


def test_parameters_are_an_argument(call):
  # Otherwise the program holds a copy of them, and each checkpoint needs its
  # own.
  made = compiled(call)
  read = sum(
    math.prod(dims)
    for opcode, dims, _ in arrays(made.text, fused=False)
    if opcode == "constant"
  )
  assert read < 4 * V
  assert made.memory.argument_size_in_bytes > 4 * 4 * D * D + 8 * D * F
