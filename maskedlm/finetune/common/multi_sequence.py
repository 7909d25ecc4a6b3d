"""Examples of several sequences: choices, or a query and its passages.

A row of Rows is then [C, l], each sequence padded to the longest of the C, and
the value "sequence_lengths" [n, C] holds their lengths, as batching.py packs
each sequence separately. The encoder reads B * C rows.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.batches.text_pairs import PairRow, cut_sizes
from maskedlm.finetune.common.head import Head
from maskedlm.finetune.contract import Rows


def stack_rows(
  examples: Sequence[Sequence[PairRow]],
  pad: int,
  *,
  notes: Sequence[str] = (),
  **values: np.ndarray,
) -> Rows:
  """Returns the Rows of n examples of C sequences each.

  `pad` fills input_ids; notes and values are as in Rows, and "sequence_lengths"
  is added.
  """
  lengths = [[len(row.input_ids) for row in rows] for rows in examples]
  return Rows(
    tokens={
      name: [_pad([getattr(r, name) for r in rows], fill) for rows in examples]
      for name, fill in (("input_ids", pad), ("token_type_ids", 0))
    },
    values={"sequence_lengths": np.array(lengths, np.int32), **values},
    example=np.arange(len(examples)),
    cut=cut_sizes(examples),
    notes=notes,
  )


def _pad(sequences: Sequence[np.ndarray], fill: int) -> np.ndarray:
  """Returns C arrays [l_c] of different lengths as int32 [C, max l_c]."""
  out = np.full((len(sequences), max(map(len, sequences))), fill, np.int32)
  for row, sequence in zip(out, sequences, strict=True):
    row[: len(sequence)] = sequence
  return out


def flatten_sequences(batch: Batch) -> Batch:
  """Returns a batch [B, C, L] of examples as the encoder's rows [B * C, L]."""
  L = batch["input_ids"].shape[-1]
  return {
    **{
      name: batch[name].reshape(-1, L)
      for name in ("input_ids", "token_type_ids", "segment_ids")
    },
    **{name: batch[name] for name in ("packed", "places") if name in batch},
  }


def head_of_each(head: Head) -> Head:
  """Returns a Head with logits [B, C], given one with [B * C, 1]."""

  def logits(params: Params, batch: Batch, key: Key, train: bool):
    B, C, _ = batch["input_ids"].shape
    rows = flatten_sequences(batch)
    return head.logits(params, rows, key, train).reshape(B, C)

  return Head(head.init, logits)
