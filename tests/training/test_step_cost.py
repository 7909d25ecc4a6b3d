"""The cost of a training step by XLA's analysis; nothing is timed.

The whole step (masking, gradient, AdamW) is compiled for one CPU, and its
FLOPs, bytes, buffers and memory are compared with bounds worked by hand.
tests/finetune/test_finetune_cost.py and tests/inference/test_inference_cost.py
do the same for fine-tuning and inference.
"""

import functools

import jax
import pytest

from helpers.program_cost import (
  arrays,
  compile_step,
  materialised,
  matmul_flops,
)
from maskedlm.config import defaults as config_lib
from maskedlm.data.batches import placeholder_corpus
from maskedlm.pretraining import objectives
from maskedlm.training import step as steps

# P is 0.15 L; V is 1,000, which is padded to 1,024.
B, L, P, D, H, F, V = 5, 40, 6, 48, 3, 136, 1024
T, S = B * L, B * P  # 200 tokens, of which 30 are predicted.

# A dense layer takes 2 FLOPs for each weight and token forward, and twice that
# backward. A layer has 4 D^2 weights in qkv and out, and 2 D F in the MLP.
# Attention multiplies D numbers for each pair of tokens twice (scores, values).
ENCODER = 6 * (T * (4 * D * D + 2 * D * F) + 2 * D * B * L * L)
HEAD = 6 * S * (D * D + D * V)
MATMULS = {
  "roberta": ENCODER + HEAD,
  # Two layers on [left; right; place], which is 200 wide, and the vocabulary.
  "spanbert": ENCODER + HEAD + 6 * S * ((2 * D + 200) * D + D * D + D * V),
  # The generator is a quarter: width 12, MLP 34; embeddings from D to 12, a
  # head back to D. The discriminator's head: D to D, and to 1, for every token.
  "electra": ENCODER
  + 6 * T * (D * D + D)
  + 6 * (T * (D * 12 + 4 * 12 * 12 + 2 * 12 * 34) + 2 * 12 * B * L * L)
  + 6 * S * (12 * D + D * V),
}
HEADS = {"roberta": 1, "spanbert": 2, "electra": 1}
# Only RoBERTa has dropout, which is a third of the time to compile.
DROPOUT = {"roberta": 0.1, "spanbert": 0.0, "electra": 0.0}


def make_task(objective):
  """Returns (config, task) of one layer, on placeholder rows."""
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
def compiled(objective):
  config, task = make_task(objective)
  return compile_step(task, config.optimizer)


@pytest.fixture(params=list(MATMULS))
def objective(request):
  return request.param


def test_matmuls_are_those_of_the_formula(objective):
  # Nothing is computed twice, for padding, or for tokens not predicted. XLA
  # turns one vector-matrix product of ELECTRA's head into a sum.
  found = matmul_flops(compiled(objective).text)
  by_hand = MATMULS[objective]
  if objective != "electra":  # It samples from its logits.
    # The gradient of the vocabulary's bias is a sum over positions by a matmul.
    by_hand += HEADS[objective] * 2 * S * V
  assert found == pytest.approx(by_hand, rel=1e-3)


def test_other_flops(objective):
  made = compiled(objective)
  by_hand = (
    MATMULS[objective]
    # AdamW 16, clipping and three norms 9, decay 2, keeping finite ones 3 * 2.
    + 35 * made.num_params
    # Per token: three norms of 20 forward and backward, residuals and biases
    # 10; GELU 20.
    + T * (70 * D + 20 * F)
    # Scale, mask, maximum, exp, sum, division; backward 8.
    + 16 * B * H * L * L
    # Mask, maximum, exp, sum, the label's logit; backward 5; for each head.
    + HEADS[objective] * 12 * S * V
    # Masking: cumulative sums, which XLA:CPU computes from scratch.
    + 10 * B * L * L
  )
  # A hash of 10 operations for each entry of two residuals, the embeddings and
  # the attention; then a comparison, a product and a selection, also backward.
  if DROPOUT[objective]:
    by_hand += 16 * (3 * T * D + B * H * L * L)
  if objective == "electra":
    # Random bits for each logit, converted to Gumbel noise; the generator's
    # vectors and the discriminator's head.
    by_hand += (
      80 * S * V + T * (70 * 12 + 20 * 34) + 16 * B * L * L + 40 * T * D
    )
  assert made.flops < 1.05 * by_hand


def test_bytes(objective):
  # Floats read and written. A dense layer [T, i] -> [T, o] has inputs, weights
  # and results, three times (forward, and for two gradients).
  def dense(rows, i, o):
    return 3 * (rows * (i + o) + i * o)

  made = compiled(objective)
  layer = dense(T, D, 3 * D) + dense(T, D, D) + 2 * dense(T, D, F)
  by_hand = (
    layer
    # Scores, weights and their gradients, in a few fusions each.
    + 20 * B * H * L * L
    # Norms and residuals: 40 vectors per token; GELU: 8 of the MLP's width.
    + T * (40 * D + 8 * F)
    + HEADS[objective] * (dense(S, D, V) + 10 * S * V)
    # Gradient, norms, clipping, moments, update, and selecting finite ones.
    + 20 * made.num_params
  )
  if objective == "electra":  # The generator: see MATMULS.
    by_hand += dense(T, 12, 36) + dense(T, 12, 12) + 2 * dense(T, 12, 34)
    by_hand += dense(T, D, 12) + 20 * B * L * L + T * (40 * 12 + 8 * 34)
    by_hand += dense(T, D, D) + 8 * T * D  # The discriminator's head.
  # XLA counts a buffer for each of its readers, and all of it if a part is
  # read; masking and the scan's slices of weights are not counted above.
  assert made.bytes_accessed < 1.7 * 4 * by_hand


def test_attention_is_written_a_few_times(objective):
  # Forward: scores, masked scores, exp, weights; backward: the gradients of
  # weights and scores. Dropout: its mask, and the gradient before it.
  bound = 8 if DROPOUT[objective] else 6
  assert materialised(compiled(objective).text, B * H * L * L) <= bound


def test_only_predicted_tokens_have_logits(objective):
  text = compiled(objective).text
  # The matmul, with bias, whether each is smaller than the label's (bool), the
  # gradient before and after the label's place is set.
  bound = 5 * HEADS[objective]
  if objective == "electra":  # The noise for sampling, padding masked.
    bound += 7
  assert 1 <= materialised(text, S * V) <= bound
  for _, dims, _ in arrays(text):
    over_words = {1000, V} & set(dims)
    assert not (over_words and {L, T} & set(dims)), dims


def test_memory(objective):
  made = compiled(objective)
  state = 3 * made.num_params  # Parameters and two moments, as floats.
  assert made.memory.alias_size_in_bytes >= 4 * state  # Updated in place.
  # Backward reads 10 vectors of a token (embedded, qkv 3, attended, out, two
  # sums and their norms), 3 of its MLP (up, GELU and its derivative), 4 of
  # attention (scores, weights, dropped weights and bits), and 3 of logits.
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

  # All rows' logits would be more than those of one row and the split batch.
  assert temporaries(1) > 4 * S * V
  assert temporaries(B) < 4 * S * V
