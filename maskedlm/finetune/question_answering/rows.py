"""Encoder rows of questions on texts: [CLS] question [SEP] text window [SEP].

A text is tokenized once, however many questions it has. A text that is longer
than a row is cut into windows (data/labelled/windows.py) with enough overlap
for every answer to be whole in one of them.
"""

import functools
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from maskedlm.core.counts import counted
from maskedlm.data.labelled import windows
from maskedlm.data.labelled.formats.squad import ABSENT, Example
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common.text_pairs import row_maker
from maskedlm.finetune.contract import Rows
from maskedlm.modeling.architecture import EncoderConfig

_CACHED = 1 << 15  # Number of texts whose tokens are cached, 3 KB each.


# Text -> ids [n] int32 of its tokens, and their characters [n, 2] int32.
Encode = Callable[[str], tuple[np.ndarray, np.ndarray]]


def cached_encoder(tokenizer: Tokenizer) -> Encode:
  """Returns a cached function from a text to its tokens."""

  @functools.lru_cache(maxsize=_CACHED)
  def encode(text: str) -> tuple[np.ndarray, np.ndarray]:
    encoding = tokenizer.encode(text)
    return encoding.ids, encoding.offsets

  return encode


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  encode: Encode,
  *,
  length: int,
  max_query: int,
  stride: int,
  max_answer_length: int,
) -> Rows:
  """Returns a row for each window of each example's text.

  Rows.values has int32 arrays; places are indices of tokens in the row:
    context [n, 2]: the first place of the window and the one after the last.
    kept [n, 2]: likewise, the places with most context in this window, at which
      an answer may begin (answer_windows). Each token of the text is kept in
      exactly one row.
    first [n]: the index of the window's first token in the text.
    start, end [n]: first and last place (inclusive) of the first gold answer;
      0, [CLS], if the window doesn't contain it or there is none.
  Rows.notes reports how many questions were cut and, for labelled examples,
  where the stride was reduced, and how many answers are in no window.

  Args:
    tokenizer: encodes questions and supplies the specials.
    encode: text -> tokens, from cached_encoder.
    length: L, the largest number of tokens in a row.
    max_query: the largest number of tokens of a question.
    stride: tokens from one window to the next, if the longest answer fits into
      their overlap.
    max_answer_length: tokens of the longest answer.
  """
  row = row_maker(tokenizer, cfg, length)
  questions = tokenizer.encode_batch([e.question for e in examples])
  rows, values, owners = [], [], []
  answers, strides = [], []
  for index, example in enumerate(examples):
    question = questions[index][:max_query]
    ids, offsets = encode(example.context)
    answers.append(answer_tokens(example, offsets))
    # The text's place in the row.
    begin = 1 + len(question) + cfg.pair_separators
    capacity = length - begin - 1
    if len(ids) > capacity:
      strides.append(_stride(capacity, stride, max_answer_length))
    for window in answer_windows(len(ids), capacity, stride, max_answer_length):
      rows.append(row(question, ids[window.begin : window.end]))
      values.append(_places(window, begin, answers[-1]))
      owners.append(index)
  table = np.array(values, np.int32).reshape(-1, 7)
  lost = _num_lost(examples, owners, table[:, 6])
  notes = _cut_questions(list(map(len, questions)), max_query)
  notes += _notes(
    examples, answers, strides, lost, stride=stride, longest=max_answer_length
  )
  return Rows(
    tokens={
      "input_ids": [row.input_ids for row in rows],
      "token_type_ids": [row.token_type_ids for row in rows],
    },
    values={
      "context": table[:, 0:2],
      "kept": table[:, 2:4],
      "first": table[:, 4],
      "start": table[:, 5],
      "end": table[:, 6],
    },
    example=np.array(owners, np.int64),
    notes=notes,
    lost=f"no window of data.length={length} contains an answer whole; raise it"
    if 0 < lost == sum(bool(example.answers) for example in examples)
    else "",
  )


def _places(
  window: windows.Window, begin: int, answer: tuple[int, int] | None
) -> tuple[int, ...]:
  """Returns the values of a row whose window begins at place `begin`."""
  shift = begin - window.begin  # From tokens of the text to places.
  start, end = 0, 0
  if answer and window.begin <= answer[0] and answer[1] < window.end:
    start, end = answer[0] + shift, answer[1] + shift
  return (*(x + shift for x in window), window.begin, start, end)


def _num_lost(
  examples: Sequence[Example], owners: Sequence[int], ends: np.ndarray
) -> int:
  """Returns how many answers are whole in no row, given where they end."""
  whole = {owner for owner, end in zip(owners, ends, strict=True) if end}
  return sum(bool(e.answers) and i not in whole for i, e in enumerate(examples))


def answer_characters(
  text: str, offsets: np.ndarray, start: int, end: int
) -> tuple[int, int]:
  """Returns the characters (begin, end) of tokens start to end, trimmed.

  `end` is inclusive. `offsets` are [n, 2], as of Encode.
  """
  begin, stop = int(offsets[start, 0]), int(offsets[end, 1])
  # Several tokens in a row may consist of whitespace.
  stop = begin + len(text[begin:stop].rstrip())
  return stop - len(text[begin:stop].lstrip()), stop


def answer_tokens(
  example: Example, offsets: np.ndarray
) -> tuple[int, int] | None:
  """Returns the first and last token that overlap the first gold answer."""
  if not example.answers:
    return None
  text, begin = example.answers[0]
  if begin == ABSENT:
    return None
  (inside,) = np.nonzero(
    (offsets[:, 0] < begin + len(text)) & (offsets[:, 1] > begin)
  )
  # No token overlaps it if the tokenizer drops all of its characters.
  return (int(inside[0]), int(inside[-1])) if len(inside) else None


def _stride(capacity: int, stride: int, longest: int) -> int:
  """Returns a stride at which neighbours overlap by the longest answer."""
  return min(stride, max(capacity - longest, 1))


@functools.lru_cache(maxsize=1 << 12)
def answer_windows(
  count: int, capacity: int, stride: int, longest: int
) -> list[windows.Window]:
  """Returns windows; an answer is whole in the one that keeps its first token.

  This holds for answers of at most `longest` tokens, if a window can hold them.
  """
  sizes = np.ones(count, np.int64)
  text_windows = windows.cut_windows(
    sizes, capacity, stride=_stride(capacity, stride, longest)
  )
  bounds = [
    # From here on, an answer may extend beyond the window.
    max(min(window.keep_end, window.end - longest + 1), after.begin)
    for window, after in itertools.pairwise(text_windows)
  ]
  return [
    window._replace(keep_begin=begin, keep_end=end)
    for window, begin, end in zip(
      text_windows, [0, *bounds], [*bounds, count], strict=True
    )
  ]


def _cut_questions(sizes: Sequence[int], max_query: int) -> list[str]:
  """Returns a note if questions are longer than max_query tokens."""
  cut = [size for size in sizes if size > max_query]
  return [
    f"questions cut to {max_query} tokens: {len(cut):,} (the longest has "
    f"{size:,})"
    for size in sorted(cut)[-1:]
  ]


def _notes(
  examples: Sequence[Example],
  answers: Sequence[tuple[int, int] | None],
  strides: Sequence[int],
  lost: int,
  *,
  stride: int,
  longest: int,
) -> list[str]:
  """Returns notes on labelled examples: shorter strides, long answers."""
  if all(example.answers is None for example in examples):
    return []
  shorter = [x for x in strides if x < stride]
  wide = sum(x is not None and x[1] - x[0] >= longest for x in answers)
  notes = []
  if shorter:
    notes.append(
      f"task.stride={stride} is reduced to {min(shorter)}..{max(shorter)} for "
      f"{counted(len(shorter), 'question')}, so that windows overlap by "
      f"task.max_answer_length={longest} tokens and each answer is whole in "
      "one; a larger data.length makes fewer rows"
    )
  if lost:
    notes.append(
      f"answers that no window contains whole: {lost:,}; they can be neither "
      "learnt nor predicted"
    )
  if wide > lost:
    notes.append(
      f"answers of more than task.max_answer_length={longest} tokens: "
      f"{wide:,}; they are not predicted whole"
    )
  return notes
