"""Trains a sentencepiece unigram model, the same bytes for the same text."""

import collections
import dataclasses
import functools
import io
import re
import sys
import unicodedata
from typing import Any

import sentencepiece

from maskedlm.core.errors import CorpusError
from maskedlm.data.options import TokenizerOptions
from maskedlm.data.tokenizers import sentencepiece_model
from maskedlm.data.tokenizers.training import (
  choose_alphabet,
  sample_sentences,
)
from maskedlm.data.tokenizers.word_starts import SPACE

# sentencepiece's trainer takes 12 bytes of memory per byte, 400 MB in all.
MAX_BYTES = 1 << 25


def train_unigram(lines: list[str], options: TokenizerOptions) -> bytes:
  """Returns a sentencepiece .model with ALBERT's specials 0..4.

  num_threads affects the result (the order of float sums), so it is fixed.

  Raises:
    CorpusError: vocab_size doesn't suit the text, or the normalization is not
      supported with lowercase.
  """
  sentencepiece.set_min_log_level(2)  # Errors only; they are raised anyway.
  normalizer = _unigram_normalizer(options.lowercase, options.normalization)
  # At most half of the entries that are not for bytes.
  max_alphabet = (options.vocab_size - 256 * options.byte_fallback) // 2
  lines = sample_sentences(lines, MAX_BYTES)
  counts: collections.Counter[str] = collections.Counter()
  for line in lines:
    counts.update(normalizer.Normalize(line))
  # sentencepiece's marks for spaces and unknown characters.
  del counts[SPACE], counts["▅"]
  alphabet = choose_alphabet(
    counts, options.character_coverage, max_size=max_alphabet
  )
  model = _train_unigram(lines, alphabet, options, normalizer)
  library = sentencepiece.SentencePieceProcessor(model_proto=model)
  if library.piece_to_id(SPACE) != library.unk_id():
    return model
  # In text with few spaces, sentencepiece leaves it out even if required.
  size = options.vocab_size - 1
  options = dataclasses.replace(options, vocab_size=size)
  model = _train_unigram(lines, alphabet, options, normalizer)
  library = sentencepiece.SentencePieceProcessor(model_proto=model)
  least = min(map(library.get_score, range(library.get_piece_size())))
  return model + sentencepiece_model.encode_piece(SPACE, score=least - 1.0)


def _train_unigram(
  lines: list[str],
  alphabet: list[str],
  options: TokenizerOptions,
  normalizer: sentencepiece.SentencePieceNormalizer,
) -> bytes:
  model = io.BytesIO()
  # Omitted if False, since writing it to the file would change the hash.
  fallback: dict[str, Any]
  fallback = {"byte_fallback": True} if options.byte_fallback else {}
  try:
    sentencepiece.SentencePieceTrainer.Train(
      sentence_iterator=iter(lines),
      model_writer=model,
      model_type="unigram",
      vocab_size=options.vocab_size,
      required_chars="".join(alphabet),
      character_coverage=0.98,  # The minimum: required_chars is the alphabet.
      **fallback,
      max_sentence_length=1 << 20,
      num_threads=16,
      minloglevel=2,
      normalizer=normalizer,
      pad_id=0,
      unk_id=1,
      bos_id=2,
      eos_id=3,
      pad_piece="<pad>",
      unk_piece="<unk>",
      bos_piece="[CLS]",
      eos_piece="[SEP]",
      control_symbols=["[MASK]"],
    )
  except RuntimeError as error:
    problem = _unigram_problem(options.vocab_size, str(error))
    raise CorpusError(problem) from error
  return model.getvalue()


def _unigram_problem(vocab_size: int, message: str) -> str:
  option = f"tokenizer.vocab_size={vocab_size}"
  if largest := re.search(r"too high .* value <= (\d+)", message):
    return (
      f"{option} is too large for unigram; this text yields at most "
      f"{largest[1]}; lower it, or train on more text."
    )
  if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
    return (
      f"{option} is too small for unigram; expected at least {smallest[1]}, "
      "the characters of this text and five special tokens."
    )
  return f"{option}: sentencepiece can't train on this text: {message}"


@functools.cache  # It takes 1.5 s.
def _unigram_normalizer(
  lowercase: bool, form: str
) -> sentencepiece.SentencePieceNormalizer:
  if lowercase and form == "none":
    raise CorpusError(
      f"tokenizer.normalization={form!r}: a lowercasing unigram normalizes to "
      "nfkc or nfc; set tokenizer.lowercase=False, or another tokenizer.kind."
    )
  if lowercase:
    return _accentless(form)
  if form == "nfc":
    return _nfc()
  rules = "identity" if form == "none" else "nmt_nfkc"
  return sentencepiece.SentencePieceNormalizer(rule_name=rules)


def _nfc() -> sentencepiece.SentencePieceNormalizer:
  """Returns NFC rules for the sequences that sentencepiece's NFKC maps.

  Like its NFKC, they don't move a mark before one that composes with the letter
  (a vowel sign before a hamza); nothing is lost.
  """
  nfkc = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
  sources = [source for source, _ in nfkc.Decompile()]
  rules = [(text, unicodedata.normalize("NFC", text)) for text in sources]
  spaces = [(char, " ") for char in sources if char.isspace()]
  return sentencepiece.SentencePieceNormalizer(
    norm_map=sorted({x: y for x, y in [*rules, *spaces] if x != y}.items())
  )


def _accentless(form: str) -> sentencepiece.SentencePieceNormalizer:
  """Returns NFKC (or NFC) and case folding, without accents, as BERT's."""
  folding = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc_cf")
  rules = {
    char: _plain(char)
    for char in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(char) not in ("Cn", "Co", "Cs")
  }
  for source, target in folding.Decompile():
    keeps = form == "nfc" and not source.isspace()
    rules[source] = _plain(source if keeps else target)
  return sentencepiece.SentencePieceNormalizer(
    norm_map=[rule for rule in rules.items() if rule[0] != rule[1]]
  )


def _plain(text: str) -> str:
  parts = unicodedata.normalize("NFD", text)
  kept = "".join(x for x in parts if unicodedata.category(x) != "Mn")
  return unicodedata.normalize("NFC", kept).lower()
