"""Computes random numbers as hashes of a seed, a purpose and counters.

The host side of the principle in docs/design/tour.md: no generator has state,
so the order of rows, a label or a split point is the same whichever step,
thread or host asks for it. Everything is vectorised over numpy arrays of
counters and broadcasts. Not cryptographic.

  label = randint(2, seed, "label", epoch, row)      # row: int array [b]
"""

import hashlib
import math

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = 8


def bits(seed, *words) -> np.ndarray:
  """Returns 64 random bits for each element of the broadcast words.

  Each word is mixed into the state in turn with the finalizer of SplitMix64
  (Steele, Lea & Flood, OOPSLA 2014; constants of Stafford's variant 13).

  Args:
    seed: an integer of any size or sign, or an array of uint64 (so that a
      result of `bits` is itself a seed).
    *words: integers, arrays of integers, or strings, which name the purpose
      and make its numbers independent of another's.

  Returns:
    uint64, of the shape that the arguments broadcast to.
  """
  arrays = [_word(word) for word in (seed, *words)]
  state = np.zeros(1, np.uint64)
  for array in arrays:
    state = _mix((state ^ array) + _GOLDEN)
  return state.reshape(np.broadcast_shapes(*(array.shape for array in arrays)))


def uniform(seed, *words) -> np.ndarray:
  """Returns float64 uniform in [0, 1), multiples of 2^-53; shaped as `bits`."""
  return (bits(seed, *words) >> np.uint64(11)) * 2.0**-53


def randint(high, seed, *words) -> np.ndarray:
  """Returns int64 uniform in [0, high); high is an integer or an array >= 1.

  No value's probability differs from 1/high by more than 2^-64.
  """
  high = np.asarray(high, np.uint64)
  return (bits(seed, *words) % high).astype(np.int64)


def coin_flips(count, seed, *words) -> np.ndarray:
  """Returns the number of heads in `count` fair coin flips, int64.

  It is exactly Binomial(count, 1/2): the ones among `count` random bits. The
  seed and words must broadcast to the shape of count, an int array >= 0.
  """
  heads = np.zeros(count.shape, np.int64)
  for word in range(-(-int(count.max(initial=0)) // 64)):
    unused = 64 - np.clip(count - 64 * word, 0, 64).astype(np.uint64)
    # Two shifts, since a shift by 64 bits is undefined.
    half = unused // np.uint64(2)
    heads += np.bitwise_count(
      bits(seed, *words, word) >> half >> (unused - half)
    )
  return heads


def permute(index, size, key) -> np.ndarray:
  """Returns the images of indices under a keyed permutation of range(size).

  A Feistel network over Z_a x Z_b with a * b just above size (Black & Rogaway,
  CT-RSA 2002), cycle-walked: O(1) memory, and any index is reached at once.

  Args:
    index: int array, 0 <= index < size.
    size: the number of elements; an array broadcasts with index.
    key: a result of `bits`; an array broadcasts with index, and each key has a
      permutation of its own.

  Returns:
    int64 of the broadcast shape.
  """
  index, size, key = np.broadcast_arrays(
    *(np.asarray(x, np.uint64) for x in (index, size, key))
  )
  shape = index.shape
  index, size, key = index.ravel(), size.ravel(), key.ravel()
  out = _feistel(index, size, key)
  outside = np.flatnonzero(out >= size)
  while outside.size:
    out[outside] = _feistel(out[outside], size[outside], key[outside])
    outside = outside[out[outside] >= size[outside]]
  return out.reshape(shape).astype(np.int64)


def _feistel(x, size, key):
  """Returns a bijection of [0, a * b), where a * b >= size; uint64 [n]."""
  sizes, inverse = np.unique(size, return_inverse=True)
  a = [math.isqrt(int(size) - 1) + 1 for size in sizes]
  a = np.array(a, np.uint64)[inverse]
  b = (size + a - np.uint64(1)) // a
  left, right = x // b, x % b
  for _ in range(_ROUNDS // 2):
    left = (left + bits(key, right) % a) % a
    right = (right + bits(key + np.uint64(1), left) % b) % b
    key = key + np.uint64(2)
  return left * b + right


def _word(word) -> np.ndarray:
  """Returns a seed or a word as uint64, of any shape."""
  if isinstance(word, str):
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    word = int.from_bytes(digest, "little")
  if isinstance(word, int):
    word %= 1 << 64
  return np.asarray(word).astype(np.uint64)


def _mix(x: np.ndarray) -> np.ndarray:
  """Applies SplitMix64's finalizer, a bijection of uint64, in place."""
  x ^= x >> np.uint64(30)
  x *= np.uint64(0xBF58476D1CE4E5B9)
  x ^= x >> np.uint64(27)
  x *= np.uint64(0x94D049BB133111EB)
  x ^= x >> np.uint64(31)
  return x
