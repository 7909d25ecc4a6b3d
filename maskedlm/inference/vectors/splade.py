"""Sparse vectors: weights of words, as `finetune splade` trains them."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files

POOL = "splade"  # Of VectorOptions.


@functools.lru_cache(maxsize=8)
def make_encoder(cfg: EncoderConfig) -> Callable:
  """Returns a jitted (params, batch) -> weights of words, float32 [B, L, V]."""

  @jax.jit
  def encode(params, batch):
    hidden = masked_lm.encode(cfg, params, batch, None, False)
    logits = masked_lm.predict_tokens(cfg, params, hidden)
    return jnp.log1p(jnp.maximum(logits, 0))

  return encode


def check(params: Params, is_last: bool, truncate_dim: int) -> None:
  """Raises ConfigError if a model has no sparse vectors of these options."""
  if "mlm_head" not in params or not is_last or truncate_dim:
    raise ConfigError(
      "pool='splade' is of a model of `maskedlm finetune splade`, of its last "
      "layer; expected no other --layers, and no --truncate_dim."
    )


def require_dense(pool: str, path: Any) -> None:
  """Raises ConfigError if sentences are pooled to sparse vectors."""
  if pool == POOL:
    raise ConfigError(
      f"{path} makes sparse vectors (splade); expected a model of dense ones."
    )


def to_columns(
  x: sparse.csr_array, *, begins: bool, before: int
) -> Mapping[str, np.ndarray]:
  """Returns the arrays of rows [n, V], to append to those of a file.

  `begins` says whether they are its first, and `before` is the number of
  weights in it. from_columns reads the file.
  """
  return {
    "word_starts": x.indptr.astype(np.int64)[1 - begins :] + before,
    "words": x.indices.astype(np.int32),
    "weights": np.float32(x.data),
  }


def from_columns(file: Mapping[str, Any], width: int) -> sparse.csr_array:
  """Returns the vectors [n, V] of a file; raises ValueError if inconsistent."""
  starts = output_files.array(file, "word_starts", "i8", -1)
  words = output_files.array(file, "words", "i4", -1)
  weights = output_files.array(file, "weights", "f4", len(words))
  x = sparse.csr_array((weights, words, starts), shape=(len(starts) - 1, width))
  x.check_format()
  return x
