"""Provides one interface to WordPiece, byte-level BPE and SentencePiece.

The libraries do the work (libraries.py) and their ids are passed on unchanged.
This module adds offsets and words with the same meaning for all kinds, and
special tokens that no text can forge.

A tokenizer is defined by its file, a tokenizer.json or a sentencepiece .model:
`train_tokenizer` makes it (training.py), `load_tokenizer` reads it, `save`
writes it, and its SHA-256 identifies the tokenizer in corpora and checkpoints.
"""

import hashlib
import os
import pathlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import CorpusError, check_name
from maskedlm.core.open_file import open_file
from maskedlm.data.tokenizers import (
  agreement,
  companions,
  documents,
  libraries,
  plain_text,
  sentencepiece_model,
  spelling,
  training,
  vocab_txt,
)
from maskedlm.data.tokenizers.libraries import Backend, Special
from maskedlm.runtime import buckets, output_files, storage_errors

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

  kind: str  # wordpiece | bpe | unigram (any sentencepiece model).
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
  tokens: Callable[[int], str]  # id -> its string in the vocabulary.
  normalize: Callable[[str], str]  # Text -> the form that tokens spell.
  # (text, specials=False) -> Encoding. The spelling of a special token is
  # ordinary text, unless specials=True: then those of `special`, and "[MASK]",
  # become ids, and whitespace before them is dropped, as in RoBERTa.
  encode: Callable[..., Encoding]
  # Texts -> ids [n] int32 of each, equal to encode's; fast, on one thread.
  encode_batch: Callable[[list[str]], list[np.ndarray]]
  # (documents.Text of each document, report) -> ids [n] int32 of each, equal to
  # encode's, and the number of tokens of each of its sentences.
  encode_documents: Callable[..., list[tuple[np.ndarray, np.ndarray]]]
  decode: Callable[[Sequence[int]], str]  # Includes special tokens.
  # Saves to a directory, replacing a tokenizer that was saved there before.
  save: Callable[[str | os.PathLike], None]
  sha256: str  # Hash of the saved file.
  # How the file was read where it is corrected or leaves something open, as
  # short clauses; empty for a saved tokenizer.
  notes: tuple[str, ...] = ()


def train_tokenizer(
  sentences: Iterable[str],
  *,
  kind: str,
  vocab_size: int,
  lowercase: bool,
  sample_bytes: int | None = None,
  normalization: str = "",
  character_coverage: float = training.COVERAGE,
  byte_fallback: bool = False,
) -> Tokenizer:
  """Trains a tokenizer; the same sentences give the same one, bit for bit.

  Args:
    sentences: a stream, read to its end; every k-th one is held in memory.
    kind: wordpiece (as BERT's), bpe (byte-level, as RoBERTa's) or unigram
      (sentencepiece, as ALBERT's; trained on 32 MB at most).
    vocab_size: size including special tokens. If the text doesn't yield as
      many, WordPiece and BPE log a warning and return a smaller vocabulary.
    lowercase: whether to lowercase and strip accents, as uncased BERT does.
    sample_bytes: maximum size of the text trained on; None: all of it.
    normalization: nfc, nfkc or none; "" is nfkc for unigram, else none.
    character_coverage: minimum share of the text's characters covered by the
      vocabulary, if they fit in half of it (in WordPiece, a quarter); the
      others are unknown. Byte-level BPE covers all.
    byte_fallback: whether a unigram spells the others with 256 byte tokens.

  Raises:
    CorpusError: there is no text, the kind is unknown, vocab_size is impossible
      or the kind doesn't support an option.
  """
  trainers = {
    "wordpiece": (training.train_wordpiece, libraries.read_tokenizer_json),
    "bpe": (training.train_bpe, libraries.read_tokenizer_json),
    "unigram": (
      training.train_unigram,
      sentencepiece_model.read,
    ),
  }
  check_name("tokenizer.kind", kind, trainers, CorpusError)
  train, read = trainers[kind]
  content = train(
    training.sample_sentences(sentences, sample_bytes),
    training.VocabularyOptions(
      vocab_size, lowercase, normalization, character_coverage, byte_fallback
    ),
  )
  return _make_tokenizer(read(content, "as trained"))


def load_tokenizer(
  path: str | os.PathLike, *, lowercase: bool | None = None
) -> Tokenizer:
  """Loads a tokenizer from a file or a directory.

  Args:
    path: a tokenizer.json, a BERT vocab.txt, a sentencepiece .model, or a
      directory with one of them, saved by maskedlm or from Hugging Face; also
      an address (gs://...). Files beside it are read, too (agreement.py).
      Special tokens that a .model lacks (T5's has no mask) become its last ids.
    lowercase: whether a vocab.txt lowercases text; other files define that, and
      must agree. None: the value in tokenizer_config.json next to it, else
      whether it has no capitals (vocab_txt.py).

  Raises:
    ConfigError, StorageError: an address has nothing, or can't be read.
    CorpusError: the file is absent or damaged, lacks special tokens, or doesn't
      agree with `lowercase` or the files beside it.
  """
  path = buckets.local_copy(path, beside=companions.NAMES)
  if path.is_dir():
    path = _file_in(path)
  try:
    with open_file(path) as file:
      content = file.read()
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise CorpusError(
      f"tokenizer {path}: {error.strerror}; expected a tokenizer.json, a "
      "vocab.txt, a sentencepiece .model or a directory with one of them."
    ) from error
  if path.name in _PARTS:
    raise _incomplete(path.parent)
  if path.suffix == ".txt":
    return _make_tokenizer(vocab_txt.read(content, path, lowercase=lowercase))
  readers = {
    ".json": libraries.read_tokenizer_json,
    ".model": sentencepiece_model.read,
  }
  if path.suffix not in readers:
    raise CorpusError(
      f"tokenizer {path}: the name must end in .json (Hugging Face), .model "
      "(sentencepiece) or .txt (BERT's vocabulary)."
    )
  stated, notes = companions.read_stated(path.parent), []
  if path.suffix == ".json":
    content, notes = agreement.follow(content, stated, path)
  backend = readers[path.suffix](content, path)
  notes += agreement.compare(backend, stated, path)
  if note := companions.left_out(path.parent, backend.tokens):
    notes.append(note)
  backend = backend._replace(notes=(*backend.notes, *notes))
  lowercases = "A" not in backend.normalize("A")
  if lowercase not in (None, lowercases):
    raise CorpusError(
      f"tokenizer.lowercase={lowercase}, but {path} "
      f"{'lowercases' if lowercases else 'keeps capitals in'} text by itself: "
      "leave the option out."
    )
  return _make_tokenizer(backend)


def save_if_absent(tokenizer: Tokenizer, path: pathlib.Path) -> None:
  """Saves a tokenizer to a directory, atomically, unless the path exists."""
  if not os.path.lexists(path):
    with output_files.whole_folder(path) as folder:
      tokenizer.save(folder)


_PARTS = ("vocab.json", "merges.txt")  # Files of older BPEs.


def _file_in(folder: pathlib.Path) -> pathlib.Path:
  for pattern in (*libraries.FILE_NAMES, "*.model", "vocab.txt"):
    if found := sorted(folder.glob(pattern)):
      return found[0]
  if all((folder / name).is_file() for name in _PARTS):
    raise _incomplete(folder)
  raise CorpusError(
    f"tokenizer {folder}: the directory has no tokenizer.json, *.model or "
    "vocab.txt; give the path of the file."
  )


def _incomplete(folder: pathlib.Path) -> CorpusError:
  return CorpusError(
    f"tokenizer {folder}: {' and '.join(_PARTS)} don't say how text is split; "
    f"expected a tokenizer.json; {companions.convert_command(folder)}."
  )


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
  suspect = plain_text.suspects(library, special_ids)
  encode_text = plain_text.make_encoder(library, suspect)
  spelt = {"[MASK]": special.mask} | {tokens[i]: i for i in special}
  in_prompt = _any_of(spelt)

  def encode(text: str, *, specials: bool = False) -> Encoding:
    text = training.replace_surrogates(text)
    runs = (
      _split(text, in_prompt, spelt) if specials else [(0, len(text), None)]
    )
    ids, offsets = [], []
    for begin, end, special_id in runs:
      if special_id is None:
        encoded = encode_text(text, begin, end)
      else:
        encoded = [special_id], [(begin, end)]
      ids += encoded[0]
      offsets += [_trim(text, a, b) for a, b in encoded[1]]
    offsets = _with_marks(text, offsets)
    starts = starts_word[np.array(ids, np.intp)]
    starts[:1] = True  # The first token always begins a word.
    return Encoding(
      ids=np.array(ids, np.int32),
      offsets=np.array(offsets, np.int32).reshape(-1, 2),
      word_ids=np.cumsum(starts, dtype=np.int32) - np.int32(1),
    )

  def encode_batch(texts: list[str]) -> list[np.ndarray]:
    try:
      batch = library.encode_batch(texts)
    except (TypeError, ValueError, RuntimeError):  # Lone surrogates.
      texts = list(map(training.replace_surrogates, texts))
      batch = library.encode_batch(texts)
    if batch and suspect[np.concatenate(batch)].any():
      batch = [
        encode(text).ids if suspect[ids].any() else ids
        for text, ids in zip(texts, batch, strict=True)
      ]
    return batch

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
    line_separator=documents.line_separator(library),
    tokens=tokens.__getitem__,
    normalize=library.normalize,
    encode=encode,
    encode_batch=encode_batch,
    encode_documents=documents.make_encoder(library, encode, encode_batch),
    decode=decode,
    save=save,
    sha256=hashlib.sha256(library.content).hexdigest(),
    notes=library.notes,
  )


def _any_of(spellings: Iterable[str]) -> re.Pattern:
  """Returns a pattern that matches any spelling; nothing if there are none."""
  longest_first = sorted(spellings, key=lambda token: (-len(token), token))
  return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")


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
