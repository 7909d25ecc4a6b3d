"""Repairs a tokenizer.json that others made, once; what is saved needs none.

The same text must give the same ids always, a character that the vocabulary
lacks must become the unknown token, not vanish or raise an error in a worker,
and the beginnings of words must be known.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from tokenizers import pre_tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import libraries, word_starts
from maskedlm.data.tokenizers.libraries import SPECIAL_NAMES, Backend

_PROBED = 32  # Words that check_word_starts encodes.


def read_tokenizer_json(
  content: str | bytes, path, roles: Mapping[str, str] = {}
) -> Backend:
  """Reads a tokenizer.json with WordPiece, BPE, Unigram or WordLevel.

  `roles` has pad, unk, ... -> the token that the files beside it name, which is
  renamed if the vocabulary has none of the usual names.

  Raises:
    CorpusError: the file is broken, has another model, ids with a wide gap,
      lacks special tokens, or doesn't mark the beginnings of words.
  """
  stated = libraries.parse_object(content, path)
  definition = libraries.without_training(stated)
  library = libraries.build(definition, path)
  name = type(library.model).__name__
  if name not in ("WordPiece", "BPE", "Unigram", "WordLevel"):
    raise CorpusError(
      f"tokenizer {path}: its model is {name.lower()}; expected wordpiece, bpe,"
      " unigram or wordlevel."
    )
  ids = library.get_vocab(with_added_tokens=True)
  renamed = libraries.usual_names(ids, roles, SPECIAL_NAMES)
  if renamed:
    definition = _rename(definition, renamed)
    library = libraries.build(definition, path)
  # Older files leave out the type.
  definition["model"] = model = {"type": name, **definition["model"]}
  ids = library.get_vocab(with_added_tokens=True)
  libraries.find_special(ids, path, unknown=libraries.unknown_token(definition))
  last = max(ids, key=ids.__getitem__)
  if ids[last] >= 10 * len(ids) + 1000:
    raise CorpusError(
      f"tokenizer {path}: the id of {last!r} is {ids[last]}, but there are "
      f"only {len(ids)} tokens; expected ids without such a gap: correct it."
    )
  notes = [f"{token!r} is named {usual}" for token, usual in renamed.items()]
  if word_starts.has_no_marks(definition):
    notes.append("it marks no spaces, so each token counts as a word")
  if dropout := stated["model"].get("dropout"):
    notes.append(f"BPE dropout ({dropout}) is off")
  lacks_unknown = libraries.unknown_token(definition) is None
  if lacks_unknown and not _knows_all_bytes(definition):
    notes.append(f"{_name_unknown(model, path)} is set as its unknown token")
  content = libraries.canonical(definition)
  backend = libraries.read_tokenizer_json(content, path)
  check_word_starts(backend, path)
  return backend._replace(notes=tuple(notes), renamed=renamed)


def _rename(definition: dict, names: Mapping[str, str]) -> dict:
  """Returns a tokenizer.json in which tokens have other names."""
  vocab = definition["model"]["vocab"]
  pairs = vocab.items() if isinstance(vocab, dict) else vocab
  renamed = [(names.get(token, token), value) for token, value in pairs]
  added = [
    token | {"content": names.get(token["content"], token["content"])}
    for token in definition.get("added_tokens", ())
  ]
  model = definition["model"] | {"vocab": type(vocab)(renamed)}
  if unknown := model.get("unk_token"):
    model["unk_token"] = names.get(unknown, unknown)
  return definition | {"model": model, "added_tokens": added}


def check_word_starts(backend: Backend, path) -> None:
  """Raises CorpusError if words between spaces don't begin with a mark."""
  marks = "".join((word_starts.SPACE, *word_starts.BYTE_LEVEL_MARKS))
  letters = (token.strip(marks) for token in backend.tokens)
  words = [word for word in letters if word.isascii() and word.isalpha()]
  words = words or [token for token in backend.tokens if token.isalpha()]
  words = words[:: max(len(words) // _PROBED, 1)]
  ids = np.array(backend.encode(" ".join(words))[0], np.intp)
  num_marked = backend.starts_word[ids].sum()
  # The first word may have no space before it.
  if 2 * (num_marked + 1) < len(words):
    raise word_starts.unknown_starts(
      path, f"of {len(words)} words between spaces, it marks {num_marked}"
    )


def _name_unknown(model: dict[str, Any], path) -> str:
  """Sets a model's unknown token to the usual one; returns its name."""
  vocab = [x if isinstance(x, str) else x[0] for x in model["vocab"]]
  names = SPECIAL_NAMES["unk"]
  name = next((name for name in names if name in vocab), None)
  key = "unk_id" if model["type"] == "Unigram" else "unk_token"
  if name is None:
    raise CorpusError(
      f"tokenizer {path}: its model has no unknown token for characters that "
      f"are not in the vocabulary, and the vocabulary has none of "
      f"{', '.join(names)}: add one to the file's model, and name it as {key}."
    )
  model[key] = vocab.index(name) if key == "unk_id" else name
  return name


def _knows_all_bytes(definition: dict) -> bool:
  """Returns whether a BPE spells every character, if need be by its bytes."""
  model = definition["model"]
  if model["type"] != "BPE":
    return False
  vocab: Collection[str] = model["vocab"]
  if model.get("byte_fallback"):
    return all(f"<0x{byte:02X}>" in vocab for byte in range(256))
  steps = word_starts.steps_of(definition)
  return any(step["type"] == "ByteLevel" for step in steps) and all(
    letter in vocab for letter in pre_tokenizers.ByteLevel.alphabet()
  )
