"""Corrects a tokenizer.json: settings of training, and the unknown token.

The same text must give the same ids always, and a character that the vocabulary
lacks must become the unknown token, not vanish or raise an error in a worker.
"""

from collections.abc import Collection, Sequence

from tokenizers import pre_tokenizers

from maskedlm.core.errors import CorpusError


def without_training(definition: dict) -> dict:
  """Returns the definition without truncation, padding and BPE dropout.

  With dropout, the library would leave out merges at random each time that it
  encodes a text.
  """
  definition = definition | {"truncation": None, "padding": None}
  model = definition.get("model")
  if isinstance(model, dict) and model.get("dropout"):
    definition["model"] = model | {"dropout": None}
  return definition


def unknown_token(definition: dict) -> str | None:
  """Returns the token that the model gives for unknown characters, or None."""
  model, vocab = definition["model"], definition["model"]["vocab"]
  if model.get("type") != "Unigram":
    token = model.get("unk_token")
    return token if token in vocab else None
  index = model.get("unk_id")
  return None if index is None else vocab[index][0]


def with_unknown_token(
  definition: dict, names: Sequence[str], path
) -> tuple[dict, str]:
  """Returns the definition with an unknown token, and the token if it is new.

  Args:
    definition: content of a tokenizer.json; its model is WordPiece, BPE or
      Unigram.
    names: common names of the token, the preferred one first.
    path: the file, for the error.

  Raises:
    CorpusError: the vocabulary has none of them.
  """
  if unknown_token(definition) is not None or _knows_all_bytes(definition):
    return definition, ""
  model = definition["model"]
  vocab = _tokens(model)
  name = next((name for name in names if name in vocab), None)
  if name is None:
    raise CorpusError(
      f"tokenizer {path}: its model has no unknown token for characters that "
      f"are not in the vocabulary, and the vocabulary has none of "
      f"{', '.join(names)}: add one to the file's model, and name it as "
      f"{'unk_id' if model.get('type') == 'Unigram' else 'unk_token'}."
    )
  if model.get("type") == "Unigram":
    return definition | {"model": model | {"unk_id": vocab.index(name)}}, name
  return definition | {"model": model | {"unk_token": name}}, name


def _tokens(model: dict) -> list[str]:
  vocab = model["vocab"]
  return [entry if isinstance(entry, str) else entry[0] for entry in vocab]


def _knows_all_bytes(definition: dict) -> bool:
  """Returns whether a BPE spells every character, if need be by its bytes."""
  model = definition["model"]
  if model.get("type") != "BPE":
    return False
  vocab: Collection[str] = model["vocab"]
  if model.get("byte_fallback"):
    return all(f"<0x{byte:02X}>" in vocab for byte in range(256))
  steps = (definition.get("normalizer"), definition.get("pre_tokenizer"))
  return any(step["type"] == "ByteLevel" for step in find_steps(steps)) and all(
    letter in vocab for letter in pre_tokenizers.ByteLevel.alphabet()
  )


def find_steps(node) -> list[dict]:
  """Returns the steps of a normalizer or pre-tokenizer, nested or not."""
  if isinstance(node, list | tuple):
    return [step for item in node for step in find_steps(item)]
  if not isinstance(node, dict):
    return []
  inside = [step for item in node.values() for step in find_steps(item)]
  return [node, *inside] if "type" in node else inside
