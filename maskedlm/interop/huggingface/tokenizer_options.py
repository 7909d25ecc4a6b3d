"""Checks that a directory's tokenizer has the ids and rules of its model.

What other files state beside tokenizer.json is read by load_tokenizer.
"""

import pathlib

from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers import companions
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.interop.huggingface.parameter_names import Architecture

FILE = "tokenizer.json"


def check_files(folder: pathlib.Path, architecture: Architecture) -> None:
  """Raises InteropError if there is no file with the model's ids and rules."""
  if (folder / FILE).is_file():
    return
  models = list(folder.glob("*.model"))
  remedy = f"if possible, {companions.convert_command(folder)}"
  if architecture.positions_after_pad and models:
    raise InteropError(
      f"{folder} has no tokenizer.json, and the ids of its sentencepiece model "
      f"are not those of {architecture.model_type}: {remedy}."
    )
  if (folder / "vocab.json").is_file():
    raise InteropError(
      f"{folder} has no tokenizer.json but vocab.json and merges.txt, which "
      f"are incomplete: {remedy}."
    )
  if not (folder / "vocab.txt").is_file() and not models:
    raise InteropError(
      f"{folder} has no tokenizer: expected tokenizer.json, vocab.txt or a "
      "sentencepiece .model beside config.json."
    )
  name = companions.read_stated(folder).get("tokenizer_class", "")
  if models and "Tokenizer" in name:
    raise InteropError(
      f"{folder} has no tokenizer.json, and tokenizer_class={name!r} adds its "
      f"own rules to {models[0].name}: {remedy}."
    )


def check_added(folder: pathlib.Path, made: Tokenizer) -> None:
  """Raises InteropError if files other than tokenizer.json add tokens."""
  known = map(made.tokens, range(made.vocab_size))
  if clause := companions.left_out(folder, known):
    raise InteropError(f"{folder}: {clause}.")


def log_special(
  folder: pathlib.Path, definition: dict, made: Tokenizer, log
) -> None:
  """Logs tokens that only transformers recognises in texts.

  They are special in the file, or [unusedN] that were added to the vocabulary.
  """
  usual = {made.tokens(index) for index in made.special}
  others = [
    token["content"]
    for token in definition["added_tokens"]
    if token["special"] or token["content"].startswith("[unused")
    if not token["content"].startswith("[unused row")
  ]
  others = [name for name in others if name not in usual]
  if others:
    log(
      f"{folder}: {', '.join(others[:5])}"
      f"{f' and {len(others) - 5} more' * (len(others) > 5)} in a text "
      "is ordinary text in maskedlm, but a special token in transformers"
    )
