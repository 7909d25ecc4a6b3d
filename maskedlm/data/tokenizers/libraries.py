"""Reads tokenizer.json with the library `tokenizers`, into a Backend.

tokenizer.py builds the public interface on it; sentencepiece_model.py reads
sentencepiece's models into the same. Files that others made are repaired first
(repairs.py).
"""

import functools
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.core.open_file import open_file
from maskedlm.core.parse_json import parse_json
from maskedlm.data.tokenizers import fast_wordpiece, letters, word_starts
from maskedlm.runtime import storage_errors

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

  kind: str  # wordpiece | bpe | unigram | characters | kmers | wordlevel.
  file: str  # One of FILE_NAMES.
  content: bytes
  definition: dict  # What a tokenizer.json says; {} for sentencepiece.
  tokens: list[str]  # By id; "" if the file has no token for an id.
  special: Special
  control: frozenset[int]  # Ids that the file marks as special.
  starts_word: np.ndarray  # [V] bool.
  normalize: Callable[[str], str]  # Text -> the form that tokens spell.
  encode: Encode
  encode_continued: Encode  # For text after a special token.
  encode_batch: Callable[[list[str]], list[np.ndarray]]
  decode: Callable[[list[int]], str]
  notes: tuple[str, ...] = ()  # What differs from the file, or is a guess.
  renamed: Mapping[str, str] = {}  # Special tokens that others named otherwise.
  k: int = 1  # Of k-mers: letters in one, and from one to the next.
  stride: int = 1


FILE_NAMES = ("tokenizer.json", "tokenizer.model")  # In a saved directory.
# Common names of each field of Special, the preferred one first.
SPECIAL_NAMES = {
  "pad": ("[PAD]", "<pad>"),
  "unk": ("[UNK]", "<unk>"),
  "cls": ("[CLS]", "<cls>", "<bos>", "<s>"),
  "sep": ("[SEP]", "<sep>", "<eos>", "</s>"),
  "mask": ("[MASK]", "<mask>"),
}


def read_content(path: pathlib.Path) -> bytes:
  """Returns the bytes of a tokenizer's file.

  Raises:
    CorpusError, StorageError: it is absent, or can't be read now.
  """
  try:
    with open_file(path) as file:
      return file.read()
  except OSError as error:
    storage_errors.raise_if_temporary(path, error)
    raise CorpusError(
      f"tokenizer {path}: {error.strerror}; expected a tokenizer.json, a "
      "vocab.txt, a sentencepiece .model or a directory with one of them."
    ) from error


def parse_object(content: str | bytes, path) -> dict:
  """Returns the JSON object in a tokenizer's file.

  Raises:
    CorpusError: it is not one.
  """
  try:
    definition = parse_json(content)
    if not isinstance(definition, dict):
      raise ValueError("not an object")
  except ValueError as error:
    raise CorpusError(
      f"tokenizer {path}: broken JSON ({error}); fetch the file again."
    ) from error
  return definition


def canonical(definition: dict) -> bytes:
  """Returns a tokenizer.json in the form that is saved and hashed."""
  return json.dumps(
    definition, ensure_ascii=False, sort_keys=True, separators=(",", ":")
  ).encode()


def read_tokenizer_json(content: bytes, path) -> Backend:
  """Reads a tokenizer.json that maskedlm saved.

  Raises:
    CorpusError: the file is broken.
  """
  definition = parse_object(content, path)
  library = build(definition, path)
  kind, k, stride = letters.kind_of(
    definition, type(library.model).__name__.lower()
  )
  ids = library.get_vocab(with_added_tokens=True)
  special = find_special(ids, path, unknown=unknown_token(definition))
  tokens = [""] * (max(ids.values()) + 1)
  for token, index in ids.items():
    tokens[index] = token
  added = library.get_added_tokens_decoder().items()
  plain = _without_prefix(definition)
  continuing = functools.cache(  # Rarely needed, so built on demand.
    lambda: library if plain == definition else build(plain, path)
  )
  # The space that byte-level BPE puts before a text is not part of it.
  prefix = " " if kind == "bpe" and plain != definition else ""

  def encode(library, text):
    encoding = library.encode(text, add_special_tokens=False)
    return encoding.ids, encoding.offsets

  prefixes_words = _prefixes_words(definition)

  def encode_continued(text):
    bare = continuing().encode(text, add_special_tokens=False)
    if bare.ids and bare.offsets[0][0]:  # The space before it was dropped.
      return encode(library, text)
    if not (prefixes_words and bare.ids):
      return bare.ids, bare.offsets
    # The prefixes of the words after the first are their spaces.
    whole = library.encode(text, add_special_tokens=False)
    a, b = (x.word_ids.count(x.word_ids[0]) for x in (bare, whole))
    return bare.ids[:a] + whole.ids[b:], bare.offsets[:a] + whole.offsets[b:]

  fast = functools.cache(lambda: fast_wordpiece.make_encoder(definition, ids))

  def encode_batch(texts):
    if encode_fast := fast():
      return encode_fast(texts)
    encodings = library.encode_batch_fast(texts, add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]

  return Backend(
    kind=kind,
    file="tokenizer.json",
    content=content,
    definition=definition,
    tokens=tokens,
    special=special,
    control=frozenset(index for index, token in added if token.special),
    starts_word=word_starts.from_definition(definition, tokens, path),
    normalize=library.normalizer.normalize_str if library.normalizer else str,
    encode=functools.partial(encode, library),
    encode_continued=encode_continued,
    encode_batch=encode_batch,
    decode=lambda ids: library.decode(
      ids, skip_special_tokens=False
    ).removeprefix(prefix),
    k=k,
    stride=stride,
  )


def without_training(definition: dict) -> dict:
  """Returns a tokenizer.json without truncation, padding and BPE dropout.

  With dropout, the library would leave out merges at random each time that it
  encodes a text.
  """
  definition = definition | {"truncation": None, "padding": None}
  model = definition.get("model")
  if isinstance(model, dict) and model.get("dropout"):
    definition["model"] = model | {"dropout": None}
  return definition


def build(definition: dict, path) -> tokenizers.Tokenizer:
  """Returns the library's tokenizer, which reads special tokens' names as text.

  Raises:
    CorpusError: the definition is not one.
  """
  # The post-processor would add [CLS] and [SEP] and shift offsets.
  definition = without_training(definition) | {"post_processor": None}
  try:
    library = tokenizers.Tokenizer.from_str(json.dumps(definition))
  except KeyboardInterrupt:
    raise
  except BaseException as error:  # Its panics are no Exception.
    raise CorpusError(
      f"tokenizer {path}: not a usable tokenizer.json ({error}); fetch the "
      f"file again, or save it with a current `tokenizers`."
    ) from error
  library.encode_special_tokens = True  # Their spellings are ordinary text.
  return library


def unknown_token(definition: dict) -> str | None:
  """Returns the token that the model gives for unknown characters, or None."""
  model, vocab = definition["model"], definition["model"]["vocab"]
  if model.get("type") != "Unigram":
    token = model.get("unk_token")
    return token if token in vocab else None
  index = model.get("unk_id")
  return None if index is None else vocab[index][0]


_NO_PREFIX = {"add_prefix_space": False, "prepend_scheme": "never"}


def _without_prefix(definition: dict) -> dict:
  """Returns the definition without the steps that put a space before text."""

  def walk(node: Any) -> Any:
    if isinstance(node, list):
      return [walk(item) for item in node]
    if not isinstance(node, dict):
      return node
    if node.get("type") == "Prepend":
      return {"type": "Sequence", "normalizers": []}
    return {k: _NO_PREFIX.get(k, walk(v)) for k, v in node.items()}

  return definition | {
    step: walk(definition.get(step)) for step in ("normalizer", "pre_tokenizer")
  }


def _prefixes_words(definition: dict) -> bool:
  """Returns whether the prefix is put before each word, as in XLM-R.

  A step before that of the prefix has then split the text at its spaces.
  """
  steps = (definition.get("pre_tokenizer") or {}).get("pretokenizers", [])
  return any(_NO_PREFIX.keys() & step.keys() for step in steps[1:])


def usual_names(
  ids: Mapping[str, int],
  roles: Mapping[str, str],
  known: Mapping[str, tuple[str, ...]],
) -> dict[str, str]:
  """Returns token -> usual name, for roles whose usual names `ids` lacks."""
  return {
    roles[role]: names[0]
    for role, names in known.items()
    if roles.get(role) in ids and not ids.keys() & {*names}
  }


def find_special(
  ids: Mapping[str, int],
  path,
  known: Mapping[str, tuple[str, ...]] = SPECIAL_NAMES,
  *,
  unknown: str | None = None,
) -> Special:
  """Returns the id of each special token, by the first of its known names.

  Padding is distinguished from text by a mask, so [SEP] may stand for [PAD], as
  in EuroBERT. A tokenizer that spells every text has no unknown token, so [PAD]
  stands for it; repairs.py refuses others.

  Args:
    ids, path: token -> id, and the file.
    unknown: the token that the model gives for unknown characters, if known;
      it is preferred to the names.

  Raises:
    CorpusError: the vocabulary has none of a token's names.
  """
  if unknown is not None:
    known = {**known, "unk": (unknown, *known["unk"])}
  special = {
    role: next(ids[name] for name in names if name in ids)
    for role, names in known.items()
    if ids.keys() & {*names}
  }
  if "sep" in special:
    special.setdefault("pad", special["sep"])
  if "pad" in special:
    special.setdefault("unk", special["pad"])
  missing = [
    f"{role} ({' or '.join(names)})"
    for role, names in known.items()
    if role not in special and role != "unk"
  ]
  if missing:
    raise CorpusError(
      f"tokenizer {path}: no special token for {', '.join(missing)}; a masked "
      "language model needs it: name it in tokenizer_config.json beside the "
      f'file ("{missing[0].split()[0]}_token": ...), or add it to the '
      'vocabulary, or train a tokenizer (tokenizer.path="").'
    )
  return Special(**special)
