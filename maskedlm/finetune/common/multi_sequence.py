"""Examples of several sequences: choices, or a query and its passages.

A row of Rows is then [C, l], each sequence padded to the longest of the C, and
the value "sequence_lengths" [n, C] holds their lengths: batching.py packs them
one by one. The encoder reads B * C rows.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.task import Batch


def stack_sequences(
  examples: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]], pad: int
) -> tuple[dict[str, list[np.ndarray]], np.ndarray]:
  """Returns (Rows.tokens, sequence_lengths [n, C]) of n examples.

  Args:
    examples: the C sequences of each, (input_ids [l], token_type_ids [l]).
    pad: id that fills input_ids.
  """
  ids = [_pad([ids for ids, _ in example], pad) for example in examples]
  types = [_pad([types for _, types in example], 0) for example in examples]
  lengths = [[len(ids) for ids, _ in example] for example in examples]
  tokens = {"input_ids": ids, "token_type_ids": types}
  return tokens, np.array(lengths, np.int32)


def _pad(sequences: Sequence[np.ndarray], fill: int) -> np.ndarray:
  """Returns arrays [l_c] of different lengths as [C, the longest]."""
  out = np.full((len(sequences), max(map(len, sequences))), fill, np.int32)
  for row, sequence in zip(out, sequences, strict=True):
    row[: len(sequence)] = sequence
  return out


def flatten_sequences(batch: Batch) -> Batch:
  """Returns B examples of C sequences as the B * C rows of the encoder."""
  L = batch["input_ids"].shape[-1]
  return {
    **{
      name: batch[name].reshape(-1, L)
      for name in ("input_ids", "token_type_ids", "segment_ids")
    },
    **{name: batch[name] for name in ("packed", "places") if name in batch},
  }
