"""Contrastive losses: the right passage of a query against others (InfoNCE).

  -log softmax_j(cos(q_i, p_j) / temperature + hardness * c_ij)[i]

where c_ij is cos(q_i, p_j) as a constant, and 0 for the right passage: the
nearer a wrong passage is, the more it counts (Lan et al. 2025,
arXiv:2503.04812, equation 5). If symmetric, half of the loss is the other way:
the right query of a passage against others. With widths, the losses of the
first d numbers of the vectors are added, for each width d (Matryoshka, Kusupati
et al. 2022, arXiv:2205.13147, equation 1, with weights of 1).

Dimensions: B examples, C texts in each: a query and K passages, the first of
which is correct; D numbers of a vector.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from maskedlm.core.task import Batch, Metrics
from maskedlm.modeling import losses, reports

# In passage_ids, fills the rows of examples with fewer passages; in query_ids,
# marks examples without a query, whose passages are only searched.
NONE = -1
_LEFT_OUT = -1e9  # Instead of a cosine.


def normalise(x):
  """Returns vectors [..., D] scaled to length 1."""
  square = jnp.sum(x * x, axis=-1, keepdims=True)
  return x * jax.lax.rsqrt(jnp.maximum(square, 1e-12))


def loss_and_metrics(
  x,
  batch: Batch,
  *,
  temperature: float,
  hardness: float = 0.0,
  symmetric: bool = False,
  widths: Sequence[int] = (),
  scale=normalise,
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) as Task.loss; the accuracy is of whole vectors.

  Args:
    x: float32 [B, C, D], the vectors of the queries and their passages.
    batch: query_ids [B], passage_ids [B, K], example_weights [B].
    temperature, hardness, symmetric: see above.
    widths: some below D; D itself always counts.
    scale: vectors [..., D] -> those whose products are compared.
  """
  terms, metrics = {}, {}

  def add(name: str, first, others, compared):
    cosines = cosines_of(first, others, compared)
    logits = cosines / temperature
    is_own = jnp.repeat(jnp.eye(len(first), dtype=bool), others.shape[1], 1)
    is_own &= jnp.arange(logits.shape[1]) % others.shape[1] == 0
    if hardness:
      constant = hardness * jax.lax.stop_gradient(cosines)
      logits += jnp.where(is_own, 0, constant)
    nll, correct = losses.loss_and_correct(
      logits, jnp.arange(len(first)) * others.shape[1]
    )
    weights = batch["example_weights"] * (batch["query_ids"] != NONE)
    # Without a wrong one there is nothing to distinguish.
    weights *= jnp.sum(compared, axis=(1, 2)) > 1
    reports.report(logits, weights)
    terms[name] = losses.weighted_sum(nll / (1 + symmetric), weights)
    return losses.weighted_sum(correct, weights)

  for d in (*widths, x.shape[-1]):
    cut, name = scale(x[..., :d]), f"_{d}" if d in widths else ""
    metrics["in_batch_accuracy"] = add(
      f"retrieval{name}", cut[:, 0], cut[:, 1:], compared_passages(batch)
    )
    if symmetric:
      queries = cut[:, :1]
      add(f"queries{name}", cut[:, 1], queries, compared_queries(batch))
  return terms, metrics


def cosines_of(first, others, compared):
  """Returns the cosines [B, B * M] of each vector with all others.

  The right one of vector i is at i * M. Those that don't count as wrong get
  _LEFT_OUT.

  Args:
    first: float32 [B, D] of length 1.
    others: float32 [B, M, D] of length 1.
    compared: bool [B, B, M].
  """
  # TPUs' default bfloat16 matmul would cause errors of 0.004 / temperature.
  cosines = jnp.einsum("BD,NMD->BNM", first, others, precision="highest")
  return jnp.where(compared, cosines, _LEFT_OUT).reshape(len(first), -1)


def compared_passages(batch: Batch):
  """Returns [B, B, K]: a query's correct passage, and what counts as wrong.

  Copies of the correct passage, other correct passages of the same query, and
  missing ones don't.
  """
  ids, queries = batch["passage_ids"], batch["query_ids"]
  B, K = ids.shape
  is_own = jnp.eye(B, dtype=bool)[..., None] & (jnp.arange(K) == 0)
  is_there = (ids != NONE) & (batch["example_weights"] > 0)[:, None]
  is_correct = ids == ids[:, :1, None]
  same_query = (queries == queries[:, None])[..., None] & (jnp.arange(K) == 0)
  return is_own | (is_there & ~is_correct & ~same_query)


def compared_queries(batch: Batch):
  """Returns [B, B, 1]: the query of a correct passage, and those of others."""
  passages, queries = batch["passage_ids"][:, 0], batch["query_ids"]
  is_there = (queries != NONE) & (batch["example_weights"] > 0)
  is_other = (passages != passages[:, None]) & (queries != queries[:, None])
  return (jnp.eye(len(queries), dtype=bool) | (is_there & is_other))[..., None]
