r"""Makes tokenizers of sequences without words: of single letters, of k-mers.

No library cuts text into words that overlap, so the normalizer of a k-mer
tokenizer writes them out, for k=3 and stride=1:

  ACGT -> A C G T                 a space after every `stride` letters
       -> AC CG GT T -> ACG CGT GT T    the first letter of the word after next
       -> ACG CGT                 without the ends, which the last word has

Letters that are no base become N, which the vocabulary lacks: [UNK]. So do a
sequence shorter than k, and with stride > 1 letters at the end that fill no
k-mer. k-mers don't cross whitespace, so those of a text that is divided already
(ACG CGT, as DNABERT's files have it) are the same.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from maskedlm.core.errors import CorpusError
from maskedlm.data.options import TokenizerOptions
from maskedlm.data.tokenizers.training import (
  WORDPIECE_SPECIALS,
  choose_alphabet,
)

_OTHER = "N"  # Any letter that no k-mer of the vocabulary has.


def train_characters(lines: list[str], options: TokenizerOptions) -> str:
  """Returns the tokenizer.json of the most common letters of lines."""
  counts = Counter("".join("".join(lines).split()))
  room = options.vocab_size - len(WORDPIECE_SPECIALS)
  alphabet = choose_alphabet(counts, options.character_coverage, max_size=room)
  return characters_json(_with_specials(alphabet), WORDPIECE_SPECIALS)


def characters_json(ids: Mapping[str, int], specials: Sequence[str]) -> str:
  """Returns the tokenizer.json in which each letter of a text is a token.

  `ids` has all tokens. The specials are padding, unknown, beginning, end, mask,
  and others.
  """
  split = pre_tokenizers.Split("", behavior="isolated")
  splits = [pre_tokenizers.WhitespaceSplit(), split]
  library = _word_level(ids, specials, pre_tokenizers.Sequence(splits))
  library.decoder = decoders.Fuse()
  return library.to_str()


def train_kmers(lines: list[str], options: TokenizerOptions) -> str:
  """Returns the tokenizer.json of all 4^k k-mers, of DNA or of RNA.

  Raises:
    CorpusError: the stride is more than k.
  """
  k, stride = options.k, options.stride
  if stride > k:
    raise CorpusError(
      f"tokenizer.stride={stride} is more than tokenizer.k={k}, so letters "
      f"between k-mers would be lost: set it to 1 (they overlap) to {k}."
    )
  bases = "ACGU" if any("U" in line for line in lines) else "ACGT"
  ids = _with_specials(map("".join, itertools.product(bases, repeat=k)))
  return kmers_json(ids, WORDPIECE_SPECIALS, bases, k=k, stride=stride)


def kmers_json(
  ids: Mapping[str, int], specials: Sequence[str], bases: str, *, k, stride
) -> str:
  """Returns the tokenizer.json in which each k-mer of a text is a token.

  Arguments as for characters_json; `bases` are the letters of the k-mers.
  """
  steps = [
    (rf"[^{bases}\s]", _OTHER),
    (r"\s+", "\n"),
    (rf"\G\n?\S{{{stride}}}\K", " "),
    *(
      (rf"(?<=\S)(?= \S{{{place}}}{letter})", letter)
      for place in range(k - stride)
      for letter in bases + _OTHER
    ),
  ]
  if stride < k:
    steps.append((rf"(?<=\S )\S{{1,{k - stride}}}(?=\s|$)", ""))
  library = _word_level(ids, specials, pre_tokenizers.WhitespaceSplit())
  library.normalizer = normalizers.Sequence(
    [normalizers.Replace(tokenizers.Regex(x), to) for x, to in steps]
  )
  return library.to_str()


def _word_level(
  ids: Mapping[str, int], specials: Sequence[str], splits
) -> tokenizers.Tokenizer:
  _, unknown, first, last, _ = specials[:5]
  library = tokenizers.Tokenizer(models.WordLevel(dict(ids), unknown))
  library.pre_tokenizer = splits
  library.post_processor = processors.BertProcessing(
    (last, ids[last]), (first, ids[first])
  )
  library.add_special_tokens(list(specials))
  return library


def _with_specials(tokens) -> dict[str, int]:
  return {t: i for i, t in enumerate([*WORDPIECE_SPECIALS, *tokens])}


_STRIDE = re.compile(r"\\G\\n\?\\S\{(\d+)\}\\K")


class Kind(NamedTuple):
  """What a tokenizer.json's tokens are."""

  name: str  # characters, kmers, or the model's.
  k: int = 1  # Letters in a k-mer, and from one to the next.
  stride: int = 1


def kind_of(definition: dict, model: str) -> Kind:
  """Returns the kind of a tokenizer.json, whose model has that name."""
  steps = (definition.get("normalizer") or {}).get("normalizers", [])
  for step in steps if model == "wordlevel" else ():
    pattern = (step.get("pattern") or {}).get("Regex", "")
    if match := _STRIDE.fullmatch(pattern):
      added = {token["content"] for token in definition["added_tokens"]}
      words = definition["model"]["vocab"].keys() - added
      return Kind("kmers", len(next(iter(words))), int(match[1]))
  splits = (definition.get("pre_tokenizer") or {}).get("pretokenizers", [])
  if model == "wordlevel" and any(
    split.get("pattern") == {"String": ""} for split in splits
  ):
    return Kind("characters")
  return Kind(model)
