"""Reads and writes the pooling of sentence-transformers directories.

modules.json lists the steps that turn a text into a vector, each with its own
folder: the transformer, the pooling, and perhaps a normalization. They make up
the `SentencePooling` in meta["task"], which `maskedlm embed` uses.
"""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from maskedlm.core.errors import InteropError
from maskedlm.core.parse_json import parse_json
from maskedlm.inference.vectors.vectors import SentencePooling
from maskedlm.interop.huggingface import json_files
from maskedlm.runtime import output_files

FILE = "modules.json"
PROMPTS = "config_sentence_transformers.json"
# The transformer's file: its length, and whether text is lowercased first.
CONFIG = "sentence_bert_config.json"
# Supported poolings -> their names in older files; new files use our names.
POOLS = {
  "mean": "pooling_mode_mean_tokens",
  "cls": "pooling_mode_cls_token",
  "max": "pooling_mode_max_tokens",
}
TYPES = ("Transformer", "Pooling", "Normalize")  # The last is optional.
_NO_LIMIT = 10**9
_ENCODER = "the encoder alone, with mean pooling: --part encoder"


def encoder_folder(folder: pathlib.Path) -> pathlib.Path:
  """Returns the folder with config.json: `folder` or the first module's.

  Raises:
    InteropError: modules.json is malformed.
  """
  modules = _read_modules(folder)
  within = modules[0]["path"] if modules else ""
  return folder if (folder / "config.json").is_file() else folder / within


def read_pooling(
  folder: pathlib.Path, log: Callable[[str], None]
) -> SentencePooling | None:
  """Returns the pooling that a directory states; None if it doesn't state any.

  `log` is called with a line for what is left out, and for prompts.

  Raises:
    InteropError: the pooling is not supported, or a file is malformed.
  """
  modules = _read_modules(folder)
  types = [_short_type(module["type"]) for module in modules]
  if "Pooling" not in types:  # Cross-encoders, SPLADE and others.
    if unknown := [t for t in types if t != TYPES[0]]:
      log(f"{folder / FILE}: left out: {', '.join(unknown)}")
    return None
  if types not in (list(TYPES), list(TYPES[:2])):
    raise InteropError(
      f"{folder / FILE} has {', '.join(types)}; supported: "
      f"{', '.join(TYPES[:2])} and perhaps {TYPES[2]}. Import {_ENCODER}."
    )
  paths = [folder / module["path"] / "config.json" for module in modules[1:]]
  if not paths[0].is_file():
    raise InteropError(
      f"{paths[0]} is missing: fetch it, or import {_ENCODER}."
    )
  pooling, *norms = map(json_files.read_object, paths)
  inputs = [n.get("module_input_name", "sentence_embedding") for n in norms]
  if inputs not in ([], ["sentence_embedding"]):
    raise InteropError(
      f"{folder / FILE}: Normalize of {inputs[0]}; only sentence_embedding "
      f"is supported. Import {_ENCODER}."
    )
  prompts, default = _read_prompts(folder)
  if prompts and pooling.get("include_prompt") is False:
    raise InteropError(
      f"{paths[0]}: include_prompt=False; maskedlm pools the tokens of a "
      f"prompt, too. Import {_ENCODER}."
    )
  if default:
    log(
      f"{folder}: sentence-transformers puts {prompts[default]!r} before each "
      "text; maskedlm doesn't: add it to your texts"
    )
  elif prompts:
    listed = ", ".join(f"{text!r} ({name})" for name, text in prompts.items())
    log(
      f"{folder}: the model expects a prompt before a text, {listed}; add it "
      "to your texts"
    )
  return SentencePooling(
    pool=_read_pool(pooling, paths[0]),
    normalize=bool(norms),
    length=stated_length(encoder_folder(folder)),
    prompts=prompts,
    default_prompt=default,
    truncate_dim=_read_truncate_dim(folder),
  )


def stated_length(folder: pathlib.Path) -> int:
  """Returns the largest number of tokens that an encoder's folder states, or 0.

  sentence-transformers' max_seq_length comes before the tokenizer's
  model_max_length (max_len in old files), as in the library. Huge numbers, such
  as the 1e30 that transformers writes for no limit, state nothing.
  """
  of_tokenizer = json_files.read_object(folder / "tokenizer_config.json")
  for length in (
    json_files.read_object(folder / CONFIG).get("max_seq_length"),
    of_tokenizer.get("model_max_length"),
    of_tokenizer.get("max_len"),
  ):
    if isinstance(length, (int, float)) and 2 < length < _NO_LIMIT:
      return int(length)
  return 0


def lowercases(folder: pathlib.Path) -> bool:
  """Returns whether text is lowercased before tokenization."""
  return json_files.read_object(folder / CONFIG).get("do_lower_case") is True


def write_modules(
  out: pathlib.Path, sentences: SentencePooling, *, width: int
) -> None:
  """Writes the files that make the exported model one of sentence-transformers.

  The pooling's length must not be 0; `width` is D, the encoder's.
  """
  types = [*TYPES[:2], *[TYPES[2]] * sentences.normalize]
  paths = ["", *(f"{i}_{name}" for i, name in enumerate(types) if i)]
  library = "sentence_transformers.models"
  modules = [
    {"idx": i, "name": str(i), "path": path, "type": f"{library}.{name}"}
    for i, (name, path) in enumerate(zip(types, paths, strict=True))
  ]
  output_files.write_json(out / FILE, modules)
  modes = {old: name == sentences.pool for name, old in POOLS.items()}
  pooling = {"word_embedding_dimension": width, **modes}
  for path, config in zip(paths[1:], (pooling, {}), strict=False):
    (out / path).mkdir()
    output_files.write_json(out / path / "config.json", config)
  lengths = {"max_seq_length": sentences.length, "do_lower_case": False}
  output_files.write_json(out / CONFIG, lengths)
  prompts = {
    "prompts": dict(sentences.prompts),
    "default_prompt_name": sentences.default_prompt,
    "truncate_dim": sentences.truncate_dim,
  }
  if stated := {name: value for name, value in prompts.items() if value}:
    output_files.write_json(out / PROMPTS, stated)


def _read_modules(folder: pathlib.Path) -> list[dict[str, str]]:
  """Returns the entries of modules.json; [] if there is no such file."""
  path = folder / FILE
  if not path.is_file():
    return []
  try:
    modules = parse_json(path.read_text("utf-8"))
    entries = [{n: str(m[n]) for n in ("path", "type")} for m in modules]
  except (ValueError, TypeError, KeyError) as error:
    raise InteropError(
      f"{path} can't be read ({error!r}); expected a list of objects with path "
      "and type. Fetch it again."
    ) from None
  for module in entries:
    if pathlib.PurePath(module["path"]).name != module["path"]:
      raise InteropError(
        f"{path} names {module['path']!r}: expected a folder beside it."
      )
  return entries


def _short_type(name: str) -> str:
  """Returns the last part of a name in sentence_transformers, or the name."""
  package, _, last = name.rpartition(".")
  return last if package.startswith("sentence_transformers") else name


def _read_pool(config: Mapping[str, Any], where: pathlib.Path) -> str:
  modes = config.get("pooling_mode")
  if modes is None:
    olds = {old: name for name, old in POOLS.items()}
    modes = [
      olds.get(name, name)
      for name, on in config.items()
      if name.startswith("pooling_mode_") and on
    ] or ["mean"]
  modes = [modes] if isinstance(modes, str) else [*map(str, modes)]
  if len(modes) != 1 or modes[0] not in POOLS:
    raise InteropError(
      f"{where}: the pooling {' with '.join(modes)}; "
      f"supported: one of {', '.join(POOLS)}. Import {_ENCODER}."
    )
  return modes[0]


def _read_prompts(folder: pathlib.Path) -> tuple[dict[str, str], str]:
  """Returns ({name: prompt}, the name of the prompt of every text or "")."""
  config = json_files.read_object(folder / PROMPTS)
  prompts = config.get("prompts")
  prompts = prompts if isinstance(prompts, dict) else {}
  texts = {name: str(text) for name, text in prompts.items() if text}
  default = config.get("default_prompt_name", "")
  return texts, default if default in texts else ""


def check_dim(sentences: SentencePooling, width: int, folder) -> None:
  """Raises InteropError if truncate_dim is above the width of the encoder."""
  if sentences.truncate_dim > width:
    raise InteropError(
      f"{folder / PROMPTS}: truncate_dim={sentences.truncate_dim}, but the "
      f"vectors have {width} numbers; expected at most that: correct it."
    )


def _read_truncate_dim(folder: pathlib.Path) -> int:
  dim = json_files.read_object(folder / PROMPTS).get("truncate_dim")
  if dim is not None and (type(dim) is not int or dim < 1):
    raise InteropError(
      f"{folder / PROMPTS}: truncate_dim={dim!r:.40}; expected a whole "
      "number above 0: correct it."
    )
  return dim or 0
