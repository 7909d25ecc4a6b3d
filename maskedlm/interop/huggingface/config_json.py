"""Converts between transformers' config.json and EncoderConfig.

option_names.py lists the options of each architecture.
"""

import pathlib
from collections.abc import Mapping
from typing import Any

from maskedlm.core import options
from maskedlm.core.errors import InteropError
from maskedlm.interop.huggingface import encoder_fields, json_files
from maskedlm.interop.huggingface.option_names import (
  ACTIVATIONS,
  BESIDE_ENCODER,
  DISENTANGLED,
  FIELDS,
  FIXED,
  POOLED,
  POOLINGS,
  REQUIRED,
)
from maskedlm.interop.huggingface.parameter_names import (
  ARCHITECTURES,
  Architecture,
)
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import buckets


def load_config(folder: pathlib.Path) -> dict[str, Any]:
  """Loads the config.json of a directory.

  Raises:
    InteropError: there is no directory or no such file, it is not JSON, or the
      directory has a PEFT adapter.
    ConfigError: the directory is a remote address.
  """
  buckets.folder(folder)
  path = folder / "config.json"
  if not folder.is_dir():
    raise InteropError(
      f"{folder} is not a directory: expected one with config.json, "
      "model.safetensors and the tokenizer's files, or hf:NAME, a model on the "
      "Hugging Face Hub."
    )
  if (folder / "adapter_config.json").exists():
    raise InteropError(
      f"{folder}/adapter_config.json: a PEFT adapter, which can't be imported: "
      "the files beside it are another model. Merge both with peft's "
      "merge_and_unload() and save_pretrained."
    )
  if not path.is_file():
    cached = sorted(folder.glob("snapshots/*/config.json"))
    raise InteropError(
      f"{folder} has no config.json: expected a directory that transformers' "
      "save_pretrained wrote, or a downloaded model"
      f"{f', such as {cached[0].parent}' if cached else ''}."
    )
  return json_files.read_object(path)


def architecture_of(config: Mapping[str, Any], where) -> Architecture:
  """Returns the Architecture of a config.json; errors name `where`.

  Raises:
    InteropError: the model_type is not supported.
  """
  name = config.get("model_type")
  if name not in ARCHITECTURES:
    code = " It needs its own code (auto_map), which is never run."
    raise InteropError(
      f"{where}: model_type={name!r} is not supported; known: "
      f"{', '.join(ARCHITECTURES)}.{code * ('auto_map' in config)}"
    )
  return ARCHITECTURES[name]


def parse_encoder_config(
  config: Mapping[str, Any], architecture: Architecture, where
) -> EncoderConfig:
  """Returns the EncoderConfig of a config.json.

  Raises:
    InteropError: fields are missing or not supported; the message lists all.
  """
  name = architecture.model_type
  values: dict[str, Any] = {**FIXED[name], "dtype": "float32", "remat": "none"}
  problems: list[str] = []
  for ours, (theirs, *default) in FIELDS[name].items():
    value = config.get(theirs)
    if value is None and not default:
      problems.append(f"{theirs} is missing")
      continue
    values[ours] = default[0] if value is None else value
    if ours not in ("activation", "local_window") and (
      wanted := options.expected(EncoderConfig, ours, values[ours])
    ):
      problems.append(f"{theirs}={value!r:.40}, expected {wanted}")
  for theirs, required in REQUIRED[name].items():
    if config.get(theirs, required) != required:
      problems.append(f"{theirs}={config[theirs]!r}, {required!r} is supported")
  if str(values["activation"]) not in ACTIVATIONS:
    problems.append(
      f"the activation {values['activation']!r:.40}, "
      f"{', '.join(ACTIVATIONS)} are supported"
    )
  if not problems and values["width"] % values["num_heads"]:
    problems.append(
      f"a width of {values['width']} for {values['num_heads']} attention "
      "heads, expected a multiple of them"
    )
  if not problems and architecture.positions_after_pad:
    pad = pad_id(config)
    positions = values["max_positions"] - (pad + 1)
    if not 0 <= pad < values["vocab_size"]:
      problems.append(f"pad_token_id={pad!r:.40}, expected an id")
    elif wanted := options.expected(EncoderConfig, "max_positions", positions):
      problems.append(
        f"max_position_embeddings={values['max_positions']} leaves {positions} "
        f"positions after pad_token_id={pad}, expected {wanted}"
      )
    values["max_positions"] = positions
  if not problems and name in encoder_fields.READERS:
    values |= encoder_fields.READERS[name](config, values, problems)
    is_odd = values["width"] // values["num_heads"] % 2
    if is_odd and values["position"] == "rope":
      problems.append(
        f"hidden_size={values['width']} for {values['num_heads']} attention "
        "heads: rotary positions need an even head size"
      )
  if class_ending(config, architecture) in POOLED and name in POOLINGS:
    known = POOLINGS[name]
    pooling = config.get("classifier_pooling", next(iter(known)))
    values["row_pool"] = known.get(pooling)
    if not values["row_pool"]:
      problems.append(
        f"classifier_pooling={pooling!r}, {', '.join(known)} are supported"
      )
  if problems:
    raise InteropError(f"{where}/config.json: {'; '.join(problems)}.")
  values["activation"] = ACTIVATIONS[values["activation"]]
  values["pooler"] = _read_pooler(config, architecture, where)
  if values.get("embedding_width") == values["width"]:
    values["embedding_width"] = 0
  return EncoderConfig(**values)


def class_ending(config: Mapping[str, Any], architecture: Architecture) -> str:
  """Returns the suffix of the class name, such as "ForMaskedLM"."""
  name = (config.get("architectures") or [""])[0]
  return name.removeprefix(architecture.class_prefix)


def _read_pooler(config, architecture: Architecture, where) -> str:
  """Returns the pooler of the class, or of that for sequence classification."""
  ending = class_ending(config, architecture)
  if (architecture.model_type, ending) != ("electra", "ForMultipleChoice"):
    return architecture.poolers.get("ForSequenceClassification", "tanh")
  activation = config.get("summary_activation", "gelu")
  summary = config.get("summary_type", "first"), config.get("summary_use_proj")
  if activation not in ("gelu", "tanh") or summary not in (
    ("first", True),
    ("first", None),
  ):
    raise InteropError(
      f"{where}/config.json: the summary {summary}, {activation}; supported: "
      "summary_type='first' through a layer, with gelu or tanh."
    )
  return activation


def pad_id(config: Mapping[str, Any]) -> int:
  """Returns the id of <pad>, after which RoBERTa's positions begin."""
  pad = config.get("pad_token_id")
  return 1 if pad is None else pad


def format_config(
  cfg: EncoderConfig, architecture: Architecture, special
) -> dict:
  """Returns the fields of config.json for the encoder and its special tokens.

  `unsupported_options` must return [] for it.
  """
  name = architecture.model_type
  config = {
    "model_type": name,
    **{
      theirs: getattr(cfg, ours) for ours, (theirs, *_) in FIELDS[name].items()
    },
    "pad_token_id": special.pad,
    "tie_word_embeddings": cfg.tied,
  }
  config[FIELDS[name]["activation"][0]] = encoder_fields.activation_name(cfg)
  if "type_vocab_size" in config:  # transformers needs a row (exporter.py).
    config["type_vocab_size"] = max(cfg.type_vocab_size, 1)
  if name == "electra":
    config["embedding_size"] = cfg.embedding_size
    config["summary_type"], config["summary_use_proj"] = "first", True
    config["summary_activation"] = cfg.pooler
  if name != "bert" and name != "electra":
    config |= {"bos_token_id": special.cls, "eos_token_id": special.sep}
  if architecture.positions_after_pad:
    config["max_position_embeddings"] += special.pad + 1
  if name in POOLINGS:
    names = {ours: theirs for theirs, ours in POOLINGS[name].items()}
    config["classifier_pooling"] = names[cfg.row_pool]
  if name == "modernbert":
    config |= encoder_fields.write_modern(cfg, special)
  if name in ("eurobert", "llama", "esm"):
    config["mask_token_id"] = special.mask
  if name == "esm":
    config["position_embedding_type"] = "rotary"
  if name == "deberta-v2":
    config |= DISENTANGLED
  if name in ("eurobert", "llama"):
    config |= {
      "num_key_value_heads": cfg.key_value_heads,
      "rope_theta": cfg.rope_theta,  # Read by transformers 4.
      "rope_parameters": encoder_fields.write_rope(cfg.rope_theta),
    }
  return config


def unsupported_options(
  cfg: EncoderConfig, architecture: Architecture
) -> list[str]:
  """Returns the encoder's options that an architecture doesn't support."""
  fixed = FIXED[architecture.model_type]
  required = {n: v for n, v in fixed.items() if n not in BESIDE_ENCODER}
  unsupported = [
    f"model.{name}={getattr(cfg, name)!r} (only {value!r})"
    for name, value in required.items()
    if getattr(cfg, name) != value
  ]
  has_width = "embedding_width" in FIELDS[architecture.model_type]
  if cfg.embedding_size != cfg.width and not has_width:
    unsupported.append(
      f"model.embedding_width={cfg.embedding_width} (only width)"
    )
  pools = POOLINGS.get(architecture.model_type, {}).values()
  if pools and cfg.row_pool not in pools:
    unsupported.append(f"row_pool={cfg.row_pool!r} (only {', '.join(pools)})")
  return unsupported


def check_mlm_head(cfg: EncoderConfig, architecture: Architecture) -> None:
  """Raises InteropError if transformers' MLM head has other options."""
  expected = {
    "activation": architecture.mlm_activation or cfg.activation,
    "tied": FIXED[architecture.model_type].get("tied", cfg.tied),
    "shifted": False,
  }
  for name, value in expected.items():
    if getattr(cfg, name) != value:
      raise InteropError(
        f"the MLM head of {architecture.model_type} always has "
        f"model.{name}={value}, this one has {getattr(cfg, name)}; for the "
        "encoder alone, add --part=encoder."
      )
