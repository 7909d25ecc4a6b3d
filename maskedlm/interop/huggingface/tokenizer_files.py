"""Imports a directory's tokenizer, and exports one for AutoTokenizer.

Ids are the same in both libraries. transformers adds special tokens by the
file's post-processor; in maskedlm each task adds its own [CLS] and [SEP].
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import tokenizers
from tokenizers import processors

from maskedlm.core.counts import first_names
from maskedlm.core.errors import InteropError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.tokenizers import lost_text, tokenizer
from maskedlm.data.tokenizers.libraries import FILE_NAMES, without_training
from maskedlm.data.tokenizers.sentencepiece_model import CONTROL, encode_piece
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.interop.huggingface import json_files, unigram_json
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files

FILE, SENTENCEPIECE = FILE_NAMES


class PairTemplate(NamedTuple):
  """The form of a pair, [CLS] A [SEP] B [SEP]."""

  separators: int  # Number of [SEP] between A and B.
  second_type: int  # The token type of B and its [SEP]; others have type 0.


def import_tokenizer(
  folder: pathlib.Path,
  out: pathlib.Path,
  *,
  vocab_size: int,
  lowercase: bool = False,
  log: Callable[[str], None],
) -> Tokenizer:
  """Saves a directory's tokenizer to `out`, with an id for each of the rows.

  If the model has more rows than the tokenizer tokens, the others become tokens
  [unused row N], which are never predicted. Added tokens without a row are left
  out.

  Args:
    vocab_size: the model's rows.
    lowercase: whether text is lowercased before it is tokenized.
    log: called with a line if files disagree, or differ from transformers.

  Raises:
    InteropError: the tokenizer has more tokens than the model, or is a
      sentencepiece model that can't be lowercased.
    CorpusError: as for tokenizer.load_tokenizer.
  """
  loaded = tokenizer.load_tokenizer(folder)
  for note in loaded.notes:
    log(f"{folder}: {note}")
  if causes := lost_text.describe_tokenizer(loaded):
    log(f"{folder}: its tokenizer loses {causes}")
  loaded.save(out)
  if definition := json_files.read_object(out / FILE):
    if lowercase:
      steps = [{"type": "Lowercase"}, definition.get("normalizer")]
      sequence = {"type": "Sequence", "normalizers": [s for s in steps if s]}
      definition["normalizer"] = sequence
    added = definition.get("added_tokens", ())
    if lacking := [x["content"] for x in added if x["id"] >= vocab_size]:
      log(f"{folder}: no row in the model, so left out: {first_names(lacking)}")
    definition["added_tokens"] = [
      *(token for token in added if token["id"] < vocab_size),
      *map(_make_unused_token, range(loaded.vocab_size, vocab_size)),
    ]
    output_files.write_text(out / FILE, json.dumps(definition))
    _log_special(folder, definition, loaded, log)
    loaded = tokenizer.load_tokenizer(out)
    loaded.save(out)  # In the form that its sha256 refers to.
  elif lowercase and "A" in loaded.normalize("A"):
    raise InteropError(
      f"{folder}: do_lower_case=true, but its sentencepiece model keeps "
      "capitals: save a tokenizer.json with transformers' AutoTokenizer."
    )
  elif unused := range(loaded.vocab_size, vocab_size):
    content = (out / SENTENCEPIECE).read_bytes()
    for index in unused:
      content += encode_piece(
        _make_unused_token(index)["content"], kind=CONTROL
      )
    output_files.write_bytes(out / SENTENCEPIECE, content)
    loaded = tokenizer.load_tokenizer(out)
  if loaded.vocab_size > vocab_size:
    raise InteropError(
      f"the tokenizer in {folder} has {loaded.vocab_size} tokens, the model "
      f"{vocab_size} rows: it belongs to another model."
    )
  return loaded


def _log_special(
  folder: pathlib.Path, definition: dict, loaded: Tokenizer, log
) -> None:
  """Logs special tokens, and added [unusedN], that are only transformers'."""
  known = {loaded.tokens(index) for index in loaded.special}
  unsupported = [
    token["content"]
    for token in definition["added_tokens"]
    if token["special"] or token["content"].startswith("[unused")
    if not token["content"].startswith("[unused row")
    if token["content"] not in known
  ]
  if unsupported:
    log(
      f"{folder}: {first_names(unsupported)} in a text is ordinary text in "
      "maskedlm, but a special token in transformers"
    )


def with_pairs(
  cfg: EncoderConfig, folder: pathlib.Path, special, *, log: Callable
) -> EncoderConfig:
  """Returns cfg with the form of pairs that the directory's tokenizer has.

  It may differ from the architecture's: there are RoBERTas with BERT's
  tokenizer, and BERTs with XLM-R's. Without a post-processor, cfg is unchanged.

  Args:
    cfg: the config, with the architecture's form of pairs.
    folder: a directory with or without tokenizer.json.
    log: called with a line if the tokenizer's form is not supported.
  """
  definition = json_files.read_object(folder / FILE)
  if not definition.get("post_processor"):
    return cfg
  form = _pair_form(_make_library(definition), special)
  if form is None:
    log(
      f"{folder / FILE} doesn't turn texts into [CLS] A [SEP] and pairs into "
      "[CLS] A [SEP] B [SEP], as maskedlm does: predictions will differ"
    )
    return cfg
  config = json_files.read_object(folder / "tokenizer_config.json")
  stated = config.get("model_input_names")
  has_types = stated is None or "token_type_ids" in stated
  separators, second = form
  types = cfg.pair_types if second and has_types else 1
  return dataclasses.replace(cfg, pair_separators=separators, pair_types=types)


def export_tokenizer(
  folder: pathlib.Path,
  out: pathlib.Path,
  *,
  cfg: EncoderConfig,
  length: int = 0,
) -> None:
  """Writes tokenizer.json and its two configs for transformers.

  A text becomes [CLS] A [SEP], and a pair [CLS] A [SEP] B [SEP], with cfg's
  number of [SEP] between the two and of token types.

  Args:
    folder: tokenizer/ of a workdir.
    length: the largest number of tokens in a row; 0 = the encoder's positions.
  """
  loaded = tokenizer.open_tokenizer(folder)
  names = {n: loaded.tokens(i) for n, i in loaded.special._asdict().items()}
  if (folder / FILE).is_file():
    definition = parse_json((folder / FILE).read_text("utf-8"))
  else:
    path = next(folder.glob("*.model"))
    definition = unigram_json.to_tokenizer_json(
      path.read_bytes(), mask=names["mask"], where=path
    )
  library = _make_library(definition)
  takes_types = cfg.num_types > 1
  form = PairTemplate(cfg.pair_separators, int(takes_types))
  if _pair_form(library, loaded.special) != form:
    library.post_processor = _make_template(names, loaded.special, form)
  # Its own `save` raises a bare Exception.
  output_files.write_text(out / FILE, library.to_str(pretty=True))
  special = {f"{name}_token": token for name, token in names.items()}
  inputs = ["input_ids", "token_type_ids", "attention_mask"]
  config = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    **special,
    "model_max_length": length or cfg.max_positions,
    "model_input_names": [n for n in inputs if takes_types or "type" not in n],
    "clean_up_tokenization_spaces": False,
  }
  for name, content in (
    ("tokenizer_config.json", config),
    ("special_tokens_map.json", special),
  ):
    output_files.write_json(out / name, content)


def _make_unused_token(index: int) -> dict:
  return {
    "id": index,
    "content": f"[unused row {index}]",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
  }


def _make_library(definition: dict) -> tokenizers.Tokenizer:
  """Returns the tokenizer, without sentence-transformers' padding."""
  definition = without_training(definition)
  return tokenizers.Tokenizer.from_str(json.dumps(definition))


def _pair_form(library, special) -> PairTemplate | None:
  """Returns the form of pairs that a tokenizer makes; None if not supported."""
  try:
    a = library.encode("a", add_special_tokens=False).ids
    single, pair = library.encode("a"), library.encode("a", "a")
  except Exception:  # The library raises nothing more specific.
    return None
  separators = len(pair.ids) - 2 * len(a) - 2
  first = [special.cls, *a, *[special.sep] * separators]
  second = [*a, special.sep]
  last_type = pair.type_ids[-1]
  if (
    separators < 0
    or single.ids != [special.cls, *a, special.sep]
    or pair.ids != [*first, *second]
    or pair.type_ids != [0] * len(first) + [last_type] * len(second)
  ):
    return None
  return PairTemplate(separators, last_type)


def _make_template(names, special, form: PairTemplate):
  cls, sep = names["cls"], names["sep"]
  second = form.second_type
  first = [f"{cls}:0", "$A:0", *[f"{sep}:0"] * form.separators]
  return processors.TemplateProcessing(
    single=f"{cls}:0 $A:0 {sep}:0",
    pair=[*first, f"$B:{second}", f"{sep}:{second}"],
    special_tokens=[(cls, special.cls), (sep, special.sep)],
  )
