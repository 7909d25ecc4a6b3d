"""Provides one interface to WordPiece, byte-level BPE and SentencePiece.

The libraries do the work (libraries.py) and their ids are passed on unchanged.
This module adds offsets and words with the same meaning for all kinds, and
special tokens that no text can forge.

A tokenizer is defined by its file, a tokenizer.json or a sentencepiece .model:
`train_tokenizer` makes it (training.py), `load_tokenizer` reads those of others
(others.py), `save` writes it and `open_tokenizer` opens it again. Its SHA-256
identifies the tokenizer in corpora and checkpoints.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError, check_name
from maskedlm.data.options import TokenizerOptions
from maskedlm.data.repair import kept_places, repair
from maskedlm.data.tokenizers import (
  documents,
  letters,
  libraries,
  others,
  plain_text,
  repairs,
  sentencepiece_model,
  spelling,
  training,
  unigram,
)
from maskedlm.data.tokenizers.libraries import Backend, Special
from maskedlm.runtime import buckets, output_files

_UNUSED = re.compile(r"\[unused.*\]|")  # An id without a token is "".


class Encoding(NamedTuple):
  """The n tokens of a text, without surrounding [CLS] and [SEP].

  Offsets are character offsets into the original text: text[a:b] is the token's
  text, without surrounding whitespace (for a token of whitespace only, a == b,
  the end of the whitespace). Each token of a character that is split, such as a
  byte of an emoji, has the offsets of the whole character. The space that bpe
  and unigram put before a text belongs to its first character.
  """

  ids: np.ndarray  # [n] int32.
  offsets: np.ndarray  # [n, 2] int32.
  word_ids: np.ndarray  # [n] int32: 0, 1, ..., increased at each word's start.


class Tokenizer(NamedTuple):
  """A tokenizer: its vocabulary and functions. Not picklable; load it again."""

  kind: str  # A tokenizer.kind, or wordlevel; any sentencepiece is unigram.
  vocab_size: int  # V; every id is below it.
  special: Special
  # [n] int32: sorted ids that are never masked or drawn as random tokens: those
  # of `special`, the file's other special tokens, [unusedN], ids without token.
  special_ids: np.ndarray
  # [V] bool: stands where there is a space, or at the beginning of a text.
  # wordpiece: doesn't begin with ##. bpe: begins with Ġ, a newline or a tab.
  # unigram: begins with ▁. Special tokens do.
  follows_space: np.ndarray
  # [V] bool: follows_space, or begins a word without a space before it, in
  # scripts such as Han and Thai (spelling.begins_word).
  starts_word: np.ndarray
  # What joins the lines of a document: a newline, or a space if the vocabulary
  # has no newline.
  line_separator: str
  spells_lines: bool  # Whether it has tokens for newlines and indentation.
  tokens: Callable[[int], str]  # id -> its string in the vocabulary.
  normalize: Callable[[str], str]  # Text -> the form that tokens spell.
  # (text, specials=False) -> Encoding. The spelling of a special token is
  # ordinary text, unless specials=True: then those of `special`, and "[MASK]",
  # become ids, and whitespace before them is dropped, as in RoBERTa.
  encode: Callable[..., Encoding]
  # Texts -> ids [n] int32 of each, equal to encode's; fast, on one thread.
  encode_batch: Callable[[list[str]], list[np.ndarray]]
  # (documents.Text of each document, repaired, and a report) -> ids [n] int32
  # of each, equal to encode's, and the number of tokens of each sentence.
  encode_documents: Callable[..., list[tuple[np.ndarray, np.ndarray]]]
  decode: Callable[[Sequence[int]], str]  # Includes special tokens.
  # Saves to a directory, replacing a tokenizer that was saved there before.
  save: Callable[[str | os.PathLike], None]
  sha256: str  # Hash of the saved file.
  # How a file of others was read where it is repaired or leaves something
  # open, as short clauses; empty for a saved tokenizer.
  notes: tuple[str, ...] = ()
  k: int = 1  # Of k-mers: letters in one, and from one to the next.
  stride: int = 1

  @property
  def overlap(self) -> int:
    """How many tokens in a row have a letter in common, 1 but for k-mers."""
    return -(-self.k // self.stride)


def train_tokenizer(
  sentences: Iterable[str],
  *,
  kind: str,
  sample_bytes: int | None = None,
  **options,
) -> Tokenizer:
  """Trains a tokenizer; the same sentences give the same one, bit for bit.

  Args:
    sentences: a stream, read to its end; every k-th one is held in memory.
    kind: wordpiece (as BERT's), bpe (byte-level, as RoBERTa's), unigram
      (sentencepiece, as ALBERT's; trained on 32 MB at most); or characters or
      kmers, which read the options of letters.py alone.
    sample_bytes: maximum size of the text trained on; None: all of it.
    **options: others of config.tokenizer. If the text doesn't yield vocab_size
      tokens, wordpiece and bpe log a warning. The characters that
      character_coverage asks for get at most half of the vocabulary (of
      wordpiece, a quarter).

  Raises:
    CorpusError: there is no text, the kind is unknown, vocab_size is impossible
      or the kind doesn't support an option.

  >>> texts = ["low lower lowest"] * 9
  >>> tokenizer = train_tokenizer(
  ...   texts, kind="wordpiece", vocab_size=40, lowercase=True
  ... )
  >>> tokenizer.decode(tokenizer.encode("Lowest").ids)
  'lowest'
  """
  trainers: dict[str, tuple[Callable, Callable[..., Backend]]] = {
    "wordpiece": (training.train_wordpiece, repairs.read_tokenizer_json),
    "bpe": (training.train_bpe, repairs.read_tokenizer_json),
    "unigram": (unigram.train_unigram, sentencepiece_model.read),
    "characters": (letters.train_characters, repairs.read_tokenizer_json),
    "kmers": (letters.train_kmers, repairs.read_tokenizer_json),
  }
  check_name("tokenizer.kind", kind, trainers, CorpusError)
  train, read = trainers[kind]
  config = TokenizerOptions(kind=kind, **options)
  config = dataclasses.replace(config, lowercase=config.lowercase is not False)
  content = train(training.sample_sentences(sentences, sample_bytes), config)
  return _make_tokenizer(read(content, "as trained"))


def load_tokenizer(
  path: str | os.PathLike, *, lowercase: bool | None = None
) -> Tokenizer:
  """Reads a tokenizer of others, or one that maskedlm saved.

  Args:
    path: a tokenizer.json, a BERT vocab.txt, a sentencepiece .model, or a
      directory with one of them, saved by maskedlm or from Hugging Face; also
      an address (gs://...). What others.py says of files beside it holds.
      Special tokens that a .model lacks (T5's has no mask) become its last ids.
    lowercase: whether a vocab.txt lowercases text; other files define that, and
      must agree. None: whether it has no capitals (vocab_txt.py).

  Raises:
    ConfigError, StorageError: an address has nothing, or can't be read.
    CorpusError: the file is absent or damaged, lacks special tokens, doesn't
      agree with `lowercase`, or transformers would have to convert it and
      can't or is not installed.
  """
  return _make_tokenizer(others.read(path, lowercase=lowercase))


def open_tokenizer(folder: str | os.PathLike) -> Tokenizer:
  """Opens a tokenizer that `save` wrote, in a checkpoint or a corpus.

  Raises:
    ConfigError, StorageError: an address has nothing, or can't be read.
    CorpusError: the file is absent or damaged.
  """
  folder = buckets.local_copy(folder)
  path, model = (folder / name for name in libraries.FILE_NAMES)
  read = libraries.read_tokenizer_json
  if model.is_file() and not path.is_file():
    path, read = model, sentencepiece_model.read
  return _make_tokenizer(read(libraries.read_content(path), path))


def save_if_absent(tokenizer: Tokenizer, path: pathlib.Path) -> None:
  """Saves a tokenizer to a directory, atomically, unless the path exists."""
  if not os.path.lexists(path):
    with output_files.whole_folder(path) as folder:
      tokenizer.save(folder)


def _make_tokenizer(library: Backend) -> Tokenizer:
  """Returns the public interface to a library; see the fields of Tokenizer."""
  tokens, special = library.tokens, library.special
  V = len(tokens)
  unused = {i for i, token in enumerate(tokens) if _UNUSED.fullmatch(token)}
  special_ids = sorted(library.control | unused | set(special))
  follows_space = library.starts_word.copy()
  # Special tokens are words; an unknown piece may be within one.
  follows_space[[i for i in special_ids if i != special.unk]] = True
  starts_word = follows_space | spelling.begins_word(library)
  separator, spells_lines = spelling.line_separator(library)
  suspect = plain_text.suspects(library, special_ids)
  encode = _text_encoder(library, suspect, starts_word)

  def encode_repaired(texts: list[str]) -> list[np.ndarray]:
    batch = library.encode_batch(texts)
    if batch and suspect[np.concatenate(batch)].any():
      batch = [
        encode(text).ids if suspect[ids].any() else ids
        for text, ids in zip(texts, batch, strict=True)
      ]
    return batch

  documents_encoder = functools.cache(  # Inference needs none.
    lambda: documents.make_encoder(library, encode, encode_repaired)
  )

  def decode(ids: Sequence[int]) -> str:
    ids = [int(index) for index in ids]
    if ids and not 0 <= min(ids) <= max(ids) < V:
      raise CorpusError(
        f"decode: ids {min(ids)} to {max(ids)} are outside of the vocabulary, "
        f"0 to {V - 1}; they come from another tokenizer."
      )
    return library.decode(ids)

  def save(folder: str | os.PathLike) -> None:
    folder = pathlib.Path(folder)
    output_files.write_bytes(folder / library.file, library.content)
    for other in {*libraries.FILE_NAMES} - {library.file}:
      (folder / other).unlink(missing_ok=True)  # Else it might be loaded.

  return Tokenizer(
    kind=library.kind,
    vocab_size=V,
    special=special,
    special_ids=np.array(special_ids, np.int32),
    follows_space=follows_space,
    starts_word=starts_word,
    line_separator=separator,
    spells_lines=spells_lines,
    tokens=tokens.__getitem__,
    normalize=library.normalize,
    encode=encode,
    encode_batch=lambda texts: encode_repaired(list(map(repair, texts))),
    encode_documents=lambda texts, report: documents_encoder()(texts, report),
    decode=decode,
    save=save,
    sha256=hashlib.sha256(library.content).hexdigest(),
    notes=library.notes,
    k=library.k,
    stride=library.stride,
  )


def _text_encoder(
  library: Backend, suspect: np.ndarray, starts_word: np.ndarray
) -> Callable[..., Encoding]:
  tokens, special = library.tokens, library.special
  encode_text = plain_text.make_encoder(library, suspect)
  spelt = {"[MASK]": special.mask} | {tokens[i]: i for i in special}
  longest_first = sorted(spelt, key=lambda token: (-len(token), token))
  in_prompt = re.compile("|".join(map(re.escape, longest_first)))

  def encode(text: str, *, specials: bool = False) -> Encoding:
    original, text = text, repair(text)
    shown = text  # The original, without the characters that are removed.
    if text != original:
      places = kept_places(original)
      shown = "".join(original[i] for i in places[:-1])
    whole = [(0, len(text), None)]
    runs = _split(text, in_prompt, spelt) if specials else whole
    ids, offsets = [], []
    for begin, end, special_id in runs:
      if special_id is None:
        encoded = encode_text(text, begin, end)
      else:
        encoded = [special_id], [(begin, end)]
      ids += encoded[0]
      offsets += [_trim(shown, a, b) for a, b in encoded[1]]
    offsets = _with_marks(shown, offsets)
    starts = starts_word[np.array(ids, np.intp)]
    starts[:1] = True  # The first token always begins a word.
    spans = np.array(offsets, np.int32).reshape(-1, 2)
    if len(text) < len(original):
      begins, ends = spans.T
      origin = np.array(places, np.int32)
      last = np.where(ends > begins, origin[ends - 1] + 1, origin[begins])
      spans = np.stack([origin[begins], last], axis=1)
    return Encoding(
      ids=np.array(ids, np.int32),
      offsets=spans,
      word_ids=np.cumsum(starts, dtype=np.int32) - np.int32(1),
    )

  return encode


def _split(
  text: str, pattern: re.Pattern, ids: Mapping[str, int]
) -> Iterator[tuple[int, int, int | None]]:
  """Yields (begin, end, special id or None) of matches and of runs between."""
  begin = 0
  for match in pattern.finditer(text):
    yield begin, begin + len(text[begin : match.start()].rstrip()), None
    yield match.start(), match.end(), ids[match.group()]
    begin = match.end()
  yield begin, len(text), None


def _with_marks(
  text: str, spans: list[tuple[int, int]]
) -> list[tuple[int, int]]:
  """Extends spans over characters after them that belong to no token.

  The library's spans omit the marks of decomposed text if accents are stripped
  ("cafe" of "cafe\u0301"), and what is composed with the character before, such
  as the vowels of decomposed Hangul.
  """
  limits = [begin for begin, _ in [*spans, (len(text), 0)]][1:]
  widened = []
  for (begin, end), limit in zip(spans, limits, strict=True):
    while end < limit and _joins(text[max(begin, end - 2) : end], text[end]):
      end += 1
    widened.append((begin, end))
  return widened


def _joins(before: str, character: str) -> bool:
  """Returns whether a character is a mark, or composed with those before."""
  if character.isascii():
    return False
  if unicodedata.category(character) == "Mn":
    return True
  parts = (unicodedata.normalize("NFKC", x) for x in (before, character))
  return unicodedata.normalize("NFKC", before + character) != "".join(parts)


def _trim(text: str, begin: int, end: int) -> tuple[int, int]:
  """Returns the span without the whitespace around it."""
  span = text[begin:end].lstrip()
  begin = end - len(span)
  return begin, begin + len(span.rstrip())
