"""Suggests the option that has another name in other libraries."""

from collections.abc import Collection

from maskedlm.core.errors import did_you_mean

# Names of transformers, fairseq and others -> the last part of the option's.
NAMES = {
  "batch": "batch_size",
  "bf16": "dtype",
  "clip": "clip_norm",
  "cut_frac": "warmup_steps",
  "depth": "num_layers",
  "fp16": "dtype",
  "grad_clip": "clip_norm",
  "gradient_accumulation_steps": "accumulate",
  "gradient_checkpointing": "remat",
  "heads": "num_heads",
  "hidden_size": "width",
  "intermediate_size": "mlp_width",
  "layers": "num_layers",
  "lr": "learning_rate",
  "lr_scheduler_type": "schedule",
  "max_grad_norm": "clip_norm",
  "max_length": "length",
  "max_position_embeddings": "max_positions",
  "max_seq_length": "length",
  "max_steps": "num_steps",
  "mlm_probability": "mask_rate",
  "num_attention_heads": "num_heads",
  "num_hidden_layers": "num_layers",
  "num_key_value_heads": "num_kv_heads",
  "num_train_epochs": "epochs",
  "num_train_steps": "num_steps",
  "per_device_train_batch_size": "batch_size",
  "save_steps": "checkpoint_every",
  "seq_len": "length",
  "steps": "num_steps",
  "vocab": "vocab_size",
  "warmup": "warmup_steps",
  "warmup_ratio": "warmup_steps",
  "wd": "weight_decay",
}


def suggest(name: str, known: Collection[str]) -> str:
  """Returns ' (did you mean "optimizer.learning_rate"?)', or "".

  Args:
    name: the unknown option, such as "optimizer.lr".
    known: the options of the config, by their full names.
  """
  section, _, last = name.rpartition(".")
  wanted = NAMES.get(last.lower(), last)
  matches = [option for option in known if option.rpartition(".")[2] == wanted]
  # The one in the section that was named, or else the first: an option of
  # data comes before that of a sweep.
  matches.sort(key=lambda option: option.rpartition(".")[0] != section)
  if matches:
    return f' (did you mean "{matches[0]}"?)'
  return did_you_mean(name, known)
