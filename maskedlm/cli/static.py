"""`maskedlm static train|average`: writes a file of word vectors."""

import dataclasses
import itertools
import re
from collections import Counter

from maskedlm.cli import groups, shared
from maskedlm.cli.flags import ANY, REQUIRED, flag
from maskedlm.core.counts import counted
from maskedlm.runtime import console

MAX_LINE = 4_000  # Characters; longer lines are cut for `average`.


def min_count(default: int):
  """Returns the field of --min_count."""
  return flag(default, "Rarer words have no vector.", metavar="N", low=1)


@dataclasses.dataclass(frozen=True)
class Words:
  """A text, and the file of its words' vectors."""

  source: str = flag(
    REQUIRED,
    "The text, as for --config.corpus.source: text:FILES, docstrings:.",
  )
  text_field: str = shared.text_field("--source")
  cased: bool = flag(False, "Keep capitals: Bank and bank are two words.")
  out: str = shared.out("The word vectors.", ANY, REQUIRED)

  def documents(self, report: Counter):
    """Returns the documents of --source, each a list of stripped lines."""
    from maskedlm.data.sources import sentences

    field = None if self.text_field == "text" else self.text_field
    options = ("--source", "--text_field")
    documents = groups.read_documents(
      self.source, field, report, options=options
    )
    return map(sentences.stripped, documents)

  def write(
    self, vectors, counts: Counter, report: Counter, min_count: int
  ) -> None:
    """Writes the vectors; prints what was too rare, and what was repaired."""
    from maskedlm.data.word_vectors import files

    files.write_word_vectors(self.out, vectors)
    for name, count in report.items():
      if count and re.search(r"removed|replaced|dropped|cuts|warning", name):
        console.log(f"{name}: {count:,}")
    V, D = vectors.values.shape
    rare = [n for n in counts.values() if n < min_count]
    print(
      f"{counted(V, 'word')}, {counted(D, 'number')} each -> {self.out}; "
      f"{counted(len(rare), 'word')} with fewer than "
      f"{counted(min_count, 'instance')} left out, "
      f"{sum(rare) / counts.total():.1%} of {counts.total():,}"
    )


@dataclasses.dataclass(frozen=True)
class Train:
  """Trains word2vec's CBOW on raw text, with gensim. `maskedlm import
  --from=word2vec` turns the file into a workdir;
  docs/guides/use/static-vectors.md is the tutorial.
  """

  words: Words
  min_count: int = min_count(5)
  width: int = flag(100, "Numbers of a vector.", metavar="N", low=1)
  window: int = flag(
    5, "The most words on either side that predict a word.", metavar="N", low=1
  )
  epochs: int = flag(5, "How often the text is read.", metavar="N", low=1)
  seed: int = shared.seed(0, "Of the random numbers.")

  def run(self) -> None:
    from maskedlm.data.word_vectors import cbow

    report: Counter = Counter()
    vectors, counts = cbow.train_cbow(
      self.words.documents(report),
      lowercase=not self.words.cased,
      min_count=self.min_count,
      vector_size=self.width,
      window=self.window,
      epochs=self.epochs,
      seed=self.seed,
    )
    self.words.write(vectors, counts, report, self.min_count)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Average:
  """Averages a model's vectors of a word over its instances in a text."""

  encoder: groups.Encoder
  words: Words
  min_count: int = min_count(1)
  layers: groups.Layers

  def run(self) -> None:
    from maskedlm.data.labelled.text_lines import Text
    from maskedlm.data.sources.sentences import cut_text
    from maskedlm.inference.vectors import word_types

    report: Counter = Counter()
    seen: Counter = Counter()
    documents = self.words.documents(report)
    model = self.encoder.open()

    def texts():
      for line in itertools.chain.from_iterable(documents):
        for part in cut_text(line, MAX_LINE, what="lines", report=report):
          seen["texts"] += 1
          yield Text(part)

    vectors, counts = word_types.average_instances(
      model,
      texts(),
      self.layers.options(model),
      lowercase=not self.words.cased,
      min_count=self.min_count,
      progress=groups.make_progress(0, seen, what="instance"),
    )
    console.clear_progress()
    self.words.write(vectors, counts, report, self.min_count)
