"""A tokenizer's files: theirs into a workdir, ours as AutoTokenizer reads them.

The ids are the same on both sides. What surrounds them is in the file there
(its post-processor); here each task puts its own [CLS] and [SEP].
"""

import dataclasses
import json
import pathlib
import shutil
from collections.abc import Callable
from typing import NamedTuple

import tokenizers
from tokenizers import processors

from maskedlm.core.errors import InteropError
from maskedlm.data.tokenizers import tokenizer
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.interop.huggingface import (tokenizer_options, unigram_json)
from maskedlm.interop.huggingface.parameter_names import Architecture
from maskedlm.interop.huggingface.tokenizer_options import FILE
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files


class PairTemplate(NamedTuple):
  """[CLS] A [SEP] B [SEP]."""

  separators: int  # Between the two.
  second_type: int  # Of B and its [SEP]; that of the others is 0.


def import_tokenizer(
  folder: pathlib.Path,
  out: pathlib.Path,
  *,
  vocab_size: int,
  architecture: Architecture,
  lowercase: bool = False,
  log: Callable[[str], None],
) -> Tokenizer:
  """Copies a directory's tokenizer into `out`, as tokenizer.load reads it.

  Ids that the model has beyond the tokenizer's get tokens [unused row N],
  which are never predicted.

  Args:
    folder: the directory.
    out: the folder to write to.
    vocab_size: the model's.
    architecture: the model's.
    lowercase: whether text is lowercased before all else.
    log: gets a line if the directory's files disagree.

  Raises:
    InteropError: none that can be read, or it has more tokens than the model.
    CorpusError: a broken file, or special tokens that are missing.
  """
  stated = tokenizer_options.read_options(folder)
  tokenizer_options.check_files(folder, architecture, stated)
  tokenizer_options.check_names(folder, stated)
  made = tokenizer.load(folder)
  tokenizer_options.check_special(folder, stated, made)
  made.save(out)
  if made.vocab_size > vocab_size:
    raise InteropError(
      f"the tokenizer in {folder} has {made.vocab_size} tokens, the model "
      f"{vocab_size} rows: it belongs to another model."
    )
  if made.vocab_size < vocab_size:
    tokenizer_options.check_added(folder, stated, made)
  if definition := output_files.read_json(out / FILE):
    definition = tokenizer_options.apply_options(
      definition, stated, folder, architecture, log
    )
    if lowercase:
      steps = [{"type": "Lowercase"}, definition.get("normalizer")]
      steps = {"type": "Sequence", "normalizers": [s for s in steps if s]}
      definition["normalizer"] = steps
    definition["added_tokens"] = [
      *definition.get("added_tokens", ()),
      *map(_unused, range(made.vocab_size, vocab_size)),
    ]
    (out / FILE).write_text(json.dumps(definition, ensure_ascii=False), "utf-8")
    made = tokenizer.load(out)
    tokenizer_options.log_special(folder, definition, made, log)
    shutil.rmtree(out)
    made.save(out)  # In the form that its SHA-256 is of.
  if made.vocab_size != vocab_size:
    raise InteropError(
      f"the tokenizer in {folder} has {made.vocab_size} tokens, the model "
      f"{vocab_size} rows, and the file can't be filled up: save it as "
      "tokenizer.json with as many tokens."
    )
  return made


def with_pairs(
  cfg: EncoderConfig, folder: pathlib.Path, special, *, log: Callable
) -> EncoderConfig:
  """cfg with pairs as the directory's tokenizer makes them.

  Which need not be those of the architecture: there are RoBERTas with BERT's
  tokenizer, and BERTs with XLM-R's. A file that doesn't say leaves cfg as is.

  Args:
    cfg: with the architecture's own.
    folder: with tokenizer.json, or without.
    special: the tokenizer's Special.
    log: gets a line if no row of ours is like those of the file.
  """
  definition = output_files.read_json(folder / FILE)
  if not definition.get("post_processor"):
    return cfg
  form = _pair_form(_library(definition), special)
  if form is None:
    log(
      f"{folder / FILE} doesn't make [CLS] A [SEP] of a text and [CLS] A [SEP] "
      "B [SEP] of a pair, as it is here: predictions differ from theirs"
    )
    return cfg
  config = output_files.read_json(folder / "tokenizer_config.json")
  stated = config.get("model_input_names")
  has_types = stated is None or "token_type_ids" in stated
  separators, second = form
  types = cfg.pair_types if second and has_types else 1
  return dataclasses.replace(cfg, pair_separators=separators, pair_types=types)


def export_tokenizer(
  folder: pathlib.Path, out: pathlib.Path, *, cfg: EncoderConfig
) -> None:
  """Writes tokenizer.json and its two configs for transformers.

  A text becomes [CLS] A [SEP], a pair [CLS] A [SEP] B [SEP], with as many
  [SEP] between the two, and as many types, as cfg says.

  Args:
    folder: tokenizer/ of a workdir.
    out: the directory to write to.
    cfg: the model's.
  """
  made = tokenizer.load(folder)
  names = {n: made.tokens(i) for n, i in made.special._asdict().items()}
  if (folder / FILE).is_file():
    definition = json.loads((folder / FILE).read_text("utf-8"))
  else:
    path = next(folder.glob("*.model"))
    definition = unigram_json.to_tokenizer_json(
      path.read_bytes(), mask=names["mask"], where=path
    )
  library = _library(definition)
  takes_types = cfg.num_types > 1
  form = PairTemplate(cfg.pair_separators, int(takes_types))
  if _pair_form(library, made.special) != form:
    library.post_processor = _template(names, made.special, form)
  library.save(str(out / FILE))
  special = {f"{name}_token": token for name, token in names.items()}
  inputs = ["input_ids", "token_type_ids", "attention_mask"]
  config = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    **special,
    "model_max_length": cfg.max_positions,
    "model_input_names": [n for n in inputs if takes_types or "type" not in n],
    "clean_up_tokenization_spaces": False,
  }
  for name, content in (
    ("tokenizer_config.json", config),
    ("special_tokens_map.json", special),
  ):
    output_files.write_json(out / name, content)


def _unused(index: int) -> dict:
  return {
    "id": index,
    "content": f"[unused row {index}]",
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
  }


def _library(definition: dict) -> tokenizers.Tokenizer:
  """What surrounds texts as they are: sentence-transformers' files also pad."""
  definition = definition | {"truncation": None, "padding": None}
  return tokenizers.Tokenizer.from_str(json.dumps(definition))


def _pair_form(library, special) -> PairTemplate | None:
  """What the file's own post-processor makes; None: no row of ours."""
  try:
    a = library.encode("a", add_special_tokens=False).ids
    single, pair = library.encode("a"), library.encode("a", "a")
  except Exception:  # The library raises no narrower class.
    return None
  separators = len(pair.ids) - 2 * len(a) - 2
  first = [special.cls, *a, *[special.sep] * separators]
  second = [*a, special.sep]
  kind = pair.type_ids[-1]
  if (
    separators < 1
    or single.ids != [special.cls, *a, special.sep]
    or pair.ids != [*first, *second]
    or pair.type_ids != [0] * len(first) + [kind] * len(second)
  ):
    return None
  return PairTemplate(separators, kind)


def _template(names, special, form: PairTemplate):
  cls, sep = names["cls"], names["sep"]
  between = " ".join([f"{sep}:0"] * form.separators)
  second = form.second_type
  return processors.TemplateProcessing(
    single=f"{cls}:0 $A:0 {sep}:0",
    pair=f"{cls}:0 $A:0 {between} $B:{second} {sep}:{second}",
    special_tokens=[(cls, special.cls), (sep, special.sep)],
  )
