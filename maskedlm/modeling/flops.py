"""Matmul FLOPs of a training row, from the architecture alone.

Model FLOPs, as docs/performance.md and every MFU mean them: matmuls only,
backward twice forward, what rematerialisation repeats not counted.
"""

from maskedlm.modeling.encoder import EncoderConfig


def train_flops(cfg: EncoderConfig, length: int, *, num_slots: int) -> float:
  """FLOPs of forward and backward for one row.

  Args:
    cfg: the architecture; its true vocabulary counts.
    length: L, tokens in the row, padding included.
    num_slots: P, positions that the vocabulary is predicted at.
  """
  L, P = length, num_slots
  N, D, F, V = cfg.num_layers, cfg.width, cfg.mlp_width, cfg.vocab_size
  dense = N * (4 * D**2 + 2 * D * F)  # Weights that each token meets.
  attention = 2 * N * D * L  # Scores and weighted values, for each token.
  head = D**2 + D * V  # For each predicted token.
  return 6.0 * (L * (dense + attention) + P * head)
