"""Samples text to train a vocabulary, and reports what it loses of a language.

For a single source, the text is the sentences of the train split in their
order. For several domains (corpus.parts), it is a sample: domain i, with n_i
sentences, has the share

  q_i = p_i^alpha / sum_j p_j^alpha,   p_i = n_i / sum_k n_k

of the sample's sentences, exactly. With alpha = 1 the vocabulary would consist
of rare words of the large languages, and spell the small ones letter by letter
(Lample & Conneau, arXiv:1901.07291; alpha = 0.3 in Conneau et al., 1911.02116).
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.counts import first_names
from maskedlm.data import hashing, sampling
from maskedlm.data.options import TextConfig, TokenizerOptions
from maskedlm.data.prepare.documents import Document, split_documents
from maskedlm.data.sources.sentences import find_sentences
from maskedlm.data.tokenizers import lost_text, training, unigram
from maskedlm.data.tokenizers.document_text import read_lines
from maskedlm.data.tokenizers.tokenizer import (
  Tokenizer,
  load_tokenizer,
  train_tokenizer,
)

PART = 1_000  # Letters of a sequence.


class Sample(NamedTuple):
  """Sentences of a domain, from which a vocabulary's sample is drawn."""

  name: str
  num_sentences: int  # Sentences in the domain's train split.
  num_bytes: int  # Bytes of `lines`.
  lines: list[str]  # Every k-th sentence, k a power of two.


def load_or_train(
  config: TextConfig, train: Callable[[], Tokenizer], *, log: Callable
) -> Tokenizer:
  """Loads tokenizer.path if it is set; otherwise returns train()."""
  options = config.tokenizer
  if options.path:
    tokenizer = load_given(options)
    origin = f"loaded from {options.path}"
  else:
    tokenizer = train()
    origin = f"trained on {config.corpus.parts or config.corpus.source}"
  log(f"tokenizer: {tokenizer.kind}, {tokenizer.vocab_size:,} tokens, {origin}")
  for note in tokenizer.notes:
    log(f"  {note}")
  if names := lost_text.extra_specials(tokenizer):
    log(
      f"  {first_names(names)}: special tokens of its own, which are ordinary "
      "text in a text"
    )
  return tokenizer


def load_given(options: TokenizerOptions) -> Tokenizer:
  """Loads tokenizer.path of config.tokenizer; see tokenizer.load_tokenizer."""
  return load_tokenizer(options.path, lowercase=options.lowercase)


def train_on_documents(
  config: TextConfig, documents: Iterable[Document], *, log: Callable
) -> Tokenizer:
  """Trains config.tokenizer on the documents that are not held out.

  With corpus.parts, the sample follows tokenizer.alpha and the seed.
  """
  samples = collect_samples(
    training_sentences(config, documents),
    max_bytes=max_sample_bytes(config),
    alphas=[config.tokenizer.alpha],
  )
  return train_on_samples(samples, config, log=log)


def train_on_samples(
  samples: Sequence[Sample], config: TextConfig, *, log: Callable
) -> Tokenizer:
  """Trains config.tokenizer on samples; logs what it loses of each domain."""
  if not config.corpus.parts:
    return train_on_sentences(samples[0].lines, config)
  lines = draw_sentences(samples, config, alpha=config.tokenizer.alpha)
  tokenizer = train_on_sentences(lines, config)
  for sample in samples:
    counts = lost_text.count_texts(tokenizer, sample.lines)
    characters = sum(map(len, sample.lines))
    for warning in lost_text.describe(counts, characters, f"{sample.name}: "):
      log(warning)
  return tokenizer


def train_on_sentences(lines: Iterable[str], config: TextConfig) -> Tokenizer:
  """Trains the tokenizer that config.tokenizer describes on sentences."""
  names = [field.name for field in dataclasses.fields(TokenizerOptions)]
  values = {name: getattr(config.tokenizer, name) for name in names}
  return train_tokenizer(lines, **values)


def training_sentences(
  config: TextConfig,
  documents: Iterable[Document],
  *,
  heldout: Callable[[Document], None] = lambda document: None,
) -> Iterator[tuple[str, str]]:
  """Yields (domain, sentence) of the train split; `heldout` gets the others."""
  for split, document in split_documents(
    documents, config.corpus.heldout_share
  ):
    if split != "train":
      heldout(document)
      continue
    for sentence in document_sentences(config, document):
      yield document.domain.name, sentence


def document_sentences(config: TextConfig, document: Document) -> list[str]:
  """Returns the sentences of a document, split according to the config.

  BPE learns tokens for the whitespace before them, too. A sequence is
  divided into PARTs, as its trainer is slow in long words.
  """
  if document.domain.has_sequences:
    [line] = document.lines
    return [line[at : at + PART] for at in range(0, len(line), PART)]
  spells_lines = config.tokenizer.kind == "bpe"
  lines = read_lines(document.lines, spells_lines=spells_lines)
  spans = find_sentences(
    lines,
    mode=config.corpus.sentences,
    language=document.domain.language,
    report=Counter(),  # Counted by the encoder, which splits again.
  )
  text, ends = "\n".join(lines), [0, *(end for _, end in spans)]
  return [
    text[previous_end if spells_lines else begin : end]
    for previous_end, (begin, end) in zip(ends, spans, strict=False)
  ]


def max_sample_bytes(config: TextConfig) -> int:
  """Returns the limit, in bytes, of the text that a tokenizer is trained on."""
  limit = config.tokenizer.sample_bytes
  if config.tokenizer.kind == "unigram":
    limit = min(limit, unigram.MAX_BYTES)
  return limit


def collect_samples(
  sentences: Iterable[tuple[str, str]],
  *,
  max_bytes: int,
  alphas: Sequence[float],
) -> list[Sample]:
  """Returns a Sample of each domain of a stream of (domain, sentence).

  The stream has one domain after the other. See `limit_samples`.
  """

  def samples():
    for name, group in itertools.groupby(sentences, lambda pair: pair[0]):
      count = itertools.count()
      lines = training.sample_sentences(
        (sentence for _, sentence in group if next(count) >= 0), max_bytes
      )
      yield Sample(name, next(count), total_bytes(lines), lines)

  return limit_samples(samples(), max_bytes=max_bytes, alphas=alphas)


def limit_samples(
  samples: Iterable[Sample], *, max_bytes: int, alphas: Sequence[float]
) -> list[Sample]:
  """Returns the samples, reduced to hold at most 3 * max_bytes at any time.

  A domain's share only falls as others join, so sentences that can no longer be
  needed are dropped, regardless of the number of domains.
  """
  kept = []
  for sample in samples:
    kept.append(sample)
    counts = [sample.num_sentences for sample in kept]
    domain_bytes = [
      sampling.sampling_shares(counts, alpha) * _mean_bytes(kept)
      for alpha in alphas
    ]
    needed = np.max([sizes / sizes.sum() for sizes in domain_bytes], axis=0)
    kept = [
      _halve(sample, max_bytes * share)
      for sample, share in zip(kept, needed, strict=True)
    ]
  return kept


def draw_sentences(
  samples: Sequence[Sample], config: TextConfig, *, alpha: float
) -> list[str]:
  """Draws the sentences that a vocabulary is trained on.

  There are as many as the domains have, or as fit in `max_sample_bytes`. Those
  of a domain come in random order; none is repeated before all were drawn.
  """
  counts = [sample.num_sentences for sample in samples]
  q = sampling.sampling_shares(counts, alpha)
  max_bytes, total = max_sample_bytes(config), sum(counts)
  total = min(total, int(max_bytes / (q @ _mean_bytes(samples))))
  while True:
    drawn = sampling.apportion(max(total, 1), q).tolist()
    lines = [
      line
      for sample, count in zip(samples, drawn, strict=True)
      for line in _draw(sample, count, config.seed)
    ]
    num_bytes = total_bytes(lines)
    if num_bytes <= max_bytes or total <= 1:
      return lines
    total = int(0.99 * total * max_bytes / num_bytes)


def _draw(sample: Sample, count: int, seed: int) -> Iterator[str]:
  lap, place = np.divmod(np.arange(count), len(sample.lines))
  key = hashing.bits(seed, "vocabulary", sample.name, lap)
  for i in hashing.permute(place, len(sample.lines), key):
    yield sample.lines[i]


def _mean_bytes(samples: Sequence[Sample]) -> np.ndarray:
  return np.array([s.num_bytes / len(s.lines) for s in samples])


def _halve(sample: Sample, needed: float) -> Sample:
  """Drops every second line as long as at least `needed` bytes remain."""
  while sample.num_bytes > 2 * needed and len(sample.lines) > 1:
    lines = sample.lines[::2]
    if total_bytes(lines) < needed:
      break
    sample = sample._replace(num_bytes=total_bytes(lines), lines=lines)
  return sample


def total_bytes(lines: Iterable[str]) -> int:
  """Returns the length of the lines in bytes of UTF-8."""
  return sum(map(training.utf8_length, lines))
