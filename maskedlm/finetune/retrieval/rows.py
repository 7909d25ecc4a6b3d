"""Rows of retrieval: a query and its passages, a sequence each."""

import zlib
from collections.abc import Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data import hashing
from maskedlm.data.batches.text_pairs import PairRow, pair_row
from maskedlm.data.labelled.formats.passages import Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import multi_sequence
from maskedlm.finetune.contract import Rows
from maskedlm.finetune.retrieval.contrastive import NONE


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  *,
  length: int,
  query_prefix: str = "",
  passage_prefix: str = "",
  delete: float = 0.0,
) -> Rows:
  """Returns a row of C sequences [CLS] text [SEP] for each of n examples.

  Rows.values has query_ids [n] and passage_ids [n, K]. Examples with fewer than
  K passages get empty ones with the id NONE. Within a call, equal texts have
  equal ids. A query that is its own passage loses the share `delete` of its
  tokens, always the same ones, but at most all but one.
  """
  K = max(len(example.passages) for example in examples)
  ids: dict[str, int] = {}
  passage_ids = np.full((len(examples), K), NONE, np.int32)
  for row, example in zip(passage_ids, examples, strict=True):
    for k, text in enumerate(example.passages):
      row[k] = ids.setdefault(text, len(ids))
  queries = {"": NONE}
  query_ids = [queries.setdefault(e.query, len(queries) - 1) for e in examples]
  copies = {e.query for e in examples if e.query == e.passages[0]}

  def encode(prefix: str, texts: Sequence[str], shortened=()) -> list[PairRow]:
    encoded = tokenizer.encode_batch([prefix + text for text in texts])
    return [
      pair_row(
        tokenizer,
        _delete_tokens(x, delete) if text in shortened else x,
        None,
        length,
      )
      for text, x in zip(texts, encoded, strict=True)
    ]

  # Each text once; the empty text is the last, at index NONE.
  of_passages = encode(passage_prefix, [*ids, ""])
  of_queries = encode(query_prefix, [*list(queries)[1:], ""], copies)
  rows = [
    [of_queries[query], *(of_passages[k] for k in passage)]
    for query, passage in zip(query_ids, passage_ids, strict=True)
  ]
  notes: tuple[str, ...] = (
    f"{counted(len(queries) - 1, 'different query')}, "
    f"{counted(len(ids), 'different passage')}",
  )
  if copies == {*queries} - {""} and not delete:
    notes += (
      f"{counted(len(copies), 'text')} to find themselves, by dropout alone: "
      "the ranks say nothing; task.delete=0.6 would make them a measure",
    )
  return multi_sequence.stack_rows(
    rows,
    tokenizer.special.pad,
    query_ids=np.array(query_ids, np.int32),
    passage_ids=passage_ids,
    notes=notes if all(example.is_gold for example in examples) else (),
  )._replace(texts=[frozenset({e.query, *e.passages} - {""}) for e in examples])


def _delete_tokens(ids, delete: float):
  """Returns tokens [n] without the share `delete`, chosen by a hash of them."""
  chance = hashing.uniform(zlib.crc32(ids.tobytes()), np.arange(len(ids)))
  kept = (chance >= delete) | (chance == chance.max(initial=0))
  return ids[kept]
