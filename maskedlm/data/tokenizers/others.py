"""Reads tokenizers that others made, once; maskedlm saves them in its own form.

A tokenizer.json, a vocab.txt or a sentencepiece .model is read as it is. Other
files, and those that the files beside them contradict, are converted to a
tokenizer.json by transformers (extra `hf`), whose class decides which file
counts, or refused.
"""

import json
import os
import pathlib
import shutil
import tempfile
import unicodedata
from typing import Any, NamedTuple

from maskedlm.core.counts import first_names
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import (
  libraries,
  repairs,
  sentencepiece_model,
  vocab_txt,
)
from maskedlm.data.tokenizers.libraries import Backend
from maskedlm.runtime import buckets

CONFIG = "tokenizer_config.json"
_BESIDE = (
  *(CONFIG, "special_tokens_map.json", "added_tokens.json"),
  "config.json",  # The model's.
)
_TOKENS = (
  *("added_tokens_decoder", "additional_special_tokens"),
  "extra_special_tokens",
)
_PARTS = ("vocab.json", "merges.txt")  # Of BPEs without a tokenizer.json.
# The names by which transformers finds files.
_NAMES = {
  ".json": "tokenizer.json",
  ".txt": "vocab.txt",
  ".model": "sentencepiece.bpe.model",
}
_SHIFTED = ("xlm-roberta", "XLMRoberta", "camembert", "Camembert")
# Classes that read the file as it is.
_GENERIC = ("TokenizersBackend", "PreTrainedTokenizer")
# Classes that read a vocab.txt as vocab_txt.py does.
_OF_TXT = (
  *("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
  "EsmTokenizer",
)


# Roles and the names of options, of which the last one counts.
_ROLES = (
  *(("cls", "bos"), ("sep", "eos")),
  *((role, role) for role in libraries.Special._fields),
)


class Beside(NamedTuple):
  """What the files say that transformers writes beside a tokenizer's file."""

  options: dict[str, Any]  # Of tokenizer_config.json, special_tokens_map.json.
  # Tokens that they add to the vocabulary or make special: text -> id, or None.
  added: dict[str, str | None]
  class_name: str  # tokenizer_class, or the model_type in config.json; or "".

  @property
  def roles(self) -> dict[str, str]:
    """The tokens that they name as pad, unk, cls, sep and mask."""
    return {
      role: token
      for role, name in _ROLES
      if (token := _text_of(self.options.get(f"{name}_token")))
    }

  @property
  def shifts_ids(self) -> bool:
    """Whether a model's ids are not those of its sentencepiece model."""
    return self.class_name.startswith(_SHIFTED)

  @property
  def adds_rules(self) -> bool:
    """Whether a class has rules beside its sentencepiece model."""
    if self.class_name.startswith(("deberta-v2", "DebertaV2")):
      return bool(self.options.get("split_by_punct"))
    return "Tokenizer" in self.class_name


def read(path: str | os.PathLike, *, lowercase: bool | None = None) -> Backend:
  """Returns tokenizer.load_tokenizer's backend; arguments and errors are its.

  Its notes say how the file is read.
  """
  place = buckets.local_copy(path, beside=(*_BESIDE, *_PARTS))
  file = _file_in(place) if place.is_dir() else place
  content = libraries.read_content(file)
  beside = _read_beside(file.parent)
  if file.name in _PARTS:
    why = [f"{' and '.join(_PARTS)} don't say how text is split"]
  elif (
    place.is_dir()
    and file.suffix == ".model"
    and (beside.shifts_ids or beside.adds_rules)
  ):
    why = [f"the class {beside.class_name!r} adds its own rules to it"]
  else:
    backend = _read_alone(content, file, lowercase, beside)
    why = _contradictions(backend, beside, file)
  if why:
    read_as: dict[str, Any] = {}
    if file.suffix == ".txt":  # Whose case transformers doesn't guess.
      for name, shows in _SHOWN.items():
        shown = shows(backend)
        if shown is not None and beside.options.get(name) is None:
          read_as[name] = shown
      if not beside.class_name:
        read_as["tokenizer_type"] = "bert"
    backend = _convert(file, "; ".join(why), beside, **read_as)
  _check_roles(backend, beside, file)
  if lowercase not in (None, _lowercases(backend)):
    raise CorpusError(
      f"tokenizer.lowercase={lowercase}, but {file}, or {CONFIG} beside it, "
      f"{'keeps capitals in' if lowercase else 'lowercases'} text by itself: "
      "leave the option out."
    )
  return backend


def _file_in(folder: pathlib.Path) -> pathlib.Path:
  for pattern in (*libraries.FILE_NAMES, "*.model", "vocab.txt", _PARTS[0]):
    if matches := sorted(folder.glob(pattern)):
      return matches[0]
  raise CorpusError(
    f"tokenizer {folder}: the directory has no tokenizer.json, *.model or "
    "vocab.txt; give the path of the file."
  )


def _read_alone(
  content: bytes, file: pathlib.Path, lowercase: bool | None, beside: Beside
) -> Backend:
  """Reads a file; of those beside it, a vocab.txt needs do_lower_case."""
  if file.suffix == ".json":
    return repairs.read_tokenizer_json(content, file, beside.roles)
  if file.suffix == ".txt":
    stated = beside.options.get("do_lower_case")
    stated = stated if isinstance(stated, bool) else None
    definition, note, renamed = vocab_txt.to_json(
      content, file, lowercase, stated, beside.roles
    )
    backend = repairs.read_tokenizer_json(definition, file)
    return backend._replace(notes=(note,), renamed=renamed)
  if file.suffix == ".model":
    backend = sentencepiece_model.read(content, file)
    if any("▁" in token for token in backend.tokens):
      repairs.check_word_starts(backend, file)
    missing = [token for token in beside.added if token not in backend.tokens]
    note = f"left out are tokens of the files beside it: {first_names(missing)}"
    return backend._replace(notes=(note,)) if missing else backend
  raise CorpusError(
    f"tokenizer {file}: the name must end in .json (Hugging Face), .model "
    "(sentencepiece) or .txt (BERT's vocabulary)."
  )


def _convert(
  file: pathlib.Path, why: str, beside: Beside, **options
) -> Backend:
  """Returns the tokenizer that transformers makes of a file and those beside.

  Nothing is fetched, and no code beside the file is run. A .model is refused
  if other ids would be made of it.
  """
  if file.suffix == ".model" and not beside.shifts_ids:
    raise CorpusError(
      f"tokenizer {file}: {why}; give the path of the file in a folder of its "
      "own to use it as it is, or fetch a tokenizer.json."
    )
  os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
  try:
    import transformers
  except ImportError as error:
    raise CorpusError(
      f"tokenizer {file}: {why}; transformers converts it: pip install "
      "'maskedlm[hf]'."
    ) from error
  files = {name: name for name in _BESIDE}
  if file.name in _PARTS:
    files |= {name: name for name in _PARTS}
  else:
    files[file.name] = _NAMES[file.suffix]
  with tempfile.TemporaryDirectory() as folder:
    for name, usual in files.items():
      if file.with_name(name).is_file():
        shutil.copyfile(file.with_name(name), f"{folder}/{usual}")
    try:
      library = transformers.AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, **options
      )
      content = library.backend_tokenizer.to_str()
    except Exception as error:  # It raises whatever comes up.
      problem = " ".join(str(error).split())[:200]
      raise CorpusError(
        f"tokenizer {file}: {why}, and transformers {transformers.__version__} "
        f"makes no tokenizer.json of it ({type(error).__name__}: {problem}): "
        "fetch or save one."
      ) from error
  backend = repairs.read_tokenizer_json(content, file)
  if missing := _missing_tokens(backend, beside):
    raise CorpusError(
      f"tokenizer {file}: transformers leaves out {first_names(missing)}, or "
      "gives other ids than the files beside it: correct those files."
    )
  note = f"{why}: converted by transformers"
  return backend._replace(notes=(note, *backend.notes))


def _read_beside(folder: pathlib.Path) -> Beside:
  config, special_map, added, model = (
    libraries.parse_object((folder / name).read_bytes(), folder / name)
    if (folder / name).is_file()
    else {}
    for name in _BESIDE
  )
  options = special_map | config
  # What is of a wrong type contradicts the vocabulary, and transformers fails.
  tokens: dict[str, str | None] = {x: str(index) for x, index in added.items()}
  for key in _TOKENS:
    listed = options.get(key) or {}
    if not isinstance(listed, dict):
      listed = dict(enumerate(listed if isinstance(listed, list) else [listed]))
    for index, token in listed.items():
      text = str(_text_of(token))
      tokens[text] = index if key == _TOKENS[0] else tokens.get(text)
  names = (options.get("tokenizer_class"), model.get("tokenizer_class"))
  class_name = next(filter(None, (*names, model.get("model_type"))), "")
  return Beside(options, tokens, str(class_name))


def _text_of(token: Any) -> Any:
  """Returns the text of a token, which is a string or a dict with options."""
  return token.get("content") if isinstance(token, dict) else token


def _lowercases(backend: Backend) -> bool:
  return "A" not in backend.normalize("A")


def _strips_accents(backend: Backend) -> bool:
  shown = unicodedata.normalize("NFD", backend.normalize("é"))
  return "e" in shown and "\u0301" not in shown


# Options of tokenizer_config.json, as a tokenizer shows them.
_SHOWN = {
  "do_lower_case": _lowercases,
  "strip_accents": _strips_accents,
  "tokenize_chinese_chars": lambda backend: " " in backend.normalize("a中a"),
  "add_prefix_space": lambda backend: (
    None  # All words begin alike.
    if backend.kind == "wordpiece"
    else bool(backend.starts_word[backend.encode("a")[0][:1]].all())
  ),
}


def _contradictions(
  backend: Backend, beside: Beside, file: pathlib.Path
) -> list[str]:
  """Returns clauses on how the files beside a tokenizer contradict it."""
  class_name = beside.class_name.removesuffix("Fast")
  options, clauses = beside.options, []
  if class_name in _GENERIC and file.suffix == ".json":
    options = {}
  for name, shows in _SHOWN.items():
    asked = options.get(name)
    if name == "strip_accents" and name in options and asked is None:
      asked = options.get("do_lower_case")  # null follows the case.
    shown = shows(backend)
    if shown is not None and asked not in (None, shown):
      stated = f"{name}={json.dumps(options[name])}"
      clauses.append(f"{CONFIG} states {stated}, unlike {file.name}")
  missing = _missing_tokens(backend, beside)
  if missing and file.suffix != ".model":  # For which they are a note.
    clauses.append(f"files beside it add {first_names(missing)}")
  is_other = "Tokenizer" in class_name and class_name not in _OF_TXT
  if file.suffix == ".txt" and is_other:
    clauses.append(f"the class {class_name!r} may add its own rules to it")
  return clauses


def _missing_tokens(backend: Backend, beside: Beside) -> list[str]:
  """Returns the added tokens that a vocabulary lacks, or has at other ids."""
  ids = {token: str(index) for index, token in enumerate(backend.tokens)}
  ids |= {old: ids[new] for old, new in backend.renamed.items()}
  return [
    token
    for token, index in beside.added.items()
    if token not in ids or index not in (None, ids[token])
  ]


def _check_roles(backend: Backend, beside: Beside, file: pathlib.Path) -> None:
  """Raises CorpusError if another [CLS], [SEP] or [MASK] is stated.

  Those that a sentencepiece model lacks are appended to it.
  """
  for role in ("cls", "sep", "mask"):
    stated = _text_of(beside.options.get(f"{role}_token"))
    token = backend.tokens[getattr(backend.special, role)]
    stated = backend.renamed.get(stated, stated)
    if stated and stated != token and backend.file == "tokenizer.json":
      names = ", ".join(libraries.SPECIAL_NAMES[role])
      raise CorpusError(
        f"tokenizer {file}: the {role}_token is {stated!r} in the files beside "
        f"it, but maskedlm uses {token!r}, the first of {names} in the "
        "vocabulary: rename the tokens in the tokenizer's files."
      )
