"""Encodes text as text: no part of it becomes a special token.

A library may match the spelling of a special token in a text, also after it has
normalized the text ("[mask]" in wide letters), as an added token that isn't
marked as special or as a piece of a unigram. So the ids that the library gives
are compared, not the text. Where one is special, the text is cut within its
spelling and encoded again.
"""

from collections.abc import Callable, Collection

import numpy as np

from maskedlm.data.tokenizers.libraries import Backend


def suspects(library: Backend, special_ids: Collection[int]) -> np.ndarray:
  """Returns the ids that text may have got by forgery: bool [V].

  The unknown token is one only if its spelling gives it; other text may, too.
  """
  is_suspect = np.zeros(len(library.tokens), bool)
  is_suspect[list(special_ids)] = True
  unk = library.special.unk
  spelling = library.tokens[unk]
  is_suspect[unk] = (unk, (0, len(spelling))) in zip(
    *library.encode(spelling), strict=True
  )
  return is_suspect


def make_encoder(
  library: Backend, suspect: np.ndarray
) -> Callable[[str, int, int], tuple[list[int], list[tuple[int, int]]]]:
  """Returns a function (text, begin, end) -> (ids, spans) of text[begin:end].

  Spans are those in the whole text. If begin > 0, a special token precedes it.
  The ids that are suspect come from `suspects`.
  """
  unk = library.special.unk
  name = library.tokens[unk]

  def is_forged(index: int, spelling: str) -> bool:
    if index != unk:
      return bool(suspect[index])
    # Unknown characters beside it may be a part of the same token.
    return name in library.normalize(spelling)

  def encode(text, begin, end):
    ids, spans, waiting = [], [], [(begin, end)]
    while waiting:
      begin, end = waiting.pop()
      encode_part = library.encode_continued if begin else library.encode
      part_ids, places = encode_part(text[begin:end])
      places = [(begin + a, begin + b) for a, b in places]
      cuts = set()
      for index, (a, b) in zip(part_ids, places, strict=True):
        if suspect[index] and is_forged(index, text[a:b]):
          cuts.update(range(a + 1, b if index == unk else min(a + 2, b)))
      if cuts:
        bounds = [begin, *sorted(cuts), end]
        waiting += zip(bounds[-2::-1], bounds[:0:-1], strict=True)
        continue
      # What is left of them is spelt by a single character.
      ids += [unk if suspect[index] else index for index in part_ids]
      spans += places
    return ids, spans

  return encode
