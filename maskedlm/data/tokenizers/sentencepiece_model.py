"""Reads sentencepiece .model files into the same Backend as libraries.py."""

import functools
import itertools
import struct

import numpy as np
import sentencepiece

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.libraries import SPECIAL_NAMES, Backend, Special

NORMAL, CONTROL = 1, 3  # Types of pieces; a control symbol is never text.


def read(content: bytes, path) -> Backend:
  """Reads a sentencepiece .model; appends the special tokens it lacks.

  Raises:
    CorpusError: the file is broken.
  """
  library = _sentencepiece(content, path)
  indices = _special_pieces(library)._asdict()
  missing = [SPECIAL_NAMES[role][0] for role, i in indices.items() if i < 0]
  if missing:
    content += b"".join(encode_piece(name, kind=CONTROL) for name in missing)
    library = _sentencepiece(content, path)
  ids = list(range(library.get_piece_size()))
  tokens = library.id_to_piece(ids)
  control = {i for i in ids if library.is_control(i) or library.is_unused(i)}
  is_byte = [library.is_byte(index) for index in ids]
  starts_word = np.array(
    [i in control or token.startswith("▁") for i, token in enumerate(tokens)]
  )
  if sum(token.endswith("▁") for token in tokens) > starts_word.sum():
    raise CorpusError(
      f"tokenizer {path}: its pieces end with the space after a word "
      "(treat_whitespace_as_suffix), so none begins a word; train it without "
      "that option."
    )
  spaces = [" " if starts else "" for starts in starts_word]
  shown = control | {library.unk_id()}
  # Protobuf merges appended fields: normalizer_spec.add_dummy_prefix.
  prefixed = functools.cache(
    lambda on: _sentencepiece(content + b"\x1a\x02\x18" + bytes([on]), path)
  )

  def encode(library, text):
    encoding = library.encode(text, return_type="offset_mapping")
    normal, origin = library.normalize(text, with_offsets=True)
    ids, pieces = encoding["ids"], encoding["pieces"]
    return ids, _spans(pieces, [is_byte[i] for i in ids], normal, origin)

  def encode_continued(text):
    ids, spans = encode(prefixed(False), text)
    if spans and spans[0][0]:  # The library dropped the space before it.
      return encode(prefixed(True), text)
    return ids, spans

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
    definition={},
    tokens=tokens,
    special=_special_pieces(library),
    control=frozenset(control),
    starts_word=starts_word,
    normalize=lambda text: library.normalize(text).replace("▁", " "),
    encode=functools.partial(encode, library),
    encode_continued=encode_continued,
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
  unknown, pad = library.unk_id(), library.pad_id()
  roles = Special(
    pad, unknown, library.bos_id(), library.eos_id(), -1
  )._asdict()

  def find(names, role):
    ids = map(library.piece_to_id, names)
    return next((index for index in ids if index != unknown), role)

  special = {role: find(SPECIAL_NAMES[role], i) for role, i in roles.items()}
  return Special(**special | {"unk": unknown})


def encode_piece(name: str, *, score: float = 0.0, kind: int = NORMAL) -> bytes:
  """Encodes an element of ModelProto.pieces."""
  piece = name.encode()
  piece = b"\x0a" + bytes([len(piece)]) + piece  # 1: piece.
  piece += b"\x15" + struct.pack("<f", score)  # 2: score.
  piece += b"\x18" + bytes([kind])  # 3: type.
  return b"\x0a" + bytes([len(piece)]) + piece
