"""What a directory states of its tokenizer beside tokenizer.json.

tokenizer_config.json and others may say what that file doesn't: options, names,
tokens that were added. It is as in transformers; what can't be is an error.
"""

import pathlib

from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers.libraries import NAMES
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.interop.huggingface.parameter_names import Architecture
from maskedlm.runtime import output_files

FILE = "tokenizer.json"
ROLES = ("cls", "sep", "mask")  # Of Special, those that are seen.
# A step of tokenizer.json, its type, and the classes of transformers that make
# it of what tokenizer_config.json states: {name there: (name in the step, what
# it is where nothing is stated)}.
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
# Those that read a vocab.txt as it is read here.
OF_VOCAB = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")


def read_options(folder: pathlib.Path) -> dict:
  """What tokenizer_config.json says; as in transformers, others beside it."""
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
  """InteropError where there is no file that has the model's own ids."""
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
      f"don't say all: {_convert(folder)}"
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
      f"{folder} has no tokenizer.json, and tokenizer_class={name!r} has rules "
      f"of its own beside {file}: where it can, {_convert(folder)}"
    )


def check_names(folder: pathlib.Path, stated: dict) -> None:
  """InteropError where [CLS], [SEP] or [MASK] has a name that we don't know."""
  for name in ROLES:
    token, known = _content(stated.get(f"{name}_token")), getattr(NAMES, name)
    if token and token not in known:
      raise InteropError(
        f"{folder}: the {name}_token is {token!r}, known are "
        f"{', '.join(known)}: rename it in the tokenizer's files."
      )


def check_special(folder: pathlib.Path, stated: dict, made: Tokenizer) -> None:
  """InteropError where [CLS], [SEP] or [MASK] is another token there."""
  for name in ROLES:
    token = _content(stated.get(f"{name}_token"))
    found = made.tokens(getattr(made.special, name))
    if token and token != found:
      raise InteropError(
        f"{folder}: the {name}_token is {token!r}, but of the vocabulary "
        f"{found!r} is taken here: rename {found!r} in the tokenizer's files."
      )


def check_added(folder: pathlib.Path, stated: dict, made: Tokenizer) -> None:
  """InteropError where the model's last rows are tokens of another file."""
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
      f"{folder}: tokens that added_tokens.json, tokenizer_config.json or "
      f"special_tokens_map.json has, and no {FILE}: "
      f"{', '.join(dict.fromkeys(absent))}; {_convert(folder)}"
    )


def log_special(
  folder: pathlib.Path, definition: dict, made: Tokenizer, log
) -> None:
  """A line of special tokens that are found in texts there, and not here."""
  usual = {made.tokens(index) for index in made.special}
  others = [
    token["content"]
    for token in definition["added_tokens"]
    if token["special"] and not token["content"].startswith("[unused")
  ]
  others = [name for name in others if name not in usual]
  if others:
    log(
      f"{folder}: a text that spells {', '.join(others[:5])}"
      f"{f' or {len(others) - 5} more' * (len(others) > 5)} is ordinary text "
      "here; there, it is a special token"
    )


def _content(token) -> str | None:
  """Of a token that is stated by its name, or with its options."""
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
  """The definition, with the options that tokenizer_config.json states.

  transformers makes these steps of them, whatever tokenizer.json has. Where
  nothing is stated it takes its own defaults, but here tokenizer.json counts.
  """
  class_name = config.get("tokenizer_class") or architecture.class_prefix
  for step, kind, classes, names in STATED:
    found = definition.get(step) or {}
    if found.get("type") != kind or not class_name.startswith(classes):
      continue
    stated, unstated = {}, {}
    for theirs, (ours, default) in names.items():
      # Of strip_accents null is a value: as the case.
      if theirs in config and (
        config[theirs] is not None or theirs == "strip_accents"
      ):
        if config[theirs] != found.get(ours):
          stated[ours] = config[theirs]
      elif found.get(ours) != default:
        unstated[theirs] = default
    if stated:
      log(
        f"{folder}: tokenizer_config.json and {FILE} disagree; it is "
        f"{_list(stated)} of the former, as in transformers"
      )
    if unstated:
      log(
        f"{folder}: tokenizer_config.json doesn't state {', '.join(unstated)}, "
        f"and transformers takes {_list(unstated)}; here it is as the "
        "tokenizer's own file has it: if the model was trained otherwise, "
        "state it there"
      )
    definition = definition | {step: found | stated}
  return definition


def _list(options: dict) -> str:
  return ", ".join(f"{name}={x}" for name, x in options.items())
