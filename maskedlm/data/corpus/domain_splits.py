"""A corpus of named parts, one for each language, say: en:..., de:..., yo:...

Read top-down: the option `corpus.parts` -> the parts' counts, which meta.json
keeps -> the corpora of single parts. A split has the documents of one part
after those of another, so the counts tell of each document which part it is
of, and a part's split is a view of the whole one.
"""

import numpy as np

from maskedlm.data.corpus import concat, shards, store
from maskedlm.data.sources.languages import Domain
from maskedlm.runtime import console

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


# In meta.json


def empty_counts(parts: list[Domain]) -> list[dict]:
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


def domain_table(parts: list[dict]) -> list[str]:
  """Returns a text table with a line for each domain; [] without domains."""
  columns = ("part", "documents", "sentences", "tokens", "held out")
  rows = []
  for part in parts:
    train, heldout = (part[split] for split in shards.SPLITS)
    both = {name: train[name] + heldout[name] for name in COUNTS}
    tokens = max(both["tokens"], 1)
    rows.append(
      (
        part["name"],
        *(f"{train[name]:,}" for name in ("documents", "sentences", "tokens")),
        f"{heldout['tokens']:,}",
        f"{both['characters'] / tokens:.2f}",
        f"{both['unknown'] / tokens:.2%}",
      )
    )
  table = console.table((*columns, "chars/token", "unknown"), rows)
  return [f"  {line}" for line in table] if rows else []


# The corpora of single parts


def split_by_domain(corpus: store.Corpus) -> dict[str, store.Corpus]:
  """Each part, by its name, as the corpus that has nothing else.

  With the whole one's path, tokenizer and token counts, so that what is kept
  in CORPUS/rows lies there too, by a fingerprint of its own.
  """
  bounds = {name: store.domain_bounds(corpus, name) for name in shards.SPLITS}
  return {
    part["name"]: corpus._replace(
      fingerprint=f"{corpus.fingerprint} {part['name']}",
      domains=(),
      **{
        name: _cut(getattr(corpus, name), *(x[i : i + 2] for x in bounds[name]))
        for name in shards.SPLITS
      },
    )
    for i, part in enumerate(corpus.domains)
  }


def _cut(split: store.Split, documents, sentences, tokens) -> store.Split:
  """What is between these bounds (begin, end), as views."""
  (d0, d1), (s0, s1), (t0, t1) = documents, sentences, tokens
  return store.Split(
    tokens=concat.view(split.tokens, t0, t1),
    sentences=concat.view(split.sentences, s0, s1 + 1, origin=t0),
    documents=concat.view(split.documents, d0, d1 + 1, origin=s0),
  )


def domain_of(corpus: store.Corpus, split: str, document) -> np.ndarray:
  """The part of each document: its place in corpus.parts. int64."""
  ends = store.domain_bounds(corpus, split)[0][1:]
  return np.searchsorted(ends, document, side="right")
