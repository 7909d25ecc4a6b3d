"""Imports a Hugging Face directory as a workdir: `maskedlm import --from hf`.

The steps are: config.json -> heads -> tensors -> tokenizer -> checkpoint 0.
Nothing in the directory is executed: no pickle, no custom model code.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flax import traverse_util

from maskedlm.core.counts import first_names
from maskedlm.core.errors import InteropError
from maskedlm.core.task import Params
from maskedlm.inference import token_model
from maskedlm.interop import labels, own_task
from maskedlm.interop.heads import param_shapes
from maskedlm.interop.huggingface import (
  class_of_tensors,
  config_json,
  match_tensors,
  sentence_transformers,
  tensors,
  tokenizer_files,
  weights,
)
from maskedlm.interop.huggingface.parameter_names import Architecture, Names
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_options
from maskedlm.training.checkpoints import write

Log = Callable[[str], None]


class Imported(NamedTuple):
  """An imported model."""

  params: Params  # numpy, float32.
  cfg: EncoderConfig
  task: Mapping[str, Any]  # meta["task"] without "encoder".
  length: int  # The largest number of tokens of a text that it reads at once.
  heldout: Mapping[str, float]  # Thresholds and metrics; {} if unknown.


def import_model(
  folder: pathlib.Path,
  out: pathlib.Path,
  *,
  part: str = "",
  name: str = "",
  log: Log,
) -> Imported:
  """Reads a directory, writes the workdir `out` and returns the model.

  Args:
    folder: contains config.json, safetensors and tokenizer files.
    out: receives checkpoints/0, tokenizer/ and config.json.
    part: "" for everything; "encoder" for the encoder and its pooler, without
      heads and the pooling of sentence-transformers.
    name: what the model is called from then on; default: the folder's name.
    log: called with a line for everything that is left out or differs.

  Raises:
    InteropError: the directory can't be read, or `out` exists.
    ConfigError: `folder` or `out` is a remote address.
    CorpusError: the tokenizer is broken.
  """
  with output_options.new_folder(out) as unfinished:
    name, top_folder = name or folder.resolve().name, folder
    folder = sentence_transformers.encoder_folder(top_folder)
    config = config_json.load_config(folder)
    architecture = config_json.architecture_of(config, folder)
    sentences = None
    if part != "encoder":
      sentences = sentence_transformers.read_pooling(top_folder, log)
    model = read_model(folder, config, part=part, log=log)
    if sentences:
      sentence_transformers.check_dim(sentences, model.cfg.width, top_folder)
    tokenizer = tokenizer_files.import_tokenizer(
      folder,
      unfinished / "tokenizer",
      vocab_size=model.cfg.vocab_size,
      lowercase=sentence_transformers.lowercases(folder),
      log=log,
    )
    pad = config_json.pad_id(config)
    if architecture.positions_after_pad and pad != tokenizer.special.pad:
      raise InteropError(
        f"{folder}/config.json: positions are counted from pad_token_id={pad}, "
        f"but the tokenizer's [PAD] is {tokenizer.special.pad}: make both what "
        "the model was trained with."
      )
    cfg = tokenizer_files.with_pairs(
      model.cfg, folder, tokenizer.special, log=log
    )
    task = {**model.task, "encoder": dataclasses.asdict(cfg)}
    if sentences:
      task["sentences"] = sentences._asdict()
    write.write_workdir(
      unfinished,
      model.params,
      task,
      heldout=model.heldout,
      origin={"imported": {"directory": name, **config}},
      corpus="imported",
      tokenizer=tokenizer.sha256,
      log=log,
    )
  if "mlm_head" not in model.params and "kind" not in task:
    log(
      "no MLM head: fill-mask and evaluate won't work until one is trained, by "
      + token_model.how_to_train_a_head(out)
    )
  return model._replace(cfg=cfg)


def read_model(
  folder: pathlib.Path, config: Mapping[str, Any], *, part: str, log: Log
) -> Imported:
  """Returns the model in a directory whose config.json is `config`.

  Raises:
    InteropError: the architecture or head is not supported, or tensors don't
      fit (match_tensors.py).
  """
  architecture = config_json.architecture_of(config, folder)
  with tensors.open_tensors(folder) as opened:
    stored = match_tensors.without_prefix(opened, architecture, folder, log)
    return _read_model(folder, config, architecture, stored, part=part, log=log)


def _read_model(
  folder: pathlib.Path,
  config: Mapping[str, Any],
  architecture: Architecture,
  stored: tensors.Tensors,
  *,
  part: str,
  log: Log,
) -> Imported:
  if config.get("tie_word_embeddings") and not architecture.tied:
    table = f"{architecture.prefix}{architecture.encoder['embeddings/token']}"
    architecture = architecture._replace(
      tied={f"{table}.weight": "lm_head.weight"}
    )
    log(f"{folder}: the head's table is its embeddings'; here it has a copy")
  find = match_tensors.make_finder(stored, architecture)
  if part != "encoder":
    config = class_of_tensors.with_class(
      config, architecture, find, where=folder, log=log
    )
  cfg = config_json.parse_encoder_config(config, architecture, folder)
  if cfg.causal:
    log(f"{folder}: a decoder; as an encoder, tokens read both of their sides")
    cfg = dataclasses.replace(cfg, causal=False)
  class_name = (config.get("architectures") or [""])[0]
  ending = config_json.class_ending(config, architecture)
  task_name = "" if part == "encoder" else labels.TASKS.get(ending, "")
  # The encoder's positions, unless the directory states fewer.
  stated = sentence_transformers.stated_length(folder) or cfg.max_positions
  length = min(stated, cfg.max_positions)
  task: dict[str, Any] = {"objective": f"hf:{class_name or 'unknown'}"}
  if task_name:
    task |= labels.read_task(config, task_name, length, folder)
    for note in labels.notes(task):
      log(note)
  heldout: Mapping[str, float] = {}
  if task_name or (part != "encoder" and ending == "Model"):
    task, heldout = own_task.read_own_task(
      config, task, max_positions=cfg.max_positions, log=log
    )
  if "auto_map" in config:
    log(f"{folder}: custom code (auto_map) is not run")
  if task_name:
    heads = _fine_tuned_heads(architecture, ending, class_name, folder)
  else:
    heads = match_tensors.pretrained_heads(
      architecture, find, all_of_them=part != "encoder"
    )
  subtrees = _subtrees(heads)
  if part != "encoder" and not task_name:
    named = _subtrees(architecture.heads.get(ending, {}))
    if absent := sorted(set(named) - set(subtrees)):
      log(f"{folder} has no {', '.join(absent)}, unlike a {class_name}")
  if "mlm_head" in subtrees:
    config_json.check_mlm_head(cfg, architecture)
  # One output for each label, or for a score.
  outputs = len(task.get("about", {}).get("labels", ("score",)))
  shapes = traverse_util.flatten_dict(
    param_shapes(cfg, subtrees, outputs), sep="/"
  )
  plan = weights.plan_weights(
    architecture,
    cfg,
    {path: x.shape for path, x in shapes.items()},
    heads=heads,
    bare=False,
    pad=config_json.pad_id(config),
  )
  params, unread = match_tensors.read_params(
    plan, stored, find, architecture, folder
  )
  if unread:
    log(
      "left out, not part of an imported head: "
      f"{first_names(unread)} ({len(unread)} tensors)"
    )
  params, cfg = _without_zero_type(params, cfg)
  length = task.get("length", length)
  return Imported(params, cfg, task, length, heldout)


def _fine_tuned_heads(
  architecture: Architecture, ending: str, class_name: str, folder: pathlib.Path
):
  if ending not in architecture.heads:
    raise InteropError(
      f"{folder}: the head of {class_name} is not supported; import the "
      "encoder alone with --part encoder."
    )
  return architecture.heads[ending]


def _subtrees(heads: Names) -> list[str]:
  return sorted({module.partition("/")[0] for module in heads})


def _without_zero_type(
  params: Params, cfg: EncoderConfig
) -> tuple[Params, EncoderConfig]:
  """Returns params and cfg without a single token type of zeros.

  Such a row, which exporter.py adds, has no effect.
  """
  embeddings = dict(params["encoder"]["embeddings"])
  if cfg.type_vocab_size != 1 or embeddings["token_type"]["embedding"].any():
    return params, cfg
  del embeddings["token_type"]
  encoder = {**params["encoder"], "embeddings": embeddings}
  return (
    {**params, "encoder": encoder},
    dataclasses.replace(cfg, type_vocab_size=0),
  )
