"""Examples of several sequences: choices, or a query and its passages.

A row of Rows is then [C, l], each sequence padded to the longest of the C, and
the value "sequence_lengths" [n, C] tells where they end: batching.py packs them
one by one. The encoder reads B * C rows.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.task import Batch


def stack_sequences(
  examples: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]], pad: int
) -> tuple[dict[str, list[np.ndarray]], np.ndarray]:
  """The sequences of n examples -> (Rows.tokens, sequence_lengths [n, C]).

  Args:
    examples: of each its C sequences, (input_ids [l], token_type_ids [l]).
    pad: the id that fills input_ids.
  """
  ids = [_padded([ids for ids, _ in example], pad) for example in examples]
  types = [_padded([types for _, types in example], 0) for example in examples]
  lengths = [[len(ids) for ids, _ in example] for example in examples]
  tokens = {"input_ids": ids, "token_type_ids": types}
  return tokens, np.array(lengths, np.int32)


def _padded(sequences: Sequence[np.ndarray], fill: int) -> np.ndarray:
  """Arrays [l_c] of different lengths -> [C, the longest]."""
  made = np.full((len(sequences), max(map(len, sequences))), fill, np.int32)
  for to, sequence in zip(made, sequences, strict=True):
    to[: len(sequence)] = sequence
  return made


def flatten_sequences(batch: Batch) -> Batch:
  """What mlm.encode reads of a batch of B examples: B * C rows."""
  L = batch["input_ids"].shape[-1]
  return {
    **{
      name: batch[name].reshape(-1, L)
      for name in ("input_ids", "token_type_ids", "segment_ids")
    },
    **{name: batch[name] for name in ("packed", "places") if name in batch},
  }
