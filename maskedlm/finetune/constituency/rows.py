"""Encoder rows of sentences and their trees.

A sentence that is longer than a row becomes several windows. Each word belongs
to the last window that contains it: its tag, and the spans that begin with it,
are learnt and predicted there. As windows begin half a row apart, every span of
up to half a row is whole there. A wider bracket than a row can't be found; the
brackets in it then stand side by side in the one around it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled.formats import trees
from maskedlm.data.labelled.formats.trees import Example
from maskedlm.data.labelled.windows import Window, cut_windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.labels import (
  UNSEEN,
  Gold,
  label_ids,
  unseen_notes,
)
from maskedlm.finetune.common.word_rows import (
  WordWindow,
  word_places,
  word_rows,
)
from maskedlm.finetune.contract import Rows


def _chains(example: Example) -> list[tuple[str, str]]:
  """Returns (chain, FILE:LINE of its first word) of each labelled span."""
  chains = trees.join_chains(example.brackets or ())
  places = word_places(example)
  return [(chain, places[i]) for (i, _), chain in chains.items()]


def _tags(example: Example) -> list[tuple[str, str]]:
  """Returns (tag, FILE:LINE) of each word."""
  return list(zip(example.tags or (), word_places(example), strict=True))


GOLD = Gold("brackets", "a bracketed tree", _chains, "bracket", "bracket_f1")
TAGS = Gold("tags", "a bracketed tree", _tags)


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  chain_ids: Mapping[str, int],
  tag_ids: Mapping[str, int],
  *,
  length: int,
) -> Rows:
  """Returns the rows of sentences: [CLS] subwords [SEP], one per window.

  Rows.tokens has, in addition to the usual two, arrays whose last axis is the
  row's words, followed by zeros, as there are never more words than tokens l:
    word_begins, word_ends [l]: the place of each word's first and last token.
    word_kept [l]: 1 for the words that belong to the row.
    word_tags [l]: their tags; UNSEEN for one that has no id.
    gold_begins, gold_widths, gold_labels [2, l]: the labelled spans that begin
      with them: the first word in the row, words, label or UNSEEN. A tree over
      n words has at most 2n - 1.
  Rows.notes reports what is UNSEEN, and brackets that are whole in no row.
  Rows.values has first_word [n], the index of the row's first word in its
  sentence.
  """
  tags = [
    label_ids(example.tags or [None] * len(example.words), tag_ids)
    for example in examples
  ]
  spans = [_labelled_spans(example, chain_ids) for example in examples]

  def targets(index: int, w: WordWindow):
    first, last = np.searchsorted(
      spans[index][:, 0], [w.keep_begin, w.keep_end]
    )
    inside = spans[index][first:last]
    inside = inside[inside[:, 1] <= w.end]
    # In two rows, as a tree has up to two spans for each word.
    size = int(w.last[-1]) + 2 if len(w.last) else 2
    gold = np.zeros((3, 2 * size), np.int32)
    gold[:, : len(inside)] = (
      inside[:, 0] - w.begin,
      inside[:, 1] - inside[:, 0],
      inside[:, 2],
    )
    begins, widths, labels = gold.reshape(3, 2, size)
    by_token = {
      "word_begins": w.first,
      "word_ends": w.last,
      "word_kept": w.is_kept(),
      "word_tags": tags[index][w.keep_begin : w.keep_end],
      "gold_begins": begins,
      "gold_widths": widths,
      "gold_labels": labels,
    }
    yield by_token, {"first_word": w.begin}

  rows = word_rows(
    [[trees.plain_word(x) for x in example.words] for example in examples],
    tokenizer,
    length=length,
    windows=_last_windows,
    targets=targets,
  )
  unseen = [
    x
    for example in examples
    for gold, ids in ((TAGS, tag_ids), (GOLD, chain_ids))
    for x in gold.pairs([example])
    if x[0] not in ids
  ]
  total = sum(map(len, spans))
  wide = total - sum(int(np.sum(x > 0)) for x in rows.tokens["gold_widths"])
  too_wide = (
    f"{wide:,} of {counted(total, 'labelled span')} are whole in no row "
    f"of {length} tokens; they can be neither learnt nor predicted; a larger "
    "data.length (beside a checkpoint, --length) holds more"
  )
  return rows._replace(notes=(*unseen_notes(unseen), *[too_wide] * (wide > 0)))


def _last_windows(sizes: np.ndarray, capacity: int) -> list[Window]:
  """Returns windows; each word is kept by the last window that contains it."""
  windows = cut_windows(sizes, capacity)
  stops = [*(w.begin for w in windows[1:]), len(sizes)]
  return [
    Window(w.begin, w.end, w.begin, stop)
    for w, stop in zip(windows, stops, strict=True)
  ]


def _labelled_spans(example: Example, ids: Mapping[str, int]) -> np.ndarray:
  """Returns (begin, end, label) of the labelled spans, [n, 3], by begin."""
  chains = trees.join_chains(example.brackets or ())
  spans = sorted((*s, ids.get(chain, UNSEEN)) for s, chain in chains.items())
  return np.array(spans, np.int64).reshape(-1, 3)
