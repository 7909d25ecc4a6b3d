"""Encoder rows of documents: groups of segments that are read independently.

A document is cut into segments of at most a row, between sentences where it can
be (Joshi et al. 2019, arXiv:1908.09091, "independent"). Up to C neighbouring
segments are one row of Rows, of C sequences (common/multi_sequence.py): within
it, training links mentions across segments. Decoding links across all rows of a
document.
"""

from collections.abc import Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.batches.text_pairs import PairRow, text_row
from maskedlm.data.labelled.formats.chains import Chains, Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import multi_sequence
from maskedlm.finetune.common.word_rows import encode_words
from maskedlm.finetune.contract import Rows


def cut_segments(
  sizes: np.ndarray, sentence_ends: Sequence[int], capacity: int
) -> list[tuple[int, int]]:
  """Returns (first word, one after the last) of each segment.

  A segment ends with the last sentence that fits, or within a sentence that is
  longer than a segment. Every word is in exactly one.

  Args:
    sizes: tokens of each word, [n], at most capacity.
    sentence_ends: one after the last word of each sentence, increasing.
    capacity: maximum number of tokens in a segment.
  """
  starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
  ends = np.asarray(sentence_ends, np.int64)
  segments, begin = [], 0
  while begin < len(sizes):
    end = int(np.searchsorted(starts, starts[begin] + capacity, "right")) - 1
    whole = int(np.searchsorted(ends, end, "right")) - 1
    if whole >= 0 and ends[whole] > begin:
      end = int(ends[whole])
    segments.append((begin, end))
    begin = end
  return segments or [(0, 0)]


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  *,
  length: int,
  segments: int,
  max_words: int,
) -> Rows:
  """Returns rows of C sequences [CLS] subwords [SEP].

  C is `segments`, or less if no document needs as many; the last row of a
  document is filled up with empty sequences. Rows.tokens has, in addition to
  the usual two, arrays [C, l] whose last axis is the segment's words, followed
  by zeros, as there are never more words than tokens:
    word_begins, word_ends: the place of each word's first and last token.
    word_room: how many words, itself included, are left in its sentence and
      segment; spans leave neither.
  Rows.values has, beside sequence_lengths,
    first_words [n, C]: the index of each segment's first word.
    mentions [n, M, 4]: the gold mentions that are whole in a segment: segment,
      first word in it, width - 1, and the number of the chain, from 1; zeros
      after the last.

  Args:
    length: L, the largest number of tokens in a sequence.
    segments: the largest C.
    max_words: words of the widest mention.
  """
  encoded = encode_words([x.words for x in examples], tokenizer, length)
  cuts = [
    cut_segments(sizes, example.sentence_ends, length - 2)
    for example, sizes in zip(examples, encoded.sizes, strict=True)
  ]
  C = min(segments, max(map(len, cuts), default=1))
  groups, arrays, firsts, mentions, owners = [], [], [], [], []
  counts = np.zeros(3, int)
  for index, (example, bounds) in enumerate(zip(examples, cuts, strict=True)):
    word_ids, sizes = encoded.ids[index], encoded.sizes[index]
    room = _room(len(sizes), example.sentence_ends, bounds)
    gold, own_counts = _learnable_mentions(
      example.chains or (), bounds, room, max_words
    )
    counts += own_counts
    for first in range(0, len(bounds), C):
      group = bounds[first : first + C]
      group = [*group, *[(group[-1][1],) * 2] * (C - len(group))]
      ids = [text_row(tokenizer, *word_ids[b:e]) for b, e in group]
      groups.append([PairRow(row, 0 * row, len(row)) for row in ids])
      arrays.append(_word_arrays(group, sizes, room, max(map(len, ids))))
      firsts.append([b for b, _ in group])
      inside = (gold[:, 0] >= first) & (gold[:, 0] < first + C)
      mentions.append(gold[inside] - [first, 0, 0, 0])
      owners.append(index)
  values = np.zeros((len(groups), max([1, *map(len, mentions)]), 4), np.int32)
  for row, places in zip(values, mentions, strict=True):
    row[: len(places)] = places
  rows = multi_sequence.stack_rows(
    groups,
    tokenizer.special.pad,
    first_words=np.array(firsts, np.int32).reshape(-1, C),
    mentions=values,
  )
  total, wide, crossing = counts.tolist()
  reasons = _reasons(total, wide, crossing, max_words)
  names = ("word_begins", "word_ends", "word_room")
  by_word = {name: [x[i] for x in arrays] for i, name in enumerate(names)}
  return rows._replace(
    tokens={**rows.tokens, **by_word},
    example=np.array(owners, np.int64),
    cut=encoded.cut,
    notes=reasons,
    lost=" and ".join(reasons) if 0 < total == wide + crossing else "",
  )


def _reasons(total: int, wide: int, crossing: int, max_words: int) -> list[str]:
  """Returns notes on mentions, `total` in all, that can't be learnt."""
  remedies = (
    (
      wide,
      f"have more words than task.max_mention_words={max_words}",
      "raise it",
    ),
    (
      crossing,
      "are not whole in a sentence and a row",
      "a larger data.length helps where sentences are cut",
    ),
  )
  return [
    f"{count:,} of {counted(total, 'mention')} {problem}; they can be neither "
    f"learnt nor predicted; {remedy}"
    for count, problem, remedy in remedies
    if count
  ]


def _room(
  count: int, sentence_ends: Sequence[int], bounds: Sequence[tuple[int, int]]
) -> np.ndarray:
  """Returns how many words each has left in its sentence and segment, [n]."""
  ends = np.union1d(sentence_ends, [end for _, end in bounds]).astype(np.int64)
  places = np.arange(count)
  return ends[np.searchsorted(ends, places, "right")] - places


def _learnable_mentions(
  chains: Chains,
  bounds: Sequence[tuple[int, int]],
  room: np.ndarray,
  max_words: int,
) -> tuple[np.ndarray, list[int]]:
  """Returns (segment, word, width - 1, chain) of mentions, and three counts.

  The counts are those of all mentions, of too wide and of crossing ones. A
  mention of two chains is learnt in the first.
  """
  owner: dict[tuple[int, int], int] = {}
  for number, chain in enumerate(chains, 1):
    for mention in chain:
      owner.setdefault(mention, number)
  mentions = [(*mention, number) for mention, number in owner.items()]
  begins, ends, numbers = np.array(mentions, np.int64).reshape(-1, 3).T
  widths = ends - begins
  is_wide = widths > max_words
  crosses = ~is_wide & (widths > room[begins])
  firsts = np.array([first for first, _ in bounds])
  segments = np.searchsorted(firsts, begins, "right") - 1
  places = segments, begins - firsts[segments], widths - 1, numbers
  return (
    np.stack(places, axis=1)[~(is_wide | crosses)],
    [len(owner), int(is_wide.sum()), int(crosses.sum())],
  )


def _word_arrays(
  bounds: Sequence[tuple[int, int]],
  sizes: np.ndarray,
  room: np.ndarray,
  length: int,
) -> np.ndarray:
  """Returns word_begins, word_ends and word_room of segments, [3, C, l]."""
  out = np.zeros((3, len(bounds), length), np.int32)
  for i, (begin, end) in enumerate(bounds):
    inside, count = slice(begin, end), end - begin
    out[1, i, :count] = np.cumsum(sizes[inside])
    out[0, i, :count] = out[1, i, :count] + 1 - sizes[inside]
    out[2, i, :count] = room[inside]
  return out
