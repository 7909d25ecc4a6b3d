"""The options of masking, shared by all masked objectives."""

import dataclasses

from maskedlm.core.options import frozen_option


def _draws(config) -> bool:
  """Returns whether random tokens are drawn; only masks need a share for it."""
  how = getattr(config.objective, "corruption", "mask")
  return how != "mask" or config.objective.random_share > 0


@dataclasses.dataclass(frozen=True)
class MaskOptions:
  """How many tokens are predicted, and what replaces them."""

  mask_rate: float = frozen_option(
    0.15,
    "Share of a row's tokens that is predicted. Special tokens are never "
    "chosen, but count as tokens of the row, except in spanbert.",
    above=0,
    high=1,
  )
  max_predictions: int = frozen_option(
    0,
    "Predictions in a row, P, at most; 0 for mask_rate * data.length (in "
    "spanbert less 2), rounded up.",
    low=0,
  )
  mask_share: float = frozen_option(
    0.8,
    "Share of the chosen tokens that [MASK] replaces.",
    low=0,
    high=1,
    needs={"objective.corruption": ("mask",)},
  )
  random_share: float = frozen_option(
    0.1,
    "Share of the chosen tokens that a random token replaces; the rest stays "
    "unchanged. The two shares add up to at most 1.",
    low=0,
    high=1,
    needs={"objective.corruption": ("mask",)},
  )
  random_tokens: str = frozen_option(
    "unigram",
    "How random tokens are drawn: by their frequency in the corpus (unigram), "
    "or uniformly.",
    choices=("unigram", "uniform"),
    needs={
      "objective.corruption": ("mask", "substitute", "insert"),
      "objective.random_share": _draws,
    },
  )


@dataclasses.dataclass(frozen=True)
class CorruptionOptions(MaskOptions):
  """MaskOptions, and which tokens are chosen and how they are corrupted."""

  heldout_mask_rate: float = frozen_option(
    0.0,
    "mask_rate of held-out rows, so that runs with different rates can be "
    "compared; 0 for the rate of training.",
    low=0,
    high=1,
    needs={"train.eval_rows": True},
  )
  choose: str = frozen_option(
    "tokens",
    "Unit of choice: tokens, words (whole words), ngrams, or spans (as in "
    "SpanBERT).",
    choices=("tokens", "words", "ngrams", "spans"),
  )
  max_span_words: int = frozen_option(
    10,
    "Longest n-gram or span, in words.",
    low=1,
    needs={"objective.choose": ("ngrams", "spans")},
  )
  corruption: str = frozen_option(
    "mask",
    "Treatment of the chosen tokens (docs/guides/pretrain/masking.md); "
    "mask_share and random_share are of mask.",
    choices=("mask", "substitute", "shuffle", "delete", "insert"),
  )


def single_tokens(options: MaskOptions) -> CorruptionOptions:
  """Returns the same options for masking tokens one by one."""
  names = [field.name for field in dataclasses.fields(MaskOptions)]
  return CorruptionOptions(**{name: getattr(options, name) for name in names})
