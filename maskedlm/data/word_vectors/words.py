"""Splits text into the words that have vectors, as their tokenizer does.

Text is split at spaces and punctuation, as BERT's is; accents are kept, and so
are runs of Chinese characters, of which a word may have several.
"""

import functools
from collections.abc import Iterator

from tokenizers import normalizers, pre_tokenizers

# Options of the BertNormalizer, beside `lowercase`.
NORMALIZER = {"strip_accents": False, "handle_chinese_chars": False}


def split_text(text: str, *, lowercase: bool) -> Iterator[tuple[str, int, int]]:
  """Yields (word as in the vocabulary, begin, end): it is text[begin:end]."""
  normalize = _normalizer(lowercase).normalize_str
  for word, (begin, end) in _split(text):
    if form := normalize(word).strip():  # It may be a control character.
      yield form, begin, end


_split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str


@functools.cache
def _normalizer(lowercase: bool) -> normalizers.Normalizer:
  return normalizers.BertNormalizer(lowercase=lowercase, **NORMALIZER)
