"""Exports a checkpoint as a Hugging Face directory: `maskedlm export --to hf`.

The steps are: the part to export -> architecture and class -> tensors,
config.json, tokenizer, the files of sentence-transformers, and model card.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from flax import traverse_util

from maskedlm.core.errors import InteropError, check_name
from maskedlm.inference.vectors import vectors
from maskedlm.interop import export_source, labels, own_task
from maskedlm.interop.export_source import ExportSource
from maskedlm.interop.huggingface import (
  config_json,
  hub,
  model_card,
  sentence_transformers,
  tensors,
  tokenizer_files,
  weights,
)
from maskedlm.interop.huggingface.parameter_names import (
  ARCHITECTURES,
  Architecture,
)
from maskedlm.runtime import output_files, output_options

_REMEDY = (
  "export the encoder alone with --part=encoder, or all of it with --to=onnx "
  "or --to=stablehlo."
)


def export_huggingface(
  path: pathlib.Path,
  out: pathlib.Path,
  *,
  part: str = "",
  architecture: str = "",
  push: str = "",
  public: bool = False,
  log: Callable[[str], None],
) -> str:
  """Writes the directory; returns the name of the class that loads it.

  Args:
    path: a workdir or a checkpoint.
    out: receives config.json, model.safetensors, tokenizer.json, README.md, ...
    part: see export_source.open_export_source.
    architecture: a key of ARCHITECTURES; "" = the one that fits.
    push, public: the name to upload it as, if any, and whether all may read it.
    log: called with a line for each part that is left out.

  Raises:
    InteropError: `out` exists, or transformers has no such model.
    ConfigError, StorageError: it can't be uploaded; then `out` isn't written.
    CheckpointError, ConfigError: the checkpoint can't be read.
  """
  with output_options.new_folder(out) as unfinished:
    opened = export_source.open_export_source(path, part=part, log=log)
    opened = _without_pairs(opened, log)
    converted = convert(opened, architecture, log)
    tensors.write_tensors(unfinished / tensors.FILE, converted.tensors)
    write_config(unfinished, converted)
    write_tokenizer(unfinished, converted.opened)
    card = model_card.format_model_card(
      converted.opened, converted.class_name, path=push
    )
    (unfinished / "README.md").write_text(card, "utf-8")
    if push:
      hub.push(unfinished, push, public=public)
  return converted.class_name


def _without_pairs(opened: ExportSource, log) -> ExportSource:
  """Returns the model without what transformers' rotary encoders lack.

  These are token types and the NSP head. The vector of the first type is added
  to every token's, but not in the MLM head's table.
  """
  cfg, params = opened.cfg, dict(opened.params)
  if cfg.position != "rope":
    return opened
  if params.pop("nsp_head", None) is not None:
    params.pop("pooler", None)
    log(
      "left out: pooler and nsp_head; no rotary model of transformers has one"
    )
  if cfg.type_vocab_size:
    embeddings = dict(params["encoder"]["embeddings"])
    table = embeddings["token"]["embedding"]
    first, *others = embeddings.pop("token_type")["embedding"]
    embeddings["token"] = {"embedding": table + first}
    params["encoder"] = {**params["encoder"], "embeddings": embeddings}
    if "mlm_head" in params and cfg.tied:
      params["mlm_head"] = {**params["mlm_head"], "embedding": table}
      cfg = dataclasses.replace(cfg, tied=False)
    if others:
      log("left out: the vector of a pair's second text; texts are read alone")
    cfg = dataclasses.replace(cfg, type_vocab_size=0)
  return opened._replace(params=params, cfg=cfg)


class Converted(NamedTuple):
  """A model as transformers has it."""

  opened: ExportSource  # Without what the class lacks.
  architecture: Architecture
  class_name: str
  tensors: Mapping[str, np.ndarray]


def convert(
  opened: ExportSource, architecture: str, log: Callable[[str], None]
) -> Converted:
  """Returns the model in transformers' form; arguments and errors as above."""
  chosen = choose_architecture(opened, architecture)
  ending = choose_class_ending(opened)
  if ending == "Model" or ending not in chosen.poolers:
    opened = _without_foreign_pooler(opened, chosen, log)
  arrays = to_tensors(opened, chosen, ending)
  return Converted(opened, chosen, chosen.class_prefix + ending, arrays)


def write_config(folder: pathlib.Path, converted: Converted) -> None:
  """Writes config.json into a folder."""
  opened, special = converted.opened, converted.opened.tokenizer.special
  config = {
    "architectures": [converted.class_name],
    **config_json.format_config(opened.cfg, converted.architecture, special),
    **labels.write_task(opened.task),
    **own_task.write_own_task(opened.task, opened.meta.get("heldout", {})),
  }
  output_files.write_json(folder / "config.json", config)


def write_tokenizer(folder: pathlib.Path, opened: ExportSource) -> None:
  """Writes the tokenizer's files and those of sentence-transformers."""
  tokenizer_files.export_tokenizer(
    opened.tokenizer_dir,
    folder,
    cfg=opened.cfg,
    length=opened.task.get("length", 0),
  )
  if "kind" not in opened.task or "sentences" in opened.task:
    sentences = vectors.sentence_pooling(opened.task, opened.cfg)
    sentence_transformers.write_modules(
      folder, sentences, width=opened.cfg.width
    )


def choose_architecture(opened: ExportSource, name: str = "") -> Architecture:
  """Returns the named architecture, or the one that fits the encoder.

  Raises:
    InteropError: the architecture is unknown, or lacks an encoder's option.
  """
  if name:
    check_name("--architecture", name, ARCHITECTURES, InteropError)
  chosen = ARCHITECTURES[name or _fitting_architecture(opened)]
  misfits = config_json.unsupported_options(opened.cfg, chosen)
  if misfits:
    raise InteropError(
      f"transformers' {chosen.model_type} has no counterpart for "
      f"{', '.join(misfits)}; export it with --to=onnx or --to=stablehlo."
    )
  return chosen


def _fitting_architecture(opened: ExportSource) -> str:
  cfg = opened.cfg
  if cfg.norm_kind == "rms":
    return "llama" if cfg.causal else "eurobert"
  if cfg.position == "disentangled":
    return "deberta-v2"
  if cfg.position == "rope":
    return "modernbert" if cfg.mlp == "gated" else "esm"
  if (
    cfg.embedding_size != cfg.width
    or cfg.pooler == "gelu"
    or "discriminator_head" in opened.params
  ):
    return "electra"
  if cfg.pooler == "relu" and not cfg.type_vocab_size:
    return "distilbert"
  if cfg.pair_separators == 2 and cfg.type_vocab_size < 2:
    return "xlm-roberta" if opened.tokenizer.kind == "unigram" else "roberta"
  return "bert"


def _without_foreign_pooler(
  opened: ExportSource, architecture: Architecture, log
) -> ExportSource:
  """Returns the model without a pooler that transformers' class lacks."""
  class_pooler = architecture.poolers.get("Model")
  if "pooler" not in opened.params or opened.cfg.pooler == class_pooler:
    return opened
  log(f"left out: the pooler, which {architecture.class_prefix}Model lacks")
  params = {n: x for n, x in opened.params.items() if n != "pooler"}
  return opened._replace(params=params)


def choose_class_ending(opened: ExportSource) -> str:
  """Returns the suffix of the class name, such as "ForMaskedLM"."""
  task_name = opened.task.get("kind")
  if task_name in labels.CLASSES:
    return labels.CLASSES[task_name]
  heads = opened.params.keys()
  if "discriminator_head" in heads or {"mlm_head", "nsp_head"} <= heads:
    return "ForPreTraining"
  if "mlm_head" in heads:
    return "ForCausalLM" if opened.cfg.causal else "ForMaskedLM"
  return "ForNextSentencePrediction" if "nsp_head" in heads else "Model"


def to_tensors(
  opened: ExportSource, architecture: Architecture, ending: str
) -> dict[str, np.ndarray]:
  """Returns {name: tensor} of everything that is exported.

  Raises:
    InteropError: the class lacks one of the model's heads, the model lacks one
      of the class's, or the two differ.
  """
  name = architecture.class_prefix + ending
  if ending not in architecture.heads:
    raise InteropError(f"transformers has no matching {name}; {_REMEDY}")
  # A pooler is kept if the encoder class has one, even if this class doesn't.
  heads = {**architecture.heads["Model"], **architecture.heads[ending]}
  flat = traverse_util.flatten_dict(opened.params, sep="/")
  modules = {path.rpartition("/")[0] for path in flat} | flat.keys()
  missing = [m for m in architecture.heads[ending] if m not in modules]
  if missing and ending != "Model":
    raise InteropError(
      f"{name} has {', '.join(missing)}, which this model lacks; {_REMEDY}"
    )
  pooler = architecture.poolers.get(ending, opened.cfg.pooler)
  if (architecture.model_type, ending) == ("electra", "ForMultipleChoice"):
    pooler = opened.cfg.pooler  # config.json states it.
  if "pooler" in opened.params and opened.cfg.pooler != pooler:
    raise InteropError(
      f"{name} has a {pooler} pooler, this model {opened.cfg.pooler}; {_REMEDY}"
    )
  if "mlm_head" in opened.params:
    config_json.check_mlm_head(opened.cfg, architecture)
  plan = weights.plan_weights(
    architecture,
    opened.cfg,
    {path: x.shape for path, x in flat.items()},
    heads=heads,
    bare=ending == "Model",
    pad=opened.tokenizer.special.pad,
  )
  arrays: dict[str, Any] = {}
  for weight in plan:
    arrays |= weights.split_weight(weight, flat[weight.path])
  table = architecture.encoder.get("embeddings/token_type")
  if table and not opened.cfg.type_vocab_size:
    # transformers always has a token type; zeros have no effect.
    prefix = "" if ending == "Model" else architecture.prefix
    zeros = np.zeros((1, opened.cfg.embedding_size), np.float32)
    arrays[f"{prefix}{table}.weight"] = zeros
  return dict(sorted(arrays.items()))
