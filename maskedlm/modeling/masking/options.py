"""The options of masking, which every masked objective has."""

import dataclasses

from maskedlm.core.options import option


@dataclasses.dataclass(frozen=True)
class MaskOptions:
  """How many tokens are predicted, and what replaces them."""

  mask_rate: float = option(
    0.15,
    "Share of a row's tokens that is predicted. Special tokens count but are "
    "never chosen.",
    above=0,
    high=1,
    frozen=True,
  )
  max_predictions: int = option(
    0,
    "Predictions in a row, P, at most; 0 for mask_rate * length, rounded up.",
    low=0,
    frozen=True,
  )
  mask_share: float = option(
    0.8, "Share of the chosen tokens that [MASK] replaces.", frozen=True
  )
  random_share: float = option(
    0.1,
    "Share that a random token replaces; the rest is kept as it is.",
    frozen=True,
  )
  random_tokens: str = option(
    "unigram",
    "How random tokens are drawn: by their frequency in the corpus, or "
    "uniformly.",
    choices=("unigram", "uniform"),
    frozen=True,
  )


@dataclasses.dataclass(frozen=True)
class CorruptionOptions(MaskOptions):
  """Also which tokens are chosen, and what is done to them."""

  heldout_mask_rate: float = option(
    0.0,
    "mask_rate of held-out rows, so that runs with different rates compare; 0 "
    "for that of training.",
    low=0,
    high=1,
    frozen=True,
  )
  choose: str = option(
    "tokens",
    "What is chosen: tokens, words (whole words), ngrams, or spans (as in "
    "SpanBERT).",
    choices=("tokens", "words", "ngrams", "spans"),
    frozen=True,
  )
  max_span_words: int = option(
    10, "Longest n-gram or span, in words.", frozen=True
  )
  corruption: str = option(
    "mask",
    "What is done to the chosen tokens (docs/guides/pretrain/masking.md). The "
    "two shares belong to mask.",
    choices=("mask", "substitute", "shuffle", "delete", "insert"),
    frozen=True,
  )


def single_tokens(options: MaskOptions) -> CorruptionOptions:
  """Returns the same options for masking tokens one by one."""
  names = [field.name for field in dataclasses.fields(MaskOptions)]
  return CorruptionOptions(**{name: getattr(options, name) for name in names})
