"""The cost of a fine-tuning step by XLA's analysis; nothing is timed.

As tests/training/test_step_cost.py does for pretraining: a run's own step, on
its own batches, is compared with bounds worked by hand.
"""

import functools

import jax
import pytest

from helpers import finetune_runs
from helpers.program_cost import (
  arrays,
  compile_step,
  materialised,
  matmul_flops,
)
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.training import sharding

# Seven examples in batches of seven, of 13 tokens each and padded to 16 for
# the heads. The encoder reads three of them in a row of 40: three rows. V is
# 90, padded to 128.
B, L, D, H, F, V = 7, 16, 48, 3, 136, 128
R, S = 3, 40
WORDS = 11  # And [CLS] and [SEP].
T = R * S
CLASSES = 3

# As in test_step_cost.py: 2 FLOPs for each weight and token forward, and twice
# that backward; 4 D^2 + 2 D F weights in a layer; attention over rows of S.
ENCODER = 6 * (T * (4 * D * D + 2 * D * F) + 2 * D * R * S * S)
MATMULS = {
  # The pooler, and a class for each example.
  "classification": ENCODER + 6 * B * (D * D + CLASSES * D),
  # Tags of every token: B-x, I-x, O.
  "tagging": ENCODER + 6 * B * L * CLASSES * D,
}
# Dropout is a third of the time to compile, so one task has it.
DROPOUT = {"classification": 0.1, "tagging": 0.0}


def write_classification(path):
  lines = [f"{'the ' * WORDS}\t{'abc'[i % CLASSES]}\n" for i in range(B)]
  path.write_text("text\tlabel\n" + "".join(lines))


def write_tagging(path):
  tags = ["B-x", "I-x", *"O" * (WORDS - 2)]
  path.write_text(("".join(f"the\t{tag}\n" for tag in tags) + "\n") * B)


FILES = {
  "classification": ("x.tsv", write_classification),
  "tagging": ("x.conll", write_tagging),
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
  folder = tmp_path_factory.mktemp("encoder") / "run"
  sizes = {"num_layers": 1, "width": D, "num_heads": H, "mlp_width": F}
  return finetune_runs.make_encoder(folder, max_positions=4 * S, **sizes)


@pytest.fixture(scope="module")
def compiled(encoder, tmp_path_factory):
  """Returns a function from a task's name to its compiled step."""

  @functools.cache
  def get(name):
    file, write = FILES[name]
    path = tmp_path_factory.mktemp(name) / file
    write(path)
    config = configs.default(name)
    config.init_from = str(encoder)
    config.data.update(train=str(path), dev=str(path), length=S, batch_size=B)
    rate = DROPOUT[name]
    config.model.update(dropout=rate, attention_dropout=rate)
    config = configs.typed(config)
    prepared = run.prepare_run(config)
    assert list(prepared.train_rows.lengths) == [WORDS + 2] * B
    mesh = sharding.make_mesh(config.mesh, jax.devices()[:1])
    task, config = run.make_task(prepared, config, mesh)
    assert task.batch_at("train", 0)["packed"]["input_ids"].shape == (1, R, S)
    return compile_step(task, config.optimizer)

  return get


@pytest.fixture(params=list(MATMULS))
def task(request):
  return request.param


def test_matmuls_are_those_of_the_formula(compiled, task):
  # Nothing is computed twice, for padding, or for other words.
  found = matmul_flops(compiled(task).text)
  assert found == pytest.approx(MATMULS[task], rel=1e-3)


def test_other_flops(compiled, task):
  made = compiled(task)
  by_hand = (
    MATMULS[task]
    # AdamW, clipping, decay, keeping finite ones; norms, residuals, biases,
    # GELU; softmax: see test_step_cost.py.
    + 35 * made.num_params
    + T * (70 * D + 20 * F)
    + 16 * R * H * S * S
    # Each example's vectors, selected from the rows, forward and backward.
    + 10 * B * L * D
  )
  if DROPOUT[task]:
    by_hand += 16 * (3 * T * D + R * H * S * S + 2 * B * D)
  assert made.flops < 1.05 * by_hand


def test_bytes(compiled, task):
  def dense(rows, i, o):
    return 3 * (rows * (i + o) + i * o)

  made = compiled(task)
  by_hand = (
    dense(T, D, 3 * D)
    + dense(T, D, D)
    + 2 * dense(T, D, F)
    + 20 * R * H * S * S
    + T * (40 * D + 8 * F)
    + 20 * made.num_params
    # Vectors of examples: gathered, masked, read by the head, and back.
    + 8 * B * L * D
  )
  # XLA counts a buffer for each of its readers: see test_step_cost.py.
  assert made.bytes_accessed < 1.35 * 4 * by_hand


def test_attention_is_written_a_few_times(compiled, task):
  bound = 8 if DROPOUT[task] else 6  # See test_step_cost.py.
  assert materialised(compiled(task).text, R * H * S * S) <= bound


def test_no_word_has_logits(compiled, task):
  # Only the embedding, its moments and its gradient have the vocabulary.
  for _, dims, _ in arrays(compiled(task).text):
    if V in dims or 90 in dims:
      assert set(dims) <= {V, 90, D, 1}, dims


def test_memory(compiled, task):
  made = compiled(task)
  # Parameters and moments are updated in place.
  assert made.memory.alias_size_in_bytes >= 4 * 3 * made.num_params
  kept = T * (10 * D + 3 * F) + 4 * R * H * S * S + 4 * B * L * D
  assert made.memory.temp_size_in_bytes < 1.3 * 4 * (made.num_params + kept)
