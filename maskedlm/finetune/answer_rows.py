"""Questions on texts -> rows: [CLS] question [SEP] a window of the text [SEP].

A text is tokenised once, whatever the number of its questions; what is longer
than a row is cut into windows (windows.py). Used by question_answering.py.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.corpus.tokenizer import Tokenizer
from maskedlm.finetune import windows
from maskedlm.finetune.application import Rows
from maskedlm.finetune.squad import Example

_CACHED = 1 << 15  # Texts whose tokens are remembered, 3 KB each.


class Tokens(NamedTuple):
  """Of a text; see tokenizer.Encoding."""

  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2] int32: characters of the text.


def encoder_of(tokenizer: Tokenizer) -> Callable[[str], Tokens]:
  """The function from a text to its tokens; it remembers what it did."""

  @functools.lru_cache(maxsize=_CACHED)
  def encode(text: str) -> Tokens:
    encoding = tokenizer.encode(text)
    return Tokens(encoding.ids, encoding.offsets)

  return encode


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  encode: Callable[[str], Tokens],
  *,
  length: int,
  max_query: int,
  stride: int,
  separators: int = 1,
  num_types: int = 2,
) -> Rows:
  """A row for each window of each example's text.

  Rows.values, where places are of tokens in the row, the end excluded:
    context [n, 2]: the places of the window.
    kept [n, 2]: those of them that have most context here (windows.py): only
      there may an answer begin, so each does in one row alone.
    first [n]: the token of the text that the window begins with.
    start, end [n]: first and last place of the first gold answer; 0, [CLS],
      where the window doesn't hold it, or there is none.

  Args:
    examples: n or fewer.
    tokenizer: of questions, and for its specials.
    encode: text -> its tokens.
    length: L, the most tokens of a row.
    max_query: the most tokens of a question; truncated counts the cut ones.
    stride: tokens from a window to the next one.
    separators: how many [SEP] end the question.
    num_types: types of tokens that the encoder knows; see pairs.pair_row.
  """
  special = tokenizer.special
  questions = tokenizer.encode_batch([e.question for e in examples])
  input_ids, types, values, owners, truncated = [], [], [], [], 0
  for index, (example, question) in enumerate(
    zip(examples, questions, strict=True)
  ):
    truncated += len(question) > max_query
    head = np.concatenate(
      [[special.cls], question[:max_query], [special.sep] * separators]
    ).astype(np.int32)
    tail = np.int32([special.sep])
    ids, offsets = encode(example.context)
    answer = _answer_tokens(example, offsets)
    for window in _windows(len(ids), length - len(head) - 1, stride):
      # From tokens of the text to places in the row.
      shift = len(head) - window.begin
      row = np.concatenate([head, ids[window.begin : window.end], tail])
      start, end = 0, 0
      if answer and window.begin <= answer[0] and answer[1] < window.end:
        start, end = answer[0] + shift, answer[1] + shift
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
    truncated=truncated,
  )


def characters(
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


@functools.lru_cache(maxsize=1 << 12)
def _windows(count: int, capacity: int, stride: int) -> list[windows.Window]:
  return windows.cut(np.ones(count, np.int64), capacity, stride=stride)
