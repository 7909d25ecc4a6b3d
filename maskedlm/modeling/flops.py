"""Matmul FLOPs of a training row, from the architecture alone.

These are model FLOPs, as in docs/results/performance.md and every MFU: matmuls
only, the backward pass twice the forward pass, without rematerialisation.
"""

from maskedlm.modeling.encoder import EncoderConfig
from maskedlm.modeling.positions import BUCKETS


def train_flops(
  cfg: EncoderConfig,
  length: int,
  *,
  num_predictions: int,
  attended: float | None = None,
) -> float:
  """Returns the FLOPs of the forward and backward pass of one row.

  Args:
    cfg: the architecture; the vocabulary counts without padding.
    length: L, tokens in the row, including padding.
    num_predictions: P, positions at which tokens are predicted, by each of two
      LSTMs.
    attended: pairs of positions within a segment, length^2 by default; for a
      row of several segments, the sum of their squared lengths.
  """
  L, P = length, num_predictions
  N, D, F, V = cfg.num_layers, cfg.width, cfg.mlp_width, cfg.vocab_size
  E = cfg.embedding_size
  if cfg.family == "bilm":  # Inputs, outputs before, projection; twice.
    return 6.0 * (L * N * 2 * 9 * (D // 2) * F + P * 2 * E * V)
  # One's own counts as plain.
  matrices = {"gated": 3}.get(cfg.mlp, 2)
  of_keys = D * cfg.key_value_heads * cfg.head_size
  # Weights for each token.
  dense = N * (2 * D**2 + 2 * of_keys + matrices * D * F)
  dense += E * D if E != D else 0
  pairs = visible_pairs(cfg, L, L**2 if attended is None else attended)
  attention = 2 * D * pairs  # Scores and weighted values.
  if cfg.position == "disentangled":  # Both terms, of all rows of the table.
    attention += N * 2 * D * L * 2 * min(L, BUCKETS)
  # For each predicted token.
  head = D * E + E * V if cfg.mlm_head == "dense" else D * V
  return 6.0 * (L * dense + attention + P * head)


def visible_pairs(cfg: EncoderConfig, length: int, attended: float) -> float:
  """Returns how many pairs of positions attend to each other, in all layers.

  Counts the pairs of the architecture, even if a masked matmul computes more.
  Windows are counted as in a single segment, an upper bound for packed rows.
  """
  half = min(cfg.local_window // 2, length - 1)
  # Truncated at the ends.
  window: float = length * (2 * half + 1) - half * (half + 1)
  far = sum(cfg.global_layers)
  near = cfg.num_layers - far
  if cfg.causal:  # Each pair once, and the diagonal.
    window, attended = (window + length) / 2, (attended + length) / 2
  return far * attended + near * min(window, attended)
