"""Trains WordPiece and BPE: takes text, returns the content of a file.

tokenizer.train_tokenizer wraps the result. The same text gives the same bytes
on any machine and in any run; each function's docstring explains how.
"""

import collections
import itertools
import logging
from collections.abc import Iterable

import tokenizers
from tokenizers import (
  decoders,
  models,
  normalizers,
  pre_tokenizers,
  processors,
  trainers,
)

from maskedlm.core.errors import CorpusError
from maskedlm.data.options import TokenizerOptions
from maskedlm.data.repair import repair

# The vocabulary has this many of the most common characters (1,000 in BERT), or
# more if they do not cover the text, as in Chinese. The others are unknown.
MIN_ALPHABET = 1_000
# Longer lines are cut, since sentencepiece would skip them.
MAX_LINE = 10_000  # Characters.
MIN_VOCAB_SIZE = 9  # For WordPiece: five special tokens, and room for a letter.
WORDPIECE_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BPE_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # As RoBERTa's.

_log = logging.getLogger(__name__)


def sample_sentences(
  sentences: Iterable[str], max_bytes: int | None
) -> list[str]:
  """Returns every k-th sentence, k the least power of two for which they fit.

  Reads the whole stream, holds at most max_bytes of UTF-8 (None: no limit), and
  depends on the sentences alone, unlike a random reservoir.

  Raises:
    CorpusError: there is no text.
  """
  kept, size, stride = [], 0, 1
  lines = (
    repair(sentence[start : start + MAX_LINE])
    for sentence in sentences
    for start in range(0, len(sentence), MAX_LINE)
  )
  for index, line in enumerate(lines):
    if index % stride:
      continue
    kept.append(line)
    size += utf8_length(line)
    while max_bytes is not None and size > max_bytes and len(kept) > 1:
      kept, stride = kept[::2], stride * 2
      size = sum(map(utf8_length, kept))
  if not any(line.strip() for line in kept):
    raise CorpusError(
      "tokenizer: there is no text to train on; check corpus.source."
    )
  return kept


def utf8_length(line: str) -> int:
  return len(line) if line.isascii() else len(line.encode())


def train_wordpiece(lines: list[str], options: TokenizerOptions) -> str:
  """Returns the tokenizer.json of a WordPiece vocabulary; BERT's specials 0..4.

  The library's trainer numbers the "##x" symbols in the random order of a hash
  map and breaks ties between pairs by these numbers, so two runs on one text
  differ. Here it gets them as sorted special tokens, which come first; the
  alphabet is chosen here too, by count and then code point.

  Raises:
    CorpusError: vocab_size is too small.
  """
  vocab_size = options.vocab_size
  if vocab_size < MIN_VOCAB_SIZE:
    raise CorpusError(
      f"tokenizer.vocab_size={vocab_size} is too small for wordpiece; expected "
      f"at least {MIN_VOCAB_SIZE}."
    )
  library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
  # BERT drops U+200B; where it separates words, as in Khmer, it is a space.
  marks = sum(line.count("\u200b") for line in lines)
  is_space = marks > 1e-3 * sum(map(len, lines))
  lowercase = options.lowercase is not False
  library.normalizer = _bert_normalizer(
    lowercase, options.normalization, zero_width_space=is_space
  )
  library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  # The Unicode forms, which join a letter and its marks, need whole lines; the
  # BERT normalizer maps each character alone.
  composed: Iterable[str] = lines
  for form in _unicode_forms(options.normalization):
    composed = map(form.normalize_str, composed)
  raw_counts = collections.Counter(itertools.chain.from_iterable(composed))
  counts: collections.Counter[str] = collections.Counter()
  for char, count in raw_counts.items():
    for normal in library.normalizer.normalize_str(char).strip():
      counts[normal] += count
  # A letter may take two entries, "x" and "##x": at most half the vocabulary.
  alphabet = choose_alphabet(
    counts, options.character_coverage, max_size=vocab_size // 4
  )
  split_words = library.pre_tokenizer.pre_tokenize_str
  continuing = [  # Neither punctuation nor Chinese, which are whole words.
    char
    for char in alphabet
    if len(split_words(library.normalizer.normalize_str("a" + char))) == 1
  ]
  specials = [*WORDPIECE_SPECIALS, *(f"##{char}" for char in continuing)]
  library.train_from_iterator(
    lines,
    trainers.WordPieceTrainer(
      vocab_size=vocab_size,
      min_frequency=2,
      special_tokens=specials,
      initial_alphabet=alphabet,
      limit_alphabet=len(alphabet),
      show_progress=False,
    ),
  )
  vocab = library.get_vocab(with_added_tokens=False)
  _warn_if_small(len(vocab), vocab_size)
  return bert_json(
    sorted(vocab, key=lambda token: vocab[token]),
    lowercase=lowercase,
    normalization=options.normalization,
    zero_width_space=is_space,
  )


def _bert_normalizer(
  lowercase: bool, form: str, *, zero_width_space: bool = False, **options
) -> normalizers.Normalizer:
  """Returns BERT's normalizer and a Unicode form, which lowercasing undoes."""
  bert = normalizers.BertNormalizer(lowercase=lowercase, **options)
  first = _unicode_forms(form)
  last = first if lowercase else []
  if zero_width_space:
    first = [normalizers.Replace("\u200b", " "), *first]
  steps = [*first, bert, *last]
  return normalizers.Sequence(steps) if len(steps) > 1 else bert


def _unicode_forms(form: str) -> list[normalizers.Normalizer]:
  forms = {"nfc": normalizers.NFC, "nfkc": normalizers.NFKC}
  return [forms[form]()] if form in forms else []


def choose_alphabet(
  counts: collections.Counter, coverage: float, *, max_size: int
) -> list[str]:
  """Returns the characters that enter the vocabulary, sorted by code point."""
  ranked = sorted(counts, key=lambda char: (-counts[char], char))
  covered = itertools.accumulate(counts[char] for char in ranked)
  needed = sum(total < coverage * counts.total() for total in covered) + 1
  return sorted(ranked[: min(max(needed, MIN_ALPHABET), max_size)])


def bert_json(
  tokens: list[str], *, lowercase: bool, normalization: str = "", **options
) -> str:
  """Returns the tokenizer.json of BERT's tokenizer, of tokens in order of ids.

  The options are those of train_tokenizer, _bert_normalizer and the library's
  BertNormalizer.
  """
  ids = {token: index for index, token in enumerate(tokens)}
  library = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
  library.normalizer = _bert_normalizer(lowercase, normalization, **options)
  library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  library.post_processor = processors.BertProcessing(
    ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
  )
  library.decoder = decoders.WordPiece()
  library.add_special_tokens(WORDPIECE_SPECIALS)
  return library.to_str()


def train_bpe(lines: list[str], options: TokenizerOptions) -> str:
  """Returns the tokenizer.json of a byte-level BPE; RoBERTa's specials 0..4.

  A space is put before the text (add_prefix_space), so that the first word has
  the same tokens as elsewhere, and every word begins with Ġ.

  Raises:
    CorpusError: vocab_size is too small.
  """
  vocab_size = options.vocab_size
  alphabet = pre_tokenizers.ByteLevel.alphabet()
  smallest = len(BPE_SPECIALS) + len(alphabet)
  if vocab_size < smallest:
    raise CorpusError(
      f"tokenizer.vocab_size={vocab_size} is too small for bpe; expected at "
      f"least {smallest}, the bytes and five special tokens."
    )
  library = tokenizers.Tokenizer(models.BPE())
  steps = _unicode_forms(options.normalization)
  if options.lowercase:
    bert = normalizers.BertNormalizer(
      clean_text=False, handle_chinese_chars=False, lowercase=True
    )
    steps = [*steps, bert, *steps]
  if steps:
    library.normalizer = normalizers.Sequence(steps) if steps[1:] else steps[0]
  # A line that has the whitespace before it follows other text.
  library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  library.decoder = decoders.ByteLevel()
  mask = tokenizers.AddedToken(BPE_SPECIALS[4], lstrip=True)
  library.train_from_iterator(
    (line if line[:1].isspace() else f" {line}" for line in lines),
    trainers.BpeTrainer(
      vocab_size=vocab_size,
      min_frequency=2,
      special_tokens=[*BPE_SPECIALS[:4], mask],
      initial_alphabet=alphabet,
      show_progress=False,
    ),
  )
  library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
  library.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
  _warn_if_small(library.get_vocab_size(), vocab_size)
  return library.to_str()


def _warn_if_small(size: int, vocab_size: int) -> None:
  if size < vocab_size:
    _log.warning(
      f"tokenizer.vocab_size={vocab_size} is more than this text yields; the "
      f"vocabulary has {size} tokens."
    )
