"""What a vocabulary is trained on, and that it fits every language.

Of one source, the sentences of the train split as they come. Of several parts
(parts.py), a sample: language i, with n_i sentences, has the share

  q_i = p_i^alpha / sum_j p_j^alpha,   p_i = n_i / sum_k n_k

of its sentences, to the sentence. Without it (alpha = 1) the vocabulary is
made of rare words of the large languages, and spells the small ones by letter
(Lample & Conneau, arXiv:1901.07291; alpha = 0.3 by Conneau et al., 1911.02116).
Read top-down.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.data import hashing, sampling
from maskedlm.data.prepare import documents as documents_lib
from maskedlm.data.sources.sentences import split_sentences
from maskedlm.data.tokenizers import tokenizer as tokenizer_lib
from maskedlm.data.tokenizers import training

# Of config.tokenizer: how a vocabulary is trained.
OPTIONS = ("kind", "vocab_size", "lowercase", "sample_bytes")
# Those that came later, with what was before they came.
LATER_OPTIONS = {
  "normalization": "",
  "character_coverage": training.COVERAGE,
  "byte_fallback": False,
}
MAX_UNKNOWN = 0.01  # Of a language's characters; more is worth a warning.


class Sample(NamedTuple):
  """Sentences of a part, from which a vocabulary's are drawn."""

  name: str
  num_sentences: int  # That the part has for training.
  num_bytes: int  # Of the lines.
  lines: list[str]  # Every k-th of them, k a power of two.


def train(
  config: ConfigDict,
  documents: Iterable[documents_lib.Document],
  *,
  log: Callable,
) -> tokenizer_lib.Tokenizer:
  """Trains config.tokenizer on what is not held out of the documents.

  Of several parts the sample follows tokenizer.alpha and the seed; a language
  that has over 1% characters which the vocabulary has not is logged.
  """
  found = sentences(config, documents)
  if not config.corpus.parts:
    return train_on((sentence for _, sentence in found), config)
  samples = collect(
    found, max_bytes=budget(config), alphas=[config.tokenizer.alpha]
  )
  return train_on_samples(samples, config, log=log)


def train_on_samples(
  samples: Sequence[Sample], config: ConfigDict, *, log: Callable
) -> tokenizer_lib.Tokenizer:
  """The same, of a sample of each part."""
  alpha = config.tokenizer.alpha
  made = train_on(draw(samples, config, alpha=alpha), config)
  for warning in warnings(samples, made, config):
    log(warning)
  return made


def train_on(
  lines: Iterable[str], config: ConfigDict
) -> tokenizer_lib.Tokenizer:
  """The tokenizer that config.tokenizer describes, of these sentences."""
  names = (*OPTIONS, *LATER_OPTIONS)
  return tokenizer_lib.train(lines, **{n: config.tokenizer[n] for n in names})


def sentences(
  config: ConfigDict,
  documents: Iterable[documents_lib.Document],
  *,
  heldout: Callable[[str, str], None] = lambda part, sentence: None,
) -> Iterator[tuple[str, str]]:
  """(part, sentence) of the train split; heldout is called with the others."""
  options = config.corpus
  for split, document in documents_lib.split(documents, options.heldout_share):
    part = document.part
    for sentence in split_sentences(
      document.lines,
      mode=options.sentences,
      language=part.language,
      report=Counter(),  # The workers split again, and count.
    ):
      if split == "train":
        yield part.name, sentence
      else:
        heldout(part.name, sentence)


def budget(config: ConfigDict) -> int:
  """Bytes of text that the tokenizer is trained on, at most."""
  limit = config.tokenizer.sample_bytes
  if config.tokenizer.kind == "unigram":
    limit = min(limit, training.MAX_UNIGRAM_BYTES)
  return limit


def collect(
  sentences: Iterable[tuple[str, str]],
  *,
  max_bytes: int,
  alphas: Sequence[float],
) -> list[Sample]:
  """A Sample of each part of a stream of (part, sentence), part by part.

  They hold 3 * max_bytes at most, whatever the number of parts: the share of a
  part only falls as others come, so what it can't need any more is dropped.
  """
  samples = []
  for name, group in itertools.groupby(sentences, lambda pair: pair[0]):
    count = itertools.count()
    lines = training.sample(
      (sentence for _, sentence in group if next(count) >= 0), max_bytes
    )
    sample = Sample(name, next(count), size(lines), lines)
    samples = joined(samples, sample, max_bytes=max_bytes, alphas=alphas)
  return samples


def joined(
  samples: Sequence[Sample],
  sample: Sample,
  *,
  max_bytes: int,
  alphas: Sequence[float],
) -> list[Sample]:
  """The samples and one more, less what none of them can need any more."""
  samples = [*samples, sample]
  needed = np.max([_bytes_needed(samples, a) for a in alphas], axis=0)
  return [
    _halved(sample, max_bytes * share)
    for sample, share in zip(samples, needed, strict=True)
  ]


def draw(
  samples: Sequence[Sample], config: ConfigDict, *, alpha: float
) -> list[str]:
  """The sentences that a vocabulary is trained on, within its budget.

  As many as there are, or as the budget has room for. A part's sentences come
  in a random order, once each before one comes again.
  """
  counts = [sample.num_sentences for sample in samples]
  q = sampling.sampling_shares(counts, alpha)
  max_bytes, total = budget(config), sum(counts)
  total = min(total, int(max_bytes / (q @ _mean_bytes(samples))))
  while True:
    lines = [
      line
      for sample, count in zip(
        samples, sampling.apportion(max(total, 1), q), strict=True
      )
      for line in _drawn(sample, int(count), config.seed)
    ]
    num_bytes = size(lines)
    if num_bytes <= max_bytes or total <= 1:
      return lines
    total = int(0.99 * total * max_bytes / num_bytes)


def unknown_characters(
  counts: Counter, tokenizer: tokenizer_lib.Tokenizer
) -> Counter:
  """Those of these characters, of normalized text, that [UNK] stands for."""
  unk = tokenizer.special.unk
  return Counter(
    {
      char: count
      for char, count in counts.items()
      if unk in tokenizer.encode(char).ids
    }
  )


def warnings(
  samples: Sequence[Sample],
  tokenizer: tokenizer_lib.Tokenizer,
  config: ConfigDict,
) -> Iterator[str]:
  """What of the languages is lost to a vocabulary, a line each."""
  if config.tokenizer.lowercase:
    yield (
      "warning: tokenizer.lowercase=True strips accents, among them the tones "
      "of Vietnamese and vowel signs of Hindi: for several languages set "
      "--config.tokenizer.lowercase=False."
    )
  for sample in samples:
    counts = _characters(sample, tokenizer)
    unknown = unknown_characters(counts, tokenizer)
    share = unknown.total() / max(counts.total(), 1)
    if share > MAX_UNKNOWN:
      examples = " ".join(char for char, _ in unknown.most_common(5))
      yield (
        f"warning: {sample.name}: {share:.1%} of the characters are unknown to "
        f"the vocabulary ({examples} ...): raise tokenizer.character_coverage="
        f"{config.tokenizer.character_coverage} or tokenizer.vocab_size="
        f"{config.tokenizer.vocab_size}, or set tokenizer.byte_fallback=True "
        "(unigram)."
      )


def _characters(sample: Sample, tokenizer: tokenizer_lib.Tokenizer) -> Counter:
  lines = map(tokenizer.normalize, sample.lines)
  counts = Counter(itertools.chain.from_iterable(lines))
  for char in [char for char in counts if char.isspace()]:
    del counts[char]
  return counts


def _drawn(sample: Sample, count: int, seed: int) -> Iterator[str]:
  index = np.arange(count)
  lap, place = np.divmod(index, len(sample.lines))
  key = hashing.bits(seed, "vocabulary", sample.name, lap)
  for i in hashing.permute(place, len(sample.lines), key):
    yield sample.lines[i]


def _mean_bytes(samples: Sequence[Sample]) -> np.ndarray:
  return np.array([s.num_bytes / len(s.lines) for s in samples])


def _bytes_needed(samples: Sequence[Sample], alpha: float) -> np.ndarray:
  """Share of the budget that each part's sentences take."""
  counts = [sample.num_sentences for sample in samples]
  taken = sampling.sampling_shares(counts, alpha) * _mean_bytes(samples)
  return taken / taken.sum()


def _halved(sample: Sample, needed: float) -> Sample:
  """Every second line, as long as that is enough."""
  while sample.num_bytes > 2 * needed and len(sample.lines) > 1:
    lines = sample.lines[::2]
    if size(lines) < needed:
      break
    sample = sample._replace(num_bytes=size(lines), lines=lines)
  return sample


def size(lines: Iterable[str]) -> int:
  """Bytes of UTF-8."""
  return sum(map(training.num_bytes, lines))
