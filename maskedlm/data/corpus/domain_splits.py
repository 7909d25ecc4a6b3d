"""Counts and separates the domains of a corpus (corpus.parts).

A split has the documents of one domain after those of another, so the counts of
each domain in meta.json determine the domain of each document, and a domain's
split is a view of the whole one.
"""

from collections.abc import Mapping, Sequence

from maskedlm.data.corpus import concat, shards, store
from maskedlm.data.sources.domains import parse_domains
from maskedlm.runtime import console

# Counted for each domain's train and held-out documents. Characters and UTF-8
# bytes are those of the sentences before normalization; `unknown` counts
# tokens.
COUNTS = ("documents", "sentences", "tokens", "characters", "bytes", "unknown")


def empty_counts(options) -> list[dict]:
  """Returns meta.json's `parts` before counting; [] without corpus.parts."""
  return [
    {
      "name": domain.name,
      "language": domain.language,
      **{split: dict.fromkeys(COUNTS, 0) for split in shards.SPLITS},
    }
    for domain in parse_domains(options)
    if domain.name
  ]


def domain_table(domains: Sequence[Mapping]) -> list[str]:
  """Returns a text table with a line for each domain; [] without domains."""
  columns = ("part", "documents", "sentences", "tokens", "held out")
  rows = []
  for domain in domains:
    train, heldout = (domain[split] for split in shards.SPLITS)
    both = {name: train[name] + heldout[name] for name in COUNTS}
    tokens = max(both["tokens"], 1)
    counts = *(train[name] for name in COUNTS[:3]), heldout["tokens"]
    characters = f"{both['characters'] / tokens:.2f}"
    unknown = f"{both['unknown'] / tokens:.2%}"
    numbers = (f"{count:,}" for count in counts)
    rows.append((domain["name"], *numbers, characters, unknown))
  table = console.table((*columns, "chars/token", "unknown"), rows)
  return [f"  {line}" for line in table] if rows else []


def split_by_domain(corpus: store.Corpus) -> dict[str, store.Corpus]:
  """Returns name -> the corpus of that domain alone.

  Each has the path, tokenizer and token counts of the whole corpus, so its row
  tables are kept in CORPUS/rows too, under its own fingerprint.
  """
  bounds = {name: store.domain_bounds(corpus, name) for name in shards.SPLITS}
  return {
    domain["name"]: corpus._replace(
      fingerprint=f"{corpus.fingerprint} {domain['name']}",
      domains=(),
      train=_cut(corpus.train, *(x[i : i + 2] for x in bounds["train"])),
      heldout=_cut(corpus.heldout, *(x[i : i + 2] for x in bounds["heldout"])),
    )
    for i, domain in enumerate(corpus.domains)
  }


def _cut(split: store.Split, documents, sentences, tokens) -> store.Split:
  """Returns the views of a split between these bounds, each (begin, end)."""
  (d0, d1), (s0, s1), (t0, t1) = documents, sentences, tokens
  return store.Split(
    tokens=concat.view(split.tokens, t0, t1),
    sentences=concat.view(split.sentences, s0, s1 + 1, origin=t0),
    documents=concat.view(split.documents, d0, d1 + 1, origin=s0),
  )
