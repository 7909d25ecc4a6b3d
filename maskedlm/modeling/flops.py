"""Matmul FLOPs of a training row, from the architecture alone.

Model FLOPs, as docs/results/performance.md and every MFU mean them: matmuls only,
backward twice forward, what rematerialisation repeats not counted.
"""

from maskedlm.modeling.encoder import EncoderConfig


def train_flops(
  cfg: EncoderConfig,
  length: int,
  *,
  num_predictions: int,
  attended: float | None = None,
) -> float:
  """FLOPs of forward and backward for one row.

  Args:
    cfg: the architecture; its true vocabulary counts.
    length: L, tokens in the row, padding included.
    num_predictions: P, positions that the vocabulary is predicted at.
    attended: pairs of positions of a segment, length^2 by default; in a row
      of several segments, the sum of their own squares.
  """
  L, P = length, num_predictions
  N, D, F, V = cfg.num_layers, cfg.width, cfg.mlp_width, cfg.vocab_size
  E = cfg.embedding_size
  matrices = {"plain": 2, "gated": 3}[cfg.mlp]
  dense = N * (4 * D**2 + matrices * D * F)  # Weights that each token meets.
  dense += E * D if E != D else 0
  pairs = visible_pairs(cfg, L, L**2 if attended is None else attended)
  attention = 2 * D * pairs  # Scores and weighted values.
  head = D * E + E * V  # For each predicted token.
  return 6.0 * (L * dense + attention + P * head)


def visible_pairs(cfg: EncoderConfig, length: int, attended: float) -> float:
  """How many pairs of positions see each other, over all layers.

  Those that the architecture asks for, also where a masked matmul does more.
  Windows are counted as in one segment: for packed rows a bound.
  """
  half = min(cfg.local_window // 2, length - 1)
  window = length * (2 * half + 1) - half * (half + 1)  # Cut off at the ends.
  far = sum(cfg.global_layers)
  near = cfg.num_layers - far
  if cfg.causal:  # Each pair once, and each position with itself.
    window, attended = (window + length) / 2, (attended + length) / 2
  return far * attended + near * min(window, attended)


def sbo_flops(cfg: EncoderConfig, *, num_predictions: int, place_width: int) -> float:
  """What a SpanBERT row takes besides: the span boundary head (SboHead).

  Args:
    cfg: the architecture; its true vocabulary counts.
    num_predictions: P, positions that it predicts at.
    place_width: of the embedding of a place in the span.
  """
  D, E, V = cfg.width, cfg.embedding_size, cfg.vocab_size
  return 6.0 * num_predictions * ((2 * D + place_width) * D + D * E + E * V)
