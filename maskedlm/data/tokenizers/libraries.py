"""Reads tokenizer files with two libraries, each into the same Backend.

tokenizer.py builds the public interface on it. read_tokenizer_json and
read_vocab_txt read Hugging Face's formats with `tokenizers`;
read_sentencepiece_model reads those of sentencepiece.
"""

import functools
import itertools
import json
import os
import pathlib
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import fast_wordpiece, training

# prepare runs one process per core: the library must not start threads in each,
# nor warn about forks. It reads the variable when it encodes; a value set by
# the user is kept.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class Special(NamedTuple):
  """Ids of the tokens that a masked language model needs."""

  pad: int
  unk: int
  cls: int
  sep: int
  mask: int


# text -> (ids, the character span (begin, end) of each).
Encode = Callable[[str], tuple[list[int], list[tuple[int, int]]]]


class Backend(NamedTuple):
  """A tokenizer file, and the functions of the library that reads it."""

  kind: str  # wordpiece | bpe | unigram.
  file: str  # One of FILE_NAMES.
  content: bytes
  tokens: list[str]  # By id; "" if the file has no token for an id.
  special: Special
  control: frozenset[int]  # Ids that the file marks as special.
  starts_word: np.ndarray  # [V] bool.
  normalize: Callable[[str], str]  # Text -> the form that tokens spell.
  encode: Encode
  encode_continued: Encode  # For text right after a special token, no space.
  encode_batch: Callable[[list[str]], list[np.ndarray]]
  decode: Callable[[list[int]], str]


CONFIG_NAME = "tokenizer_config.json"  # Hugging Face's, next to a vocab.txt.
FILE_NAMES = ("tokenizer.json", "tokenizer.model")  # In a saved directory.
# Common names, the preferred one first.
SPECIAL_NAMES = Special(
  pad=("[PAD]", "<pad>"),
  unk=("[UNK]", "<unk>"),
  cls=("[CLS]", "<cls>", "<bos>", "<s>"),
  sep=("[SEP]", "<sep>", "<eos>", "</s>"),
  mask=("[MASK]", "<mask>"),
)
# Tokens of byte-level BPE that begin a word: space, newline, return, tab.
BYTE_LEVEL_MARKS = ("Ġ", "Ċ", "č", "ĉ")


# --- Hugging Face: WordPiece, BPE, Unigram --------------------------------


def read_vocab_txt(
  content: bytes, path: pathlib.Path, *, lowercase: bool | None
) -> Backend:
  """Reads BERT's vocab.txt, in which the token on line i has id i.

  Raises:
    CorpusError: the file is not UTF-8 or lacks special tokens, or the
      tokenizer_config.json next to it is broken.
  """
  try:
    lines = content.decode("utf-8-sig").removesuffix("\n").split("\n")
  except UnicodeDecodeError as error:
    raise CorpusError(
      f"tokenizer {path}: not UTF-8 ({error}); expected one token per line."
    ) from error
  lines = [line.rstrip() for line in lines]
  # As in BERT, the last of equal lines counts; the others only keep their ids.
  ids = {line: index for index, line in enumerate(lines)}
  tokens = [
    line if line and ids[line] == index else f"[unused line {index}]"
    for index, line in enumerate(lines)
  ]
  _find_special(ids, path, [names[:1] for names in SPECIAL_NAMES])
  config = path.with_name(CONFIG_NAME)
  stated = _parse(config.read_bytes(), config) if config.exists() else {}
  if lowercase is None:
    lowercase = stated.get("do_lower_case")
  if lowercase is None:
    lowercase = not any(
      re.search("[A-Z]", token) for token in tokens if token[0] != "["
    )
  definition = training.bert_json(
    tokens,
    lowercase=bool(lowercase),
    strip_accents=stated.get("strip_accents"),
    handle_chinese_chars=stated.get("tokenize_chinese_chars") is not False,
  )
  return read_tokenizer_json(definition, path)


def _parse(content: str | bytes, path) -> dict:
  try:
    definition = json.loads(content)
    if not isinstance(definition, dict):
      raise ValueError("not an object")
  except ValueError as error:
    raise CorpusError(
      f"tokenizer {path}: broken JSON ({error}); fetch the file again."
    ) from error
  return definition


def read_tokenizer_json(content: str | bytes, path) -> Backend:
  """Reads a tokenizer.json with WordPiece, BPE (byte-level or ▁) or Unigram.

  Raises:
    CorpusError: the file is broken, has another model or lacks special tokens.
  """
  definition = _parse(content, path) | {"truncation": None, "padding": None}
  library = _hugging_face(definition, path)
  kind = type(library.model).__name__.lower()
  if kind not in ("wordpiece", "bpe", "unigram"):
    raise CorpusError(
      f"tokenizer {path}: its model is {kind}; expected wordpiece, bpe or "
      "unigram."
    )
  ids = library.get_vocab(with_added_tokens=True)
  tokens = [""] * (max(ids.values(), default=-1) + 1)
  for token, index in ids.items():
    tokens[index] = token
  added = library.get_added_tokens_decoder().items()
  without_prefix = _without_prefix(definition)
  continuing = functools.cache(  # Rarely needed, so built on demand.
    lambda: (
      library
      if without_prefix == definition
      else _hugging_face(without_prefix, path)
    )
  )
  # The space that byte-level BPE puts before a text is not part of it.
  prefix = " " if kind == "bpe" and without_prefix != definition else ""

  def encode(library, text):
    encoding = library.encode(text, add_special_tokens=False)
    return encoding.ids, encoding.offsets

  fast = functools.cache(lambda: fast_wordpiece.make_encoder(definition, ids))

  def encode_batch(texts):
    if encode_fast := fast():
      return encode_fast(texts)
    encodings = library.encode_batch_fast(texts, add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]

  return Backend(
    kind=kind,
    file="tokenizer.json",
    content=json.dumps(
      definition, ensure_ascii=False, sort_keys=True, separators=(",", ":")
    ).encode(),
    tokens=tokens,
    special=_find_special(ids, path),
    control=frozenset(index for index, token in added if token.special),
    starts_word=_starts_word(definition, library, tokens, path),
    normalize=library.normalizer.normalize_str if library.normalizer else str,
    encode=functools.partial(encode, library),
    encode_continued=lambda text: encode(continuing(), text),
    encode_batch=encode_batch,
    decode=lambda ids: library.decode(
      ids, skip_special_tokens=False
    ).removeprefix(prefix),
  )


def _hugging_face(definition: dict, path) -> tokenizers.Tokenizer:
  # The post-processor would add [CLS] and [SEP] and shift offsets.
  definition = definition | {"post_processor": None}
  try:
    library = tokenizers.Tokenizer.from_str(json.dumps(definition))
  except Exception as error:  # The library raises no narrower class.
    raise CorpusError(
      f"tokenizer {path}: not a usable tokenizer.json ({error}); fetch the "
      f"file again, or save it with a current `tokenizers`."
    ) from error
  library.encode_special_tokens = True  # Their spellings are ordinary text.
  return library


def _without_prefix(definition: dict) -> dict:
  """Returns the definition without the options that put a space before text."""
  off = {"add_prefix_space": False, "prepend_scheme": "never"}

  def walk(node: Any) -> Any:
    if isinstance(node, list):
      return [walk(item) for item in node]
    if isinstance(node, dict):
      return {k: off[k] if k in off else walk(v) for k, v in node.items()}
    return node

  return definition | {
    step: walk(definition.get(step)) for step in ("normalizer", "pre_tokenizer")
  }


def _starts_word(definition, library, tokens, path) -> np.ndarray:
  if isinstance(library.model, tokenizers.models.WordPiece):
    prefix = library.model.continuing_subword_prefix
    return np.array([not token.startswith(prefix) for token in tokens])
  steps = json.dumps(
    [definition.get("normalizer"), definition.get("pre_tokenizer")],
    ensure_ascii=False,
  )
  if "ByteLevel" in steps:
    marks = BYTE_LEVEL_MARKS
  elif "▁" in steps:
    marks = ("▁",)
  else:
    raise CorpusError(
      f"tokenizer {path}: can't tell which tokens begin a word; expected "
      "WordPiece, byte-level BPE (Ġ) or sentencepiece's marks (▁)."
    )
  return np.array([token.startswith(marks) for token in tokens])


def _find_special(
  ids: Mapping[str, int], path, known: Iterable[Sequence[str]] = SPECIAL_NAMES
) -> Special:
  """Returns the id of each special token, by the first of its known names.

  Raises:
    CorpusError: the vocabulary has none of a token's names.
  """
  special = Special(
    *(next((ids[n] for n in names if n in ids), None) for names in known)
  )
  missing = [
    f"{field} ({' or '.join(names)})"
    for field, names in zip(Special._fields, known, strict=True)
    if getattr(special, field) is None
  ]
  if missing:
    raise CorpusError(
      f"tokenizer {path}: no special token for {', '.join(missing)}; a masked "
      f"language model needs it: add it to the file's vocabulary, or train a "
      'tokenizer (tokenizer.path="").'
    )
  return special


# --- sentencepiece --------------------------------------------------------


def read_sentencepiece_model(content: bytes, path) -> Backend:
  """Reads a sentencepiece .model; appends the special tokens it lacks.

  Raises:
    CorpusError: the file is broken.
  """
  library = _sentencepiece(content, path)
  missing = [
    names[0]
    for names, index in zip(
      SPECIAL_NAMES, _special_pieces(library), strict=True
    )
    if index < 0
  ]
  if missing:
    content += b"".join(map(_control_piece, missing))
    library = _sentencepiece(content, path)
  ids = list(range(library.get_piece_size()))
  tokens = library.id_to_piece(ids)
  control = {i for i in ids if library.is_control(i) or library.is_unused(i)}
  is_byte = [library.is_byte(index) for index in ids]
  starts_word = np.array(
    [i in control or token.startswith("▁") for i, token in enumerate(tokens)]
  )
  spaces = [" " if starts else "" for starts in starts_word]
  shown = control | {library.unk_id()}
  # Protobuf merges appended fields: normalizer_spec.add_dummy_prefix=false.
  continuing = functools.cache(
    lambda: _sentencepiece(content + b"\x1a\x02\x18\x00", path)
  )

  def encode(library, text):
    encoding = library.encode(text, return_type="offset_mapping")
    normal, origin = library.normalize(text, with_offsets=True)
    ids, pieces = encoding["ids"], encoding["pieces"]
    return ids, _spans(pieces, [is_byte[i] for i in ids], normal, origin)

  def decode(ids):
    # The library would drop special tokens.
    text = ""
    for is_shown, run in itertools.groupby(ids, shown.__contains__):
      run = list(run)
      if is_shown:
        text += "".join(spaces[index] + tokens[index] for index in run)
      else:
        text += spaces[run[0]] + library.decode(run)
    return text.removeprefix(" ")

  return Backend(
    kind="unigram",
    file="tokenizer.model",
    content=content,
    tokens=tokens,
    special=_special_pieces(library),
    control=frozenset(control),
    starts_word=starts_word,
    normalize=lambda text: library.normalize(text).replace("▁", " "),
    encode=functools.partial(encode, library),
    encode_continued=lambda text: encode(continuing(), text),
    encode_batch=functools.partial(
      library.encode, return_type="numpy", num_threads=1
    ),
    decode=decode,
  )


def _sentencepiece(content: bytes, path):
  library = sentencepiece.SentencePieceProcessor()
  try:
    library.load_from_serialized_proto(content)
  except RuntimeError as error:
    raise CorpusError(
      f"tokenizer {path}: not a sentencepiece model, or a truncated one "
      f"({error}); fetch the file again."
    ) from error
  return library


def _spans(
  pieces: list[str], is_byte: list[bool], normal: str, origin: list[int]
) -> list[tuple[int, int]]:
  """Returns the character spans of pieces in the text before normalization.

  The library assigns a character that is split ("ﬁ" in two, an emoji in four
  bytes) to its last piece only; here it belongs to each of its pieces.

  Args:
    pieces: joined, they spell `normal`; a byte piece is a part of a character.
    is_byte: whether each piece is a byte.
    normal: the normalized text.
    origin: index in the text of each character of `normal`, and of its end.
  """
  spans, start, bytes_left = [], 0, 0
  for piece, byte in zip(pieces, is_byte, strict=True):
    end = start + (1 if byte else len(piece))
    beyond = end
    while beyond < len(normal) and origin[beyond] == origin[end - 1]:
      beyond += 1
    spans.append((origin[start], origin[beyond]))
    if byte:
      bytes_left = (bytes_left or len(normal[start].encode())) - 1
    start = start if bytes_left else end
  return spans


def _special_pieces(library) -> Special:
  """Returns ids by the known names, else by the model's roles; -1 if none."""
  unknown = library.unk_id()
  roles = Special(
    library.pad_id(), unknown, library.bos_id(), library.eos_id(), -1
  )

  def find(names, role):
    ids = map(library.piece_to_id, names)
    return next((index for index in ids if index != unknown), role)

  return Special(*map(find, SPECIAL_NAMES, roles))._replace(unk=unknown)


def _control_piece(name: str) -> bytes:
  """Encodes an element of ModelProto.pieces: a control symbol, never text."""
  piece = name.encode()
  piece = b"\x0a" + bytes([len(piece)]) + piece  # 1: piece.
  piece += b"\x15" + struct.pack("<f", 0.0)  # 2: score.
  piece += b"\x18\x03"  # 3: type = CONTROL.
  return b"\x0a" + bytes([len(piece)]) + piece
