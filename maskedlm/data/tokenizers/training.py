"""Trains tokenizers: takes text, returns the content of a tokenizer file.

tokenizer.train_tokenizer wraps the result. The same text gives the same bytes
on any machine and in any run; each function's docstring explains how.
"""

import collections
import io
import itertools
import logging
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import sentencepiece
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

# The vocabulary has this many of the most common characters (1,000 in BERT), or
# more if they do not cover the text, as in Chinese. The others are unknown.
MIN_ALPHABET = 1_000
COVERAGE = 0.9999
# Longer lines are cut, since sentencepiece would skip them.
MAX_LINE = 10_000  # Characters.
# sentencepiece's trainer takes 12 bytes of memory per byte, 400 MB in all.
MAX_UNIGRAM_BYTES = 1 << 25
MIN_VOCAB_SIZE = 9  # For WordPiece: five special tokens, and room for a letter.
WORDPIECE_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BPE_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # As RoBERTa's.


class VocabularyOptions(NamedTuple):
  """Options of a vocabulary, as described in tokenizer.train_tokenizer."""

  vocab_size: int
  lowercase: bool
  normalization: str
  character_coverage: float
  byte_fallback: bool


_SURROGATE = re.compile("[\ud800-\udfff]")
_log = logging.getLogger(__name__)


def replace_surrogates(text: str) -> str:
  """Replaces lone surrogates, which the libraries don't accept, by U+FFFD."""
  return _SURROGATE.sub("\ufffd", text)


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
    replace_surrogates(sentence[start : start + MAX_LINE])
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


def train_wordpiece(lines: list[str], options: VocabularyOptions) -> str:
  """Returns the tokenizer.json of a WordPiece vocabulary; BERT's specials 0..4.

  The library's trainer numbers the "##x" symbols in the random order of a hash
  map and breaks ties between pairs by these numbers, so two runs on one text
  differ. Here it gets them as sorted special tokens, which come first; the
  alphabet is chosen here too, by count and then code point.

  Raises:
    CorpusError: vocab_size is too small, or byte_fallback is set.
  """
  vocab_size = options.vocab_size
  if options.byte_fallback:
    raise CorpusError(
      "tokenizer.byte_fallback=True: WordPiece has no byte tokens; use "
      "tokenizer.kind=unigram or bpe."
    )
  if vocab_size < MIN_VOCAB_SIZE:
    raise CorpusError(
      f"tokenizer.vocab_size={vocab_size} is too small for wordpiece; expected "
      f"at least {MIN_VOCAB_SIZE}."
    )
  library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
  library.normalizer = _bert_normalizer(
    options.lowercase, options.normalization
  )
  library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  # The Unicode forms, which join a letter and its marks, need whole lines; the
  # BERT normalizer maps each character alone.
  composed = lines
  for form in _unicode_forms(options.normalization):
    composed = map(form.normalize_str, composed)
  raw_counts = collections.Counter(itertools.chain.from_iterable(composed))
  counts = collections.Counter()
  for char, count in raw_counts.items():
    for normal in library.normalizer.normalize_str(char).strip():
      counts[normal] += count
  # A letter may take two entries, "x" and "##x": at most half the vocabulary.
  alphabet = choose_alphabet(
    counts, options.character_coverage, max_size=vocab_size // 4
  )
  words = library.pre_tokenizer.pre_tokenize_str
  continuing = [  # Neither punctuation nor Chinese, which are whole words.
    char
    for char in alphabet
    if len(words(library.normalizer.normalize_str("a" + char))) == 1
  ]
  library.train_from_iterator(
    lines,
    trainers.WordPieceTrainer(
      vocab_size=vocab_size,
      min_frequency=2,
      special_tokens=[
        *WORDPIECE_SPECIALS,
        *(f"##{char}" for char in continuing),
      ],
      initial_alphabet=alphabet,
      limit_alphabet=len(alphabet),
      show_progress=False,
    ),
  )
  vocab = library.get_vocab(with_added_tokens=False)
  _warn_if_small(len(vocab), vocab_size)
  return bert_json(
    sorted(vocab, key=vocab.get),
    lowercase=options.lowercase,
    normalization=options.normalization,
  )


def _bert_normalizer(
  lowercase: bool, form: str, **options
) -> normalizers.Normalizer:
  bert = normalizers.BertNormalizer(lowercase=lowercase, **options)
  first = _unicode_forms(form)
  return normalizers.Sequence([*first, bert]) if first else bert


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
  """Returns the tokenizer.json of BERT's tokenizer.

  Args:
    tokens: the vocabulary in the order of ids.
    lowercase: as in tokenizer.train_tokenizer.
    normalization: as in tokenizer.train_tokenizer.
    **options: further options of the library's BertNormalizer.
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


def train_bpe(lines: list[str], options: VocabularyOptions) -> str:
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
    steps.append(
      normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, lowercase=True
      )
    )
  if steps:
    library.normalizer = (
      normalizers.Sequence(steps) if len(steps) > 1 else steps[0]
    )
  library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
  library.decoder = decoders.ByteLevel()
  library.train_from_iterator(
    lines,
    trainers.BpeTrainer(
      vocab_size=vocab_size,
      min_frequency=2,
      special_tokens=[
        *BPE_SPECIALS[:4],
        tokenizers.AddedToken(BPE_SPECIALS[4], lstrip=True),
      ],
      initial_alphabet=alphabet,
      show_progress=False,
    ),
  )
  library.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
  _warn_if_small(library.get_vocab_size(), vocab_size)
  return library.to_str()


def train_unigram(lines: list[str], options: VocabularyOptions) -> bytes:
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
  lines = sample_sentences(lines, MAX_UNIGRAM_BYTES)
  counts = collections.Counter()
  for line in lines:
    counts.update(normalizer.Normalize(line))
  # sentencepiece's marks for spaces and unknown characters.
  del counts["▁"], counts["▅"]
  model = io.BytesIO()
  try:
    sentencepiece.SentencePieceTrainer.Train(
      sentence_iterator=iter(lines),
      model_writer=model,
      model_type="unigram",
      vocab_size=options.vocab_size,
      required_chars="".join(
        choose_alphabet(
          counts, options.character_coverage, max_size=max_alphabet
        )
      ),
      character_coverage=0.98,  # The minimum: required_chars is the alphabet.
      # Omitted if False, since writing it to the file would change the hash.
      **({"byte_fallback": True} if options.byte_fallback else {}),
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
    raise CorpusError(
      _unigram_problem(options.vocab_size, str(error))
    ) from error
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


def _unigram_normalizer(
  lowercase: bool, form: str
) -> sentencepiece.SentencePieceNormalizer:
  if lowercase and form in ("nfc", "none"):
    raise CorpusError(
      f"tokenizer.normalization={form!r}: a lowercasing unigram normalizes to "
      "nfkc; set tokenizer.lowercase=False, or another tokenizer.kind."
    )
  if lowercase:
    return _accentless()
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


def _accentless() -> sentencepiece.SentencePieceNormalizer:
  """Returns NFKC and case folding, without accents, like BERT's lowercasing."""
  folding = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc_cf")
  rules = {
    char: _plain(char)
    for char in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(char) not in ("Cn", "Co", "Cs")
  }
  rules |= {source: _plain(target) for source, target in folding.Decompile()}
  return sentencepiece.SentencePieceNormalizer(
    norm_map=[rule for rule in rules.items() if rule[0] != rule[1]]
  )


def _plain(text: str) -> str:
  kept = [
    char
    for char in unicodedata.normalize("NFD", text)
    if unicodedata.category(char) != "Mn"
  ]
  return unicodedata.normalize("NFC", "".join(kept)).lower()


def _warn_if_small(size: int, wanted: int) -> None:
  if size < wanted:
    _log.warning(
      "tokenizer.vocab_size=%d is more than this text yields; the vocabulary "
      "has %d tokens.",
      wanted,
      size,
    )
