"""Reads what a directory states about its tokenizer outside tokenizer.json.

tokenizer_config.json and other files may add options, names and tokens. They
are interpreted as in transformers; unsupported ones raise an InteropError.
"""

import pathlib

from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers.libraries import SPECIAL_NAMES
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.interop.huggingface.parameter_names import Architecture
from maskedlm.runtime import output_files

FILE = "tokenizer.json"
ROLES = ("cls", "sep", "mask")  # Fields of Special whose tokens are checked.
# A step of tokenizer.json, its type, prefixes of transformers' classes that
# build it from tokenizer_config.json, and {option there: (name in the step,
# default)}.
STATED = (
  (
    "normalizer",
    "BertNormalizer",
    ("Bert", "DistilBert", "Electra"),
    {
      "do_lower_case": ("lowercase", True),
      "strip_accents": ("strip_accents", None),
      "tokenize_chinese_chars": ("handle_chinese_chars", True),
    },
  ),
  (
    "pre_tokenizer",
    "ByteLevel",
    ("Roberta", "GPT2", "Bart", "Longformer"),
    {"add_prefix_space": ("add_prefix_space", False)},
  ),
)
# Classes that read a vocab.txt as maskedlm does.
OF_VOCAB = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")


def read_options(folder: pathlib.Path) -> dict:
  """Returns the content of tokenizer_config.json, completed by other files."""
  class_name = output_files.read_json(folder / "config.json").get(
    "tokenizer_class"
  )
  return {
    **({"tokenizer_class": class_name} if class_name else {}),
    **output_files.read_json(folder / "special_tokens_map.json"),
    **output_files.read_json(folder / "tokenizer_config.json"),
  }


def _convert(folder: pathlib.Path) -> str:
  return (
    f'python -c "from transformers import AutoTokenizer as T; '
    f"T.from_pretrained('{folder}').save_pretrained('{folder}')\" makes one."
  )


def check_files(
  folder: pathlib.Path, architecture: Architecture, stated: dict
) -> None:
  """Raises InteropError if there is no file with the model's ids and rules."""
  if (folder / FILE).is_file():
    return
  models = list(folder.glob("*.model"))
  if architecture.positions_after_pad and models:
    raise InteropError(
      f"{folder} has no tokenizer.json, and the ids of its sentencepiece model "
      f"are not those of {architecture.model_type}: {_convert(folder)}"
    )
  if (folder / "vocab.json").is_file():
    raise InteropError(
      f"{folder} has no tokenizer.json but vocab.json and merges.txt, which "
      f"are incomplete: {_convert(folder)}"
    )
  if not (folder / "vocab.txt").is_file() and not models:
    raise InteropError(
      f"{folder} has no tokenizer: expected tokenizer.json, vocab.txt or a "
      "sentencepiece .model beside config.json."
    )
  name = stated.get("tokenizer_class") or ""
  if name and (models or name.removesuffix("Fast") not in OF_VOCAB):
    file = models[0].name if models else "vocab.txt"
    raise InteropError(
      f"{folder} has no tokenizer.json, and tokenizer_class={name!r} adds its "
      f"own rules to {file}: if possible, {_convert(folder)}"
    )


def check_names(folder: pathlib.Path, stated: dict) -> None:
  """Raises InteropError if [CLS], [SEP] or [MASK] has an unknown name."""
  for name in ROLES:
    token, known = (
      _content(stated.get(f"{name}_token")),
      getattr(SPECIAL_NAMES, name),
    )
    if token and token not in known:
      raise InteropError(
        f"{folder}: the {name}_token is {token!r}; known: "
        f"{', '.join(known)}: rename it in the tokenizer's files."
      )


def check_special(folder: pathlib.Path, stated: dict, made: Tokenizer) -> None:
  """Raises InteropError if maskedlm uses another [CLS], [SEP] or [MASK]."""
  for name in ROLES:
    token = _content(stated.get(f"{name}_token"))
    found = made.tokens(getattr(made.special, name))
    if token and token != found:
      raise InteropError(
        f"{folder}: the {name}_token is {token!r}, but maskedlm would use "
        f"{found!r}: rename {found!r} in the tokenizer's files."
      )


def check_added(folder: pathlib.Path, stated: dict, made: Tokenizer) -> None:
  """Raises InteropError if files other than tokenizer.json add tokens."""
  lists = (
    output_files.read_json(folder / "added_tokens.json"),
    (stated.get("added_tokens_decoder") or {}).values(),
    stated.get("additional_special_tokens") or (),
    _values(stated.get("extra_special_tokens") or ()),
  )
  known = set(map(made.tokens, range(made.vocab_size)))
  named = [_content(token) for tokens in lists for token in tokens]
  if absent := [token for token in named if token not in known]:
    raise InteropError(
      f"{folder}: tokens in added_tokens.json, tokenizer_config.json or "
      f"special_tokens_map.json, but not in {FILE}: "
      f"{', '.join(dict.fromkeys(absent))}; {_convert(folder)}"
    )


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


def _content(token) -> str | None:
  """Returns the text of a token, which is a string or a dict with options."""
  return token.get("content") if isinstance(token, dict) else token


def _values(tokens):
  return tokens.values() if isinstance(tokens, dict) else tokens


def apply_options(
  definition: dict,
  config: dict,
  folder: pathlib.Path,
  architecture: Architecture,
  log,
) -> dict:
  """Returns the definition with the options stated in tokenizer_config.json.

  transformers builds the steps in STATED from these options and ignores
  tokenizer.json's. For options that are not stated, it uses its defaults, but
  maskedlm keeps tokenizer.json's values. Differences are logged.
  """
  class_name = config.get("tokenizer_class") or architecture.class_prefix
  has_file = (folder / FILE).is_file()
  for step, kind, classes, names in STATED:
    found = definition.get(step) or {}
    if found.get("type") != kind or not class_name.startswith(classes):
      continue
    stated, unstated = {}, {}
    for theirs, (ours, default) in names.items():
      # null is a value of strip_accents, which means to follow lowercase.
      if theirs in config and (
        config[theirs] is not None or theirs == "strip_accents"
      ):
        if config[theirs] != found.get(ours):
          stated[ours] = config[theirs]
      elif found.get(ours) != default:
        unstated[theirs] = default
    if stated:
      log(
        f"{folder}: tokenizer_config.json and {FILE} disagree; used as in "
        f"transformers: {_list(stated)} of the former"
      )
    if unstated:
      kept = f"the value in {FILE}" if has_file else "what vocab.txt suggests"
      log(
        f"{folder}: tokenizer_config.json doesn't state {', '.join(unstated)}, "
        f"so transformers uses {_list(unstated)}; maskedlm uses {kept}: "
        "if the model was trained otherwise, state it in tokenizer_config.json"
      )
    definition = definition | {step: found | stated}
  return definition


def _list(options: dict) -> str:
  return ", ".join(f"{name}={x}" for name, x in options.items())
