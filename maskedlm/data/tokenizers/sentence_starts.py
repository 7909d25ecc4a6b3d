"""Finds the tokens at which the sentences of a text begin, without offsets.

What the tokens spell (spelling.py) is compared with the normalized text, which
gives the place of each token.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from maskedlm.data.tokenizers import spelling
from maskedlm.data.tokenizers.libraries import Backend

_NOT_SPACE = re.compile(r"\S|\Z")
Spans = Sequence[tuple[int, int]]  # Begin and end of each sentence.


def make_finder(
  library: Backend,
) -> Callable[[str, Spans, np.ndarray], np.ndarray | None]:
  """Returns (text, spans, ids) -> the first tokens of sentences but the first.

  It is None if the tokens don't spell the text.
  """
  if library.kind == "wordpiece":  # Its tokens spell no spaces.
    return lambda text, spans, ids: None
  spelled = spelling.token_bytes(library)
  sizes = np.array(list(map(len, spelled)))
  unk = library.special.unk
  is_byte_level = spelling.has_step(library, "ByteLevel")
  collapses = spelling.has_step(library, "WhitespaceSplit")

  def normalize(text: str) -> str:
    normal = library.normalize(text)
    if not is_byte_level:
      normal = normal.replace("▁", " ")
    return " ".join(normal.split()) if collapses else normal

  newline = "\n" if "\n" in normalize("a\nb") else " "
  # The library may put a space before the text.
  prefixes = (b"", b" ")
  if any(spelled[index][:1] == b" " for index in library.encode("a")[0][:1]):
    prefixes = (b" ", b"")

  def find_starts(
    text: str, spans: Spans, ids: np.ndarray
  ) -> np.ndarray | None:
    if "▁" in text:  # It looks like a space.
      return None
    unknown = np.flatnonzero(ids == unk).tolist()
    tokens = [spelled[index] for index in ids.tolist()] if unknown else []
    token_sizes = sizes[ids]
    plain = newline if len(unknown) < 2 else None
    for normal, normal_ends in _normal_forms(text, spans, normalize, plain):
      for prefix in prefixes:
        target = prefix + normal.encode()
        unknown_sizes = (
          _unknown_sizes(tokens, unknown, target) if unknown else []
        )
        if unknown_sizes is None:
          continue
        token_sizes[unknown] = unknown_sizes
        begins = np.cumsum(token_sizes) - token_sizes
        places = np.add(normal_ends, len(prefix))
        if len(normal) < len(normal.encode()):  # From characters to bytes.
          in_character = np.frombuffer(target, np.uint8) >> 6 == 2
          places = np.append(np.flatnonzero(~in_character), len(target))[places]
        starts = np.searchsorted(begins, places)
        if _fits(target, spelled, ids, token_sizes, begins, starts, unk):
          return starts
    return None

  return find_starts


def _normal_forms(
  text: str, spans: Spans, normalize: Callable[[str], str], newline: str | None
) -> Iterator[tuple[str, list[int]]]:
  """Yields what the tokens may spell, and where the sentences end in it.

  Most text is its own normal form, which need not be computed then. It isn't
  tried if `newline`, what becomes of a newline, is None.
  """
  plain = text.replace("\n", " ")
  if newline and plain.isprintable() and "  " not in plain:
    yield (plain if newline == " " else text), [end for _, end in spans[:-1]]
  normal = normalize(text)
  ends, place = [], 0
  for begin, end in spans:
    if body := normalize(text[begin:end]).strip():
      first = _NOT_SPACE.search(normal, place)
      if not first or not normal.startswith(body, first.start()):
        return
      place = first.start() + len(body)
    ends.append(place)
  yield normal, ends[:-1]


def _fits(target, spelled, ids, token_sizes, begins, starts, unk) -> bool:
  """Returns whether tokens have the length of `target`, and spell it at starts.

  The tokens before and after each start are compared.
  """
  if not len(ids) or begins[-1] + token_sizes[-1] != len(target):
    return False
  around = np.concatenate([starts - 1, starts])
  around = around[(around >= 0) & (around < len(ids))]
  pairs = zip(ids[around].tolist(), begins[around].tolist(), strict=True)
  return all(
    index == unk or target.startswith(spelled[index], begin)
    for index, begin in pairs
  )


def _unknown_sizes(
  tokens: Sequence[bytes], unknown: Sequence[int], target: bytes
) -> list[int] | None:
  """Returns the bytes of `target` for which each unknown token stands.

  They are at least a character, up to where the tokens after it are found. It
  is None if the tokens don't spell `target`.
  """
  known = [
    b"".join(tokens[a + 1 : b])
    for a, b in itertools.pairwise([-1, *unknown, len(tokens)])
  ]
  if not target.startswith(known[0]):
    return None
  place = len(known[0])
  sizes: list[int] = []
  for after in known[1:]:
    character = target[place : place + 4].decode(errors="ignore")[:1]
    end = place + len(character.encode())
    if len(sizes) + 1 == len(unknown):
      end = max(end, len(target) - len(after))
    elif after:
      end = target.find(after, end)
    if end <= place or not target.startswith(after, end):
      return None
    sizes.append(end - place)
    place = end + len(after)
  return sizes if place == len(target) else None
