"""What a training step costs, by XLA's own account: nothing here is timed.

The whole step (hiding, gradient, AdamW) is compiled for one CPU, and its
FLOPs, bytes, buffers and memory are compared with bounds worked by hand. Of one
layer, as the account takes the body of a scan once, whatever its length.
"""

import functools
import math
import re
from typing import NamedTuple

import jax
import pytest

from maskedlm import objectives
from maskedlm.config import defaults as config_lib
from maskedlm.data.batches import placeholder_corpus
from maskedlm.training import optimizer
from maskedlm.training import step as steps

# P is 0.15 L; V is 1,000, which is padded to 1,024.
B, L, P, D, H, F, V = 5, 40, 6, 48, 3, 136, 1024
T, S = B * L, B * P  # Tokens, and those that are predicted: 200 and 30.

# Forward, a dense layer takes 2 FLOPs for each weight and token; backward takes
# twice that. A layer's weights: qkv and out 4 D^2, MLP 2 D F. The attention
# multiplies D numbers for each pair of tokens twice (scores, values).
ENCODER = 6 * (T * (4 * D * D + 2 * D * F) + 2 * D * B * L * L)
HEAD = 6 * S * (D * D + D * V)
MATMULS = {
  "roberta": ENCODER + HEAD,
  # The pooler, and two classes.
  "mlm_nsp": ENCODER + HEAD + 6 * B * (D * D + 2 * D),
  # Two layers from [left; right; place], 200 wide, and the vocabulary again.
  "spanbert": ENCODER + HEAD + 6 * S * ((2 * D + 200) * D + D * D + D * V),
  # A quarter of everything: width 12, MLP 34; embeddings from D to 12; a head
  # back to D. The discriminator's own: D to D, and to 1, of every token.
  "electra": ENCODER
  + 6 * T * (D * D + D)
  + 6 * (T * (D * 12 + 4 * 12 * 12 + 2 * 12 * 34) + 2 * 12 * B * L * L)
  + 6 * S * (12 * D + D * V),
}
HEADS = {"roberta": 1, "mlm_nsp": 1, "spanbert": 2, "electra": 1}
# Only RoBERTa's has dropout, which takes a third of the time to compile.
DROPOUT = {"roberta": 0.1, "mlm_nsp": 0.0, "spanbert": 0.0, "electra": 0.0}


class Step(NamedTuple):
  """A compiled step."""

  text: str
  num_params: int
  flops: float
  bytes_accessed: float
  memory: object


def make_task(objective):
  """(config, task): one layer, on rows that are made up."""
  config = config_lib.default(objective)
  config.tokenizer.vocab_size = 1000
  rate = DROPOUT[objective]
  config.model.update(
    num_layers=1, width=D, num_heads=H, mlp_width=F, max_positions=L
  )
  config.model.update(dropout=rate, attention_dropout=rate)
  config.data.update(length=L, batch_size=B)
  config.train.num_steps = 9
  config.optimizer.warmup_steps = 2
  return config, objectives.make_task(
    config, placeholder_corpus.make_corpus(config.tokenizer)
  )


@functools.cache
def compiled(objective) -> Step:
  config, task = make_task(objective)
  params = jax.eval_shape(task.init, jax.random.key(0))
  tx, schedule = optimizer.make_optimizer(config.optimizer, 9, params)
  state = jax.eval_shape(steps.make_init(task, tx, 0))
  step = steps.make_step(task, tx, schedule, seed=0, accumulate=1)
  lowered = jax.jit(step, donate_argnums=0).lower(
    state, task.batch_at("train", 0)
  )
  # LLVM's part alone: fusions and buffers are as ever, in half of the time.
  made = lowered.compile(
    compiler_options={
      "xla_backend_optimization_level": 0,
      "xla_llvm_disable_expensive_passes": True,
    }
  )
  cost = made.cost_analysis()
  return Step(
    made.as_text(),
    sum(x.size for x in jax.tree.leaves(params)),
    cost["flops"],
    cost["bytes accessed"],
    made.memory_analysis(),
  )


def arrays(text, *, fused=True):
  """(opcode, dims, the rest of the line) of instructions of one result.

  fused: those too that have no buffer, as they are within a fusion.
  """
  within = set(re.findall(r"calls=%([\w.\-]+)", text))
  computation = ""
  for line in text.splitlines():
    if opened := re.match(r"(?:ENTRY )?%([\w.\-]+) .*{$", line):
      computation = opened[1]
    made = re.match(
      r"\s+(?:ROOT )?%[\w.\-]+ = \w+\[([\d,]+)\]\S* ([\w\-]+)\((.*)", line
    )
    if made and (fused or computation not in within):
      yield made[2], tuple(map(int, made[1].split(","))), made[3]


def matmul_flops(text):
  """2 * results * what each of them sums over."""
  shapes = dict(re.findall(r"%([\w.\-]+) = \w+\[([\d,]*)\]", text))
  total = 0
  for opcode, dims, rest in arrays(text):
    if opcode == "dot":
      left = shapes[re.match(r"%([\w.\-]+)", rest)[1]].split(",")
      axes = re.search(r"lhs_contracting_dims={([\d,]*)}", rest)[1].split(",")
      total += 2 * math.prod(dims) * math.prod(int(left[int(i)]) for i in axes)
  return total


def materialised(text, size):
  """How many results of so many entries are written to memory."""
  free = ("parameter", "bitcast", "get-tuple-element")
  return sum(
    math.prod(dims) == size and opcode not in free
    for opcode, dims, _ in arrays(text, fused=False)
  )


@pytest.fixture(params=list(MATMULS))
def objective(request):
  return request.param


def test_matmuls_are_those_of_the_formula(objective):
  # Nothing is computed twice, for padding, or for tokens not predicted. Of the
  # vector-matrix products of ELECTRA's head, XLA turns one into a sum.
  found = matmul_flops(compiled(objective).text)
  assert found == pytest.approx(MATMULS[objective], rel=1e-3)


def test_other_flops(objective):
  made = compiled(objective)
  by_hand = (
    MATMULS[objective]
    # AdamW 16, clipping and three norms 9, decay 2, what is kept 3 * 2.
    + 35 * made.num_params
    # A token: three norms of 20 forward and backward, residuals and biases 10;
    # GELU 20.
    + T * (70 * D + 20 * F)
    # Scale, mask, maximum, exp, sum, division; backward 8.
    + 16 * B * H * L * L
    # Mask, maximum, exp, sum, the label's; backward 5, of each head.
    + HEADS[objective] * 12 * S * V
    # Hiding: sums over the tokens up to each (XLA:CPU adds them up anew).
    + 10 * B * L * L
  )
  # A hash for each entry of two residuals, the embeddings and the attention:
  # 10 operations; then a comparison, a product, a choice; these in backward.
  if DROPOUT[objective]:
    by_hand += 16 * (3 * T * D + B * H * L * L)
  if objective == "electra":
    # A word of bits for each logit, made Gumbel noise of, to draw by; the
    # generator's vectors and the discriminator's head.
    by_hand += (
      80 * S * V + T * (70 * 12 + 20 * 34) + 16 * B * L * L + 40 * T * D
    )
  assert made.flops < 1.05 * by_hand


def test_bytes(objective):
  # Floats that are read and written. A dense layer [T, i] -> [T, o]: inputs,
  # weights and results, three times (forward, and for the two gradients).
  def dense(rows, i, o):
    return 3 * (rows * (i + o) + i * o)

  made = compiled(objective)
  layer = dense(T, D, 3 * D) + dense(T, D, D) + 2 * dense(T, D, F)
  by_hand = (
    layer
    # Scores, weights, their slopes: written and read by a few fusions each.
    + 20 * B * H * L * L
    # Norms, residuals: 40 vectors of a token; GELU: 8 of the MLP's width.
    + T * (40 * D + 8 * F)
    + HEADS[objective] * (dense(S, D, V) + 10 * S * V)
    # Gradient, norms, clipping, moments, update, and what is kept of them.
    + 20 * made.num_params
  )
  if objective == "electra":  # The generator: see MATMULS.
    by_hand += dense(T, 12, 36) + dense(T, 12, 12) + 2 * dense(T, 12, 34)
    by_hand += dense(T, D, 12) + 20 * B * L * L + T * (40 * 12 + 8 * 34)
    by_hand += dense(T, D, D) + 8 * T * D  # The discriminator's head.
  # XLA counts a buffer once for each that reads it, and whole where a part is
  # read; the hiding, and the scan's slices of the weights, aren't above.
  assert made.bytes_accessed < 1.7 * 4 * by_hand


def test_attention_is_written_a_few_times(objective):
  # Forward: scores, masked scores, exp, weights; backward: the slopes of the
  # weights and of the scores. Dropout: what is kept, and the slope before it.
  bound = 8 if DROPOUT[objective] else 6
  assert materialised(compiled(objective).text, B * H * L * L) <= bound


def test_logits_are_of_predicted_tokens_alone(objective):
  text = compiled(objective).text
  # As matmul, with the padding masked, the label's alone, whether each is
  # smaller (a bool), slope.
  bound = 5 * HEADS[objective]
  if objective == "electra":  # The noise that tokens are drawn by.
    bound += 6
  assert 1 <= materialised(text, S * V) <= bound
  for _, dims, _ in arrays(text):
    over_words = {1000, V} & set(dims)
    assert not (over_words and {L, T} & set(dims)), dims


def test_memory(objective):
  made = compiled(objective)
  state = 3 * made.num_params  # Parameters and two moments, as floats.
  assert made.memory.alias_size_in_bytes >= 4 * state  # Updated in place.
  # What backward reads: a token's vectors (embedded, qkv 3, attended, out, two
  # sums and their norms: 10) and its MLP's (up, GELU and its slope: 3); then
  # the attention's (scores, weights, dropped ones and bits: 4), logits 3.
  kept = T * (10 * D + 3 * F) + 4 * B * H * L * L
  kept += HEADS[objective] * 3 * S * V
  if objective == "electra":
    kept += T * (10 * 12 + 3 * 34) + 4 * B * L * L + 3 * T * D
  gradient = made.num_params
  assert made.memory.temp_size_in_bytes < 1.3 * 4 * (gradient + kept)


def test_evaluation_holds_a_microbatch_at_a_time():
  _, task = make_task("roberta")
  params = jax.eval_shape(task.init, jax.random.key(0))

  def temporaries(accumulate):
    step = steps.make_heldout_step(task, seed=0, accumulate=accumulate)
    lowered = jax.jit(step).lower(params, task.batch_at("train", 0), 0)
    return lowered.compile().memory_analysis().temp_size_in_bytes

  # The logits of all rows, against those of one and the batch, split.
  assert temporaries(1) > 4 * S * V
  assert temporaries(B) < 4 * S * V
