"""Questions on texts -> rows: [CLS] question [SEP] a window of the text [SEP].

A text is tokenised once, whatever the number of its questions; what is longer
than a row is cut into windows (windows.py), which overlap by so much that every
answer is whole in one. Used by question_answering.py.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.data.labelled import windows
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.contract import Rows
from maskedlm.finetune.question_answering.squad import Example

_CACHED = 1 << 15  # Texts whose tokens are remembered, 3 KB each.


class TokenizedText(NamedTuple):
  """Of a text; see tokenizer.Encoding."""

  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2] int32: characters of the text.


def cached_encoder(tokenizer: Tokenizer) -> Callable[[str], TokenizedText]:
  """The function from a text to its tokens; it remembers what it did."""

  @functools.lru_cache(maxsize=_CACHED)
  def encode(text: str) -> TokenizedText:
    encoding = tokenizer.encode(text)
    return TokenizedText(encoding.ids, encoding.offsets)

  return encode


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  encode: Callable[[str], TokenizedText],
  *,
  length: int,
  max_query: int,
  stride: int,
  max_answer_length: int,
  separators: int = 1,
  num_types: int = 2,
) -> Rows:
  """A row for each window of each example's text.

  Rows.values, where places are of tokens in the row, the end excluded:
    context [n, 2]: the places of the window.
    kept [n, 2]: those of them that have most context here (see _windows): only
      there may an answer begin, so each does in one row alone.
    first [n]: the token of the text that the window begins with.
    start, end [n]: first and last place of the first gold answer; 0, [CLS],
      where the window doesn't hold it, or there is none.
  Of labelled examples, Rows.notes tells how many questions were cut, where the
  stride had to be shorter, and how many answers no window holds.

  Args:
    examples: n or fewer.
    tokenizer: of questions, and for its specials.
    encode: text -> its tokens.
    length: L, the most tokens of a row.
    max_query: the most tokens of a question.
    stride: tokens from a window to the next one, if the longest answer fits
      into what they share.
    max_answer_length: tokens of that.
    separators: how many [SEP] end the question.
    num_types: types of tokens that the encoder knows; see pairs.pair_row.
  """
  special = tokenizer.special
  questions = tokenizer.encode_batch([e.question for e in examples])
  input_ids, types, values, owners = [], [], [], []
  shorter, lost = [], 0
  for index, (example, question) in enumerate(
    zip(examples, questions, strict=True)
  ):
    head = np.concatenate(
      [[special.cls], question[:max_query], [special.sep] * separators]
    ).astype(np.int32)
    tail = np.int32([special.sep])
    ids, offsets = encode(example.context)
    answer = _answer_tokens(example, offsets)
    capacity = length - len(head) - 1
    used = _stride(capacity, stride, max_answer_length)
    if used < stride and len(ids) > capacity:
      shorter.append(used)
    is_whole = False
    for window in _windows(len(ids), capacity, stride, max_answer_length):
      # From tokens of the text to places in the row.
      shift = len(head) - window.begin
      row = np.concatenate([head, ids[window.begin : window.end], tail])
      start, end = 0, 0
      if answer and window.begin <= answer[0] and answer[1] < window.end:
        start, end = answer[0] + shift, answer[1] + shift
        is_whole = True
      input_ids.append(row)
      is_text = np.arange(len(row)) >= len(head)
      types.append(np.int32(is_text & (num_types > 1)))
      values.append(
        (
          window.begin + shift,
          window.end + shift,
          window.keep_begin + shift,
          window.keep_end + shift,
          window.begin,
          start,
          end,
        )
      )
      owners.append(index)
    lost += bool(example.answers) and not is_whole
  table = np.array(values, np.int32).reshape(-1, 7)
  return Rows(
    tokens={"input_ids": input_ids, "token_type_ids": types},
    values={
      "context": table[:, 0:2],
      "kept": table[:, 2:4],
      "first": table[:, 4],
      "start": table[:, 5],
      "end": table[:, 6],
    },
    example=np.array(owners, np.int64),
    notes=_notes(
      sum(len(question) > max_query for question in questions),
      shorter,
      lost,
      max_query=max_query,
      stride=stride,
      longest=max_answer_length,
    )
    if any(example.answers is not None for example in examples)
    else (),
  )


def answer_characters(
  text: str, offsets: np.ndarray, start: int, end: int
) -> tuple[int, int]:
  """Where in the text its tokens start to end (included) are, trimmed."""
  begin, stop = int(offsets[start, 0]), int(offsets[end, 1])
  # There may be tokens of whitespace alone, also several in a row.
  stop = begin + len(text[begin:stop].rstrip())
  return stop - len(text[begin:stop].lstrip()), stop


def _answer_tokens(
  example: Example, offsets: np.ndarray
) -> tuple[int, int] | None:
  """First and last token that have a character of the first gold answer."""
  if not example.answers:
    return None
  text, begin = example.answers[0]
  (inside,) = np.nonzero(
    (offsets[:, 0] < begin + len(text)) & (offsets[:, 1] > begin)
  )
  # No token has it if it is nothing but characters that tokenizers drop.
  return (int(inside[0]), int(inside[-1])) if len(inside) else None


def _stride(capacity: int, stride: int, longest: int) -> int:
  """Such that neighbours of capacity share the longest answer's tokens."""
  return min(stride, max(capacity - longest, 1))


@functools.lru_cache(maxsize=1 << 12)
def _windows(
  count: int, capacity: int, stride: int, longest: int
) -> list[windows.Window]:
  """Those of windows.cut, where an answer is whole in that of its first token.

  If it is of `longest` tokens or fewer, and a window holds so many.
  """
  sizes = np.ones(count, np.int64)
  used = _stride(capacity, stride, longest)
  found = windows.cut_windows(sizes, capacity, stride=used)
  bounds = [
    # From here on an answer may lead out.
    max(min(window.keep_end, window.end - longest + 1), after.begin)
    for window, after in itertools.pairwise(found)
  ]
  return [
    window._replace(keep_begin=begin, keep_end=end)
    for window, begin, end in zip(
      found, [0, *bounds], [*bounds, count], strict=True
    )
  ]


def _notes(
  cut: int,
  shorter: Sequence[int],
  lost: int,
  *,
  max_query: int,
  stride: int,
  longest: int,
) -> list[str]:
  """Rows.notes: what was cut, shorter strides, answers not found."""
  notes = []
  if cut:
    notes.append(f"questions cut to task.max_query={max_query}: {cut:,}")
  if shorter:
    notes.append(
      f"task.stride={stride} is {min(shorter)} to {max(shorter)} for "
      f"{len(shorter):,} questions: windows overlap by task.max_answer_length="
      f"{longest} tokens, or answers would be whole in none; a larger "
      "data.length makes fewer rows"
    )
  if lost:
    notes.append(
      f"answers that are whole in no window: {lost:,}; they can be neither "
      "learnt nor predicted"
    )
  return notes
