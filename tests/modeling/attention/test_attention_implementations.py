"""Every implementation of attention against numpy: values and gradients."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import attention_reference
from maskedlm.modeling.attention import banded, blockwise, layer, vendor_kernels
from maskedlm.modeling.attention.mask import AttentionMask

# Options of an AttentionMask, and the same pair by pair.
MASKS = {
  "all": ({}, {"attends": lambda i, j: True}),
  "causal": ({"causal": True}, {"attends": lambda i, j: j <= i}),
  "window": ({"window": 10}, {"attends": lambda i, j: abs(i - j) <= 5}),
  "causal-window": (
    {"window": 6, "causal": True},
    {"attends": lambda i, j: 0 <= i - j <= 3},
  ),
  "global": (
    {"window": 6, "is_local": np.array(False)},
    {"attends": lambda i, j: True},
  ),
  "alibi": (  # Slopes of 3 heads: those of 2, then the first of 4.
    {"alibi": True},
    {
      "attends": lambda i, j: True,
      "bias": lambda h, i, j: -(2.0 ** (-4, -8, -2)[h]) * abs(i - j),
    },
  ),
}


def cudnn(*args):
  """Returns vendor_kernels.cudnn by JAX's plain implementation, in bands."""
  there = functools.partial(jax.nn.dot_product_attention, implementation="xla")
  with (
    mock.patch.object(vendor_kernels, "attend_cudnn", there),
    mock.patch.object(banded, "MIN_BLOCK", 4),
  ):
    return vendor_kernels.cudnn(*args)


def trained_on_cpu(query, key, value, mask):
  """Returns layer.plain_on_cpu with its own gradient; nothing is dropped."""
  B, L, H, _ = query.shape
  return layer.plain_on_cpu(query, key, value, mask, jnp.ones((B, H, L, L)))


WAYS = {
  "plain": layer.plain,
  "trained on a CPU": trained_on_cpu,
  "cudnn": cudnn,
  # Blocks that divide neither length.
  "blockwise": functools.partial(blockwise.attend, block=16),
  "splash": functools.partial(vendor_kernels.splash, interpret=True),
}


@functools.cache
def expected(name, length):
  arrays = attention_reference.arrays(length)
  return attention_reference.attend(
    *arrays, attention_reference.rows(length), **MASKS[name][1]
  )


def computed(way, name, length, *, dtype="float32", scale=1.0):
  """Returns (result, three gradients) [B, L, H, K] in float32."""
  mask = AttentionMask(
    jnp.asarray(attention_reference.rows(length)), **MASKS[name][0]
  )
  *args, gradient = (
    jnp.asarray(x * scale, dtype) for x in attention_reference.arrays(length)
  )

  @jax.jit
  def run(args, gradient):
    y, backward = jax.vjp(lambda *args: WAYS[way](*args, mask), *args)
    return y, *backward(gradient)

  made = run(args, gradient)
  assert {str(x.dtype) for x in made} == {dtype}
  return [np.float32(x) for x in made]


slow = functools.partial(pytest.param, marks=pytest.mark.slow)
CASES = [
  *(("plain", 37, name) for name in ("causal-window", "alibi")),
  *(("trained on a CPU", 37, name) for name in ("causal", "alibi")),
  *(("blockwise", 37, name) for name in MASKS if name != "all"),
  *(("cudnn", 37, name) for name in ("all", "causal", "window")),
  ("cudnn", 130, "window"),
  # Rows of many blocks.
  *(slow(way, 130, name) for way in ("plain", "blockwise") for name in MASKS),
  # A length that is not a multiple of the blocks of 128; 5 s each to compile.
  ("splash", 130, "causal-window"),
  *(slow("splash", 130, x) for x in ("all", "causal", "window", "global")),
]


@pytest.mark.parametrize(("way", "length", "name"), CASES)
def test_equals_plain_numpy(way, length, name):
  ours = computed(way, name, length)
  for x, y in zip(ours, expected(name, length), strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.parametrize("way", ["plain", "trained on a CPU", "blockwise"])
def test_bfloat16(way):
  # Results are up to 0.25, which bfloat16 rounds by up to 2^-11 = 0.0005.
  scale = 0.05
  rounded = [
    np.float32(jnp.asarray(x * scale, jnp.bfloat16))
    for x in attention_reference.arrays(37)
  ]
  exact = attention_reference.attend(
    *rounded, attention_reference.rows(37), **MASKS["causal"][1]
  )
  ours = computed(way, "causal", 37, dtype="bfloat16", scale=scale)
  for x, y in zip(ours, exact, strict=True):
    np.testing.assert_allclose(x, y, atol=1e-3)


def test_dropout_on_a_cpu_has_the_gradient_of_autodiff():
  """Half of the weights are dropped; those of a query may all be."""
  mask = AttentionMask(jnp.asarray(attention_reference.rows(37)), causal=True)
  *args, gradient = attention_reference.arrays(37)
  B, L, H, _ = args[0].shape
  kept = 2.0 * np.random.default_rng(7).integers(0, 2, (B, H, L, L))
  kept[0, 1, 5] = 0

  @jax.jit
  def run(args, gradient):
    ways = (
      functools.partial(layer.plain_on_cpu, kept=jnp.float32(kept)),
      functools.partial(layer.plain, drop=lambda weights: weights * kept),
    )
    vjps = [jax.vjp(lambda *x, way=way: way(*x, mask), *args) for way in ways]
    return [(y, *backward(gradient)) for y, backward in vjps]

  ours, autodiff = run(args, gradient)
  assert not ours[0][0, 5, 1].any()
  for x, y in zip(ours, autodiff, strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.parametrize("way", ["xla", "blockwise"])
def test_from_right_to_left(way):
  mask = AttentionMask(
    jnp.asarray(attention_reference.rows(37)), causal=True, right_to_left=True
  )
  *args, gradient = attention_reference.arrays(37)
  attend = functools.partial(layer.attend, mask=mask, implementation=way)

  @jax.jit
  def run(args, gradient):
    y, backward = jax.vjp(attend, *args)
    return y, *backward(gradient)

  expected = attention_reference.attend(
    *args, gradient, attention_reference.rows(37), attends=lambda i, j: j >= i
  )
  for x, y in zip(run(args, gradient), expected, strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


def test_segments_in_any_order():
  # Ids that fall and recur, with padding in between.
  segments = np.array([[5, 5, 0, 2, 2, 2, 0, 5, 1, 1, 1, 3, 3]], np.int32)
  rng = np.random.default_rng(0)
  args = [rng.standard_normal((1, 13, 2, 4), np.float32) for _ in range(3)]
  mask = AttentionMask(jnp.asarray(segments))
  ours, plain = jax.jit(
    lambda *args: (
      blockwise.attend(*args, mask, block=3),
      layer.plain(*args, mask),
    )
  )(*args)
  np.testing.assert_allclose(ours, plain, atol=1e-5)


TWO_TEXTS = [[1, 1, 1, 1, 1, 2, 2, 2, 0, 0, 0, 0]]


@pytest.mark.parametrize(
  ("segments", "options", "expected"),
  [
    # Text 1 ends in the second block of 4, where 2 begins; padding.
    (TWO_TEXTS, {}, ["110", "110", "001"]),
    (TWO_TEXTS, {"causal": True}, ["100", "110", "001"]),
    # Padding in the last text's block does not count as an earlier text.
    ([[1] * 5 + [2] * 4 + [0] * 3], {}, ["110", "111", "011"]),
    # Blocks that another row of the batch needs are visited too.
    ([*TWO_TEXTS, [1] * 12], {}, ["111", "111", "111"]),
    ([[1] * 20], {"window": 2}, ["11000", "11100", "01110", "00111", "00011"]),
    ([[1] * 20], {"window": 8}, ["11000", "11100", "01110", "00111", "00011"]),
    ([[1] * 20], {"window": 10}, ["11100", "11110", "11111", "01111", "00111"]),
  ],
  ids=str,
)
def test_only_blocks_that_may_be_attended_to_are_read(
  segments, options, expected
):
  """Rows of `expected` are blocks of queries, columns are blocks of keys."""
  L, size = len(segments[0]), len(segments)
  mask = AttentionMask(jnp.array(segments), **options)
  query, key, value = np.ones((3, size, L, 2, 4), np.float32)
  attend = jax.jit(
    lambda value: blockwise.attend(query, key, value, mask, block=4)
  )
  for block in range(L // 4):
    unread = value.copy()
    unread[:, 4 * block : 4 * block + 4] = np.nan  # Even if its weight is 0.
    found = (
      np.isnan(attend(unread)).any(axis=(0, 2, 3)).reshape(-1, 4).any(axis=1)
    )
    assert found.tolist() == [row[block] == "1" for row in expected]


def test_memory_is_linear_in_the_length():
  def temporary(length):
    x = jax.ShapeDtypeStruct((1, length, 2, 64), jnp.float32)

    def run(query, key, value, gradient):
      mask = AttentionMask(jnp.ones((1, length), jnp.int32))
      y, backward = jax.vjp(
        lambda *args: blockwise.attend(*args, mask), *(query, key, value)
      )
      return y, backward(gradient)

    compiled = jax.jit(run).lower(x, x, x, x).compile()
    return compiled.memory_analysis().temp_size_in_bytes

  short, long = temporary(1024), temporary(4096)
  assert long < 4.2 * short
  # An array [H, L, K] is 2 MB, the scores of two blocks are 0.13 MB; those
  # of the whole row, [H, L, L], would be 134 MB.
  assert long < 16 * 2.1e6 + 8 * 0.13e6


@pytest.mark.parametrize(
  ("way", "length"), [slow("splash", 130), ("blockwise", 13), ("cudnn", 13)]
)
def test_gradients_over_a_mesh(way, length):
  """Rows over 4 devices, heads over 2."""
  axes = ("data", "fsdp", "tensor")
  mesh = jax.make_mesh(
    (2, 2, 2), axes, axis_types=(jax.sharding.AxisType.Auto,) * 3
  )
  rng = np.random.default_rng(0)
  args = [rng.standard_normal((4, length, 2, 8), np.float32) for _ in range(3)]
  segments = jnp.asarray(1 + np.arange(length) // [[3], [5], [7], [140]])
  mask = AttentionMask(segments, window=20, is_local=jnp.array(True))

  def loss(way):
    return lambda *args: (way(*args, mask) ** 2).sum()

  with jax.set_mesh(mesh):
    ours = jax.jit(jax.grad(loss(WAYS[way]), argnums=(0, 1, 2)))(*args)
  plain = jax.grad(loss(layer.plain), argnums=(0, 1, 2))(*args)
  for x, y in zip(ours, plain, strict=True):
    np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_cudnn_gets_the_lengths(causal):
  # Rows of 7, 4 and 0 tokens. Padding of a row with text is 0.
  segments = np.array([[1] * 7, [2] * 4 + [0] * 3, [0] * 7], np.int32)
  args = [x[:, :7] for x in attention_reference.arrays(37)[:3]]
  mask = AttentionMask(jnp.asarray(segments), causal=causal, one_text=True)
  ours = cudnn(*args, mask)
  plain = np.array(layer.plain(*args, mask))
  plain[1, 4:] = 0
  np.testing.assert_allclose(ours, plain, atol=1e-5)


def test_cudnn_gives_nan_for_rows_that_are_not_one_text_as_promised():
  segments = np.array([[1] * 7, [1, 1, 2, 2, 0, 0, 0], [0, 1, 1, 1, 1, 0, 0]])
  args = [x[:, :7] for x in attention_reference.arrays(37)[:3]]
  ours = cudnn(*args, AttentionMask(jnp.asarray(segments), one_text=True))
  assert np.isfinite(ours[0]).all() and np.isnan(ours[1:]).all()


@pytest.mark.parametrize(
  ("window", "length", "saves"),
  [(128, 512, False), (128, 513, True), (20, 513, True), (300, 1201, True)],
)
def test_rows_from_which_a_band_is_computed(window, length, saves):
  # More than 8 blocks of max(window / 2, 64) queries.
  segments = jnp.ones((1, length), jnp.int32)
  assert banded.saves(AttentionMask(segments, window=window)) == saves


def test_a_band_has_no_array_of_the_whole_row():
  x = jax.ShapeDtypeStruct((1, 4_000, 2, 8), jnp.float32)

  def run(query, key, value):
    mask = AttentionMask(jnp.ones((1, 4_000), jnp.int32), window=128)
    with mock.patch.object(
      vendor_kernels,
      "attend_cudnn",
      functools.partial(jax.nn.dot_product_attention, implementation="xla"),
    ):
      return vendor_kernels.cudnn(query, key, value, mask)

  text = jax.jit(run).lower(x, x, x).compile().as_text()
  assert "64,192]" in text and "4000,4000]" not in text
