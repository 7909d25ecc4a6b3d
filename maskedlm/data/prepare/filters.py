"""Leaves out documents by language, length and repetition, and repeated lines.

Languages are py3langid's (Lui & Baldwin 2012). Length and repetition are among
the rules of Gopher (Rae et al., arXiv:2112.11446, A.1.1), lines those of CCNet
(Wenzek et al., arXiv:1911.00359).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.prepare import word_hashes

IDENTIFIED = 1_000  # Characters of a document by which its language is judged.
RUN = 5  # Words.


def keep(
  documents: Iterable[list[str]], options, language: str, report: Counter
) -> Iterator[list[str]]:
  """Yields the documents, lists of lines, that config.corpus keeps.

  Each is judged by itself; the report counts the others by their reason. The
  language is that of the source, as an ISO 639-1 code.

  Raises:
    ConfigError: languages can't be identified, or this one is not known.
  """
  low, high, most = options.min_words, options.max_words, options.max_repetition
  identify = make_identifier(language) if options.keep_language else None

  def judge(text: str) -> str:
    """Returns why a text is left out, or ""."""
    if low or high or most < 1:
      words = word_hashes.word_hashes(text)
      if len(words) < low:
        return "too short"
      if high and len(words) > high:
        return "too long"
      if repetition(words) > most:
        return "repetitive"
    if identify:
      detected, probability = identify(text[:IDENTIFIED])
      if detected != language or probability < options.keep_language:
        return "another language"
    return ""

  for lines in documents:
    if reason := judge(" ".join(lines)):
      report[f"documents left out: {reason}"] += 1
    else:
      yield lines


def repetition(words: np.ndarray) -> float:
  """Returns the share of the runs of 5 words that occurred before in a text."""
  if len(words) < RUN:
    return 0.0
  runs = word_hashes.runs_of_words(words, RUN)
  return 1 - len(np.unique(runs)) / len(runs)


def make_identifier(language: str) -> Callable[[str], tuple[str, float]]:
  """Returns py3langid's text -> (language, probability), if it knows this one.

  Raises:
    ConfigError: it doesn't, or it is not installed.
  """
  try:
    from py3langid import langid
  except ImportError:
    raise ConfigError(
      "corpus.keep_language needs py3langid: pip install 'maskedlm[language]'."
    ) from None
  load = langid.LanguageIdentifier.from_model_file
  model = load(langid.MODEL_FILE, norm_probs=True)
  if language not in model.labels:
    raise ConfigError(
      f"corpus.keep_language: py3langid doesn't know the language {language!r};"
      f" expected one of {', '.join(sorted(model.labels))}."
    )
  return model.classify


def unique_lines(
  documents: Iterable[list[str]], seen: set[bytes], report: Counter
) -> Iterator[list[str]]:
  """Yields the documents without lines that occurred before.

  Blank lines stay, but for those that would be the first or the last. `seen`
  are the hashes of the lines so far, which it extends.
  """
  for lines in documents:
    kept = []
    for line in lines:
      key = hashlib.blake2b(line.strip().encode(), digest_size=8).digest()
      if key in seen:
        report["lines left out: seen before"] += 1
      else:
        kept.append(line)
      if line.strip():
        seen.add(key)
    if filled := [i for i, line in enumerate(kept) if line.strip()]:
      yield kept[filled[0] : filled[-1] + 1]
    else:
      report["documents left out: all lines seen before"] += 1
