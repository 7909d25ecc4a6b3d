"""A corpus of named parts, one for each language, say: en:..., de:..., yo:...

Read top-down: the option `corpus.parts` -> the parts' counts, which meta.json
keeps -> the corpora of single parts. A split has the documents of one part
after those of another, so the counts tell of each document which part it is
of, and a part's split is a view of the whole one.
"""

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.config import ConfigError, did_you_mean
from maskedlm.corpus import concat, shards, sources, store
from maskedlm.corpus.errors import CorpusError

# What is counted of a part's train and held-out documents. Characters and
# UTF-8 bytes are those of the sentences that the tokens stand for, as they
# were before the tokenizer normalized them; unknown are tokens.
COUNTS = (
  "documents",
  "sentences",
  "tokens",
  "characters",
  "bytes",
  "unknown",
)


class Part(NamedTuple):
  """Where a part's text comes from."""

  name: str
  language: str  # ISO 639-1, for sentence splitting.
  source: str  # As corpus.source.


def parse(options) -> list[Part]:
  """The parts of config.corpus; of corpus.source, one that has no name.

  corpus.parts has, between commas, NAME:SOURCE, where a source without a kind
  is text:, or a folder, whose files are NAME.txt (.gz, .zst). A name is a
  language's code, or begins with one: en, en-books, zh_hant. A path with a
  comma in it can only be that of a folder, alone.

  Raises CorpusError for what is neither, and for a name that comes twice.
  """
  if not options.parts:
    return [Part("", options.language, options.source)]
  is_folder = os.path.isdir(os.path.expanduser(options.parts))
  items = [options.parts] if is_folder else options.parts.split(",")
  parts = [
    part
    for item in filter(None, map(str.strip, items))
    for part in _of_item(item)
  ]
  names = [part.name for part in parts]
  if twice := [name for name, n in Counter(names).items() if n > 1]:
    raise CorpusError(
      f"corpus.parts={options.parts!r} has two parts with the name "
      f"{twice[0]!r}; call them {twice[0]}-a and {twice[0]}-b, say."
    )
  return parts


# What comes before the first _ or - is the language.
_NAME = re.compile(r"([a-z]{2,3})([_-][\w-]+)?")


def _of_item(item: str) -> Iterator[Part]:
  """The part NAME:SOURCE, or those of a folder."""
  name, colon, source = item.partition(":")
  if colon and (match := _NAME.fullmatch(name)):
    if source.partition(":")[0] not in sources.KINDS:
      source = f"text:{source}"
    yield Part(name, match[1], source)
    return
  folder = os.path.expanduser(item)
  if not os.path.isdir(folder):
    near = did_you_mean(name, sources.KINDS) if colon else ""
    raise CorpusError(
      f"corpus.parts: {item!r} is neither NAME:SOURCE, where NAME is or begins "
      "with a language's ISO 639-1 code (de:/data/de.txt, en-web:jsonl:w.jsonl)"
      f", nor a folder of files such as de.txt{near}."
    )
  found = [
    (match[1], file)
    for file in sorted(os.listdir(folder))
    if (match := re.fullmatch(r"([^.].*)\.txt(\.gz|\.zst)?", file))
  ]
  if not found:
    raise CorpusError(
      f"corpus.parts: the folder {item!r} has no file such as de.txt, de.txt.gz"
      " or de.txt.zst."
    )
  for name, file in found:
    if not (match := _NAME.fullmatch(name)):
      raise CorpusError(
        f"corpus.parts: {os.path.join(item, file)!r}: a file's name is its "
        "part's, and that is or begins with a language's ISO 639-1 code "
        "(de.txt, en-web.txt): rename it, or take it out of the folder."
      )
    yield Part(name, match[1], f"text:{os.path.join(folder, file)}")


def shares(asked: str, names: list[str]) -> np.ndarray | None:
  """The share [n] of an epoch's rows that data.shares gives each part.

  asked: NAME=WEIGHT for every name, between commas; weights of any sum. A part
  of weight 0 is measured, not trained on. None where nothing is asked for.

  Raises ConfigError for a part that isn't there, one that is left out, and a
  weight that is none.
  """
  if not asked:
    return None
  weights: dict[str, float] = {}
  for item in filter(None, map(str.strip, asked.split(","))):
    name, _, weight = item.partition("=")
    try:
      weights[name] = float(weight)
    except ValueError:
      weights[name] = math.nan
    if name not in names:
      known = f"; known: {', '.join(names)}" if names else ""
      raise ConfigError(
        f"data.shares={asked!r}: {name!r} is no part of the corpus"
        f"{did_you_mean(name, names)}{known or ', which has none'}."
      )
    if not 0 <= weights[name] < math.inf:
      raise ConfigError(
        f"data.shares={asked!r}: {item!r} is not NAME=WEIGHT with a weight of "
        "0 or more, en-web=0.7 say."
      )
  if left_out := [name for name in names if name not in weights]:
    raise ConfigError(
      f"data.shares={asked!r} leaves out {', '.join(left_out)}: give every "
      "part a weight; 0 = it is measured, not trained on."
    )
  found = np.array([weights[name] for name in names])
  if not found.sum():
    raise ConfigError(f"data.shares={asked!r}: one weight must be above 0.")
  return found / found.sum()


@contextlib.contextmanager
def naming(name: str):
  """A CorpusError within says which part it is about ("" = there is one)."""
  try:
    yield
  except CorpusError as error:
    if not name:
      raise
    message = str(error).removeprefix("corpus.source=")
    raise CorpusError(f"corpus.parts: {name!r}: {message}") from error


# In meta.json


def empty_counts(parts: list[Part]) -> list[dict]:
  """meta.json's `parts` before anything is counted; [] without names."""
  return [
    {
      "name": part.name,
      "language": part.language,
      **{split: dict.fromkeys(COUNTS, 0) for split in shards.SPLITS},
    }
    for part in parts
    if part.name
  ]


def describe(parts: list[dict]) -> Iterator[str]:
  """The parts as a table, a line each."""
  if not parts:
    return
  width = max(4, *(len(part["name"]) for part in parts))
  yield (
    f"  {'part':<{width}} {'documents':>10} {'sentences':>11} {'tokens':>13}"
    f" {'held out':>11} {'chars/token':>11} {'unknown':>8}"
  )
  for part in parts:
    train, heldout = (part[split] for split in shards.SPLITS)
    both = {name: train[name] + heldout[name] for name in COUNTS}
    yield (
      f"  {part['name']:<{width}} {train['documents']:>10,}"
      f" {train['sentences']:>11,} {train['tokens']:>13,}"
      f" {heldout['tokens']:>11,}"
      f" {both['characters'] / max(both['tokens'], 1):>11.2f}"
      f" {both['unknown'] / max(both['tokens'], 1):>8.2%}"
    )


# The corpora of single parts


def corpora(corpus: store.Corpus) -> dict[str, store.Corpus]:
  """Each part, by its name, as the corpus that has nothing else.

  With the whole one's path, tokenizer and token counts, so that what is kept
  in CORPUS/rows lies there too, by a fingerprint of its own.
  """
  bounds = {name: store.part_bounds(corpus, name) for name in shards.SPLITS}
  return {
    part["name"]: corpus._replace(
      fingerprint=f"{corpus.fingerprint} {part['name']}",
      parts=(),
      **{
        name: _cut(getattr(corpus, name), *(x[i : i + 2] for x in bounds[name]))
        for name in shards.SPLITS
      },
    )
    for i, part in enumerate(corpus.parts)
  }


def _cut(split: store.Split, documents, sentences, tokens) -> store.Split:
  """What is between these bounds (begin, end), as views."""
  (d0, d1), (s0, s1), (t0, t1) = documents, sentences, tokens
  return store.Split(
    tokens=concat.cut(split.tokens, t0, t1),
    sentences=concat.cut(split.sentences, s0, s1 + 1, origin=t0),
    documents=concat.cut(split.documents, d0, d1 + 1, origin=s0),
  )


def part_of(corpus: store.Corpus, split: str, document) -> np.ndarray:
  """The part of each document: its place in corpus.parts. int64."""
  ends = store.part_bounds(corpus, split)[0][1:]
  return np.searchsorted(ends, document, side="right")
