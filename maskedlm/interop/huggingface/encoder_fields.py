"""Reads and writes fields of config.json that only some architectures have.

These are rotary positions, ModernBERT's windows, and DeBERTa's distances.
"""

import re
from typing import Any

from maskedlm.core import options
from maskedlm.interop.huggingface.option_names import ACTIVATIONS, DISENTANGLED
from maskedlm.modeling.architecture import EncoderConfig


def activation_name(cfg: EncoderConfig) -> str:
  """Returns transformers' name of the activation."""
  return next(
    theirs for theirs, ours in ACTIVATIONS.items() if ours == cfg.activation
  )


def _read_modern(config, values, problems) -> dict[str, Any]:
  N = values["num_layers"]
  every = config.get("global_attn_every_n_layers") or 3
  types = config.get("layer_types") or _layer_types(N, every)
  if types == _layer_types(N, 1):
    window, every = 0, 1
  else:
    window = values["local_window"]
    # 0 means all tokens here, but one token in transformers.
    if options.expected(EncoderConfig, "local_window", window) or window < 2:
      problems.append(f"local_attention={window!r:.40}, expected 2 or more")
    else:
      window = window // 2 * 2  # transformers rounds half of it down.
    every = next(
      (k for k in range(1, N + 1) if types == _layer_types(N, k)), None
    )
  if every is None:
    problems.append(
      f"layer_types={types}; supported: full_attention in every k-th layer, "
      "beginning with the first"
    )
  ropes = config.get("rope_parameters") or {}
  thetas: dict[str, float] = {}
  for kind, old, default in (
    ("full_attention", "global_rope_theta", 160_000.0),
    ("sliding_attention", "local_rope_theta", 10_000.0),
  ):
    theta = config.get(old, default)
    # In old files, null means the value of the global layers.
    theta = thetas.get("full_attention") if theta is None else theta
    thetas[kind] = _read_theta(ropes.get(kind), old, theta, problems)
  if config.get("classifier_activation", "gelu") != config.get(
    "hidden_activation", "gelu"
  ):
    problems.append("classifier_activation differs from hidden_activation")
  return {
    "local_window": window,
    "global_every": every or 1,
    "rope_theta": thetas.get("full_attention"),
    "local_rope_theta": thetas.get("sliding_attention"),
  }


def _read_theta(rope, old: str, theta, problems: list[str]) -> float:
  """Returns the base of the wavelengths: `rope` states it, or `old` theta."""
  if not isinstance(rope := rope or {}, dict):
    problems.append(f"rope_parameters={rope!r:.80}, expected objects")
    return 1.0
  kind = rope.get("rope_type", rope.get("type", "default"))
  if kind != "default":
    problems.append(f"rope_type={kind!r}, 'default' is supported")
  theta = rope.get("rope_theta", theta)
  if wanted := options.expected(EncoderConfig, "rope_theta", theta):
    problems.append(f"{old}={theta!r:.40}, expected {wanted}")
    return 1.0
  return float(theta)


def write_rope(theta: float) -> dict[str, Any]:
  return {"rope_type": "default", "rope_theta": theta}


def _read_llama(config, values, problems) -> dict[str, Any]:
  size = values["width"] // values["num_heads"]
  if (stated := config.get("head_dim") or size) != size:
    problems.append(f"head_dim={stated!r:.40}, expected {size}")
  G, H = values["num_kv_heads"], values["num_heads"]
  if G and H % G:
    problems.append(f"num_key_value_heads={G}, expected a divisor of {H}")
  rope = config.get("rope_parameters") or config.get("rope_scaling")
  theta = config.get("rope_theta", 10_000.0)
  return {
    "num_kv_heads": 0 if G == H else G,
    "rope_theta": _read_theta(rope, "rope_theta", theta, problems),
  }


def _read_esm(config, values, problems) -> dict[str, Any]:
  mask = config.get("mask_token_id")
  if not values["token_dropout"]:
    return {}
  if wanted := options.expected(EncoderConfig, "mask_id", mask):
    problems.append(f"mask_token_id={mask!r:.40}, expected {wanted}")
  return {"mask_id": mask}


def _read_deberta(config, values, problems) -> dict[str, Any]:
  reach = config.get("max_relative_positions")
  stated = {
    **config,
    "pos_att_type": sorted(re.findall(r"\w+", str(config.get("pos_att_type")))),
    "max_relative_positions": (
      values["max_positions"] if reach in (None, -1, 0) else reach
    ),
  }
  size = values["width"] // values["num_heads"]
  of_sizes = {"embedding_size": values["width"], "attention_head_size": size}
  supported = DISENTANGLED | {n: x for n, x in of_sizes.items() if n in config}
  problems += [
    f"{name}={stated.get(name)!r:.40}, {value!r} is supported"
    for name, value in supported.items()
    if stated.get(name) != value
  ]
  return {}


def write_modern(cfg: EncoderConfig, special) -> dict[str, Any]:
  every = cfg.global_every if cfg.local_window else 1
  return {
    "cls_token_id": special.cls,
    "sep_token_id": special.sep,
    "classifier_activation": activation_name(cfg),
    "embedding_dropout": cfg.dropout,
    "attention_bias": False,
    "norm_bias": False,
    "mlp_bias": False,
    "classifier_bias": False,
    "decoder_bias": True,
    # The first three are read by transformers 4, the next two by 5.
    "global_attn_every_n_layers": every,
    "global_rope_theta": cfg.rope_theta,
    "local_rope_theta": cfg.local_rope_theta,
    "layer_types": _layer_types(cfg.num_layers, every),
    "rope_parameters": {
      "full_attention": write_rope(cfg.rope_theta),
      "sliding_attention": write_rope(cfg.local_rope_theta),
    },
    # Required even if no layer is local.
    "local_attention": cfg.local_window or 128,
  }


def _layer_types(num_layers: int, every: int) -> list[str]:
  return [
    "sliding_attention" if n % every else "full_attention"
    for n in range(num_layers)
  ]


# model_type -> function (config, values, problems) -> more options of the
# encoder. It appends what is not supported to the problems.
READERS = {
  "modernbert": _read_modern,
  "eurobert": _read_llama,
  "llama": _read_llama,
  "esm": _read_esm,
  "deberta-v2": _read_deberta,
}
