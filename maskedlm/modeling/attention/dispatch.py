"""Which attention computes: a pure function of the machine and the shapes.

All of them compute the same function (docs/guides/pretrain/attention.md has the table);
attention.py calls the chosen one. No jax here: config is checked by this too.
"""

import importlib.util
from typing import NamedTuple

from maskedlm.core.errors import ConfigError

# `auto` takes the first of its platform's that serves and is worth it.
KNOWN = ("auto", "xla", "blockwise", "triton", "cudnn", "splash", "tokamax")
_PLATFORM = {"triton": "gpu", "cudnn": "gpu", "tokamax": "gpu", "splash": "tpu"}
_OF_PLATFORM = {"gpu": ("cudnn",), "tpu": ("splash",)}
# Compute capability from which NVIDIA's GPUs have what a kernel is made of:
# bfloat16's matmuls (8.0, Ampere), Hopper's own way to feed them (9.0).
_CAPABILITY = {"triton": 8.0, "cudnn": 8.0, "tokamax": 9.0}
_NAMES = {"gpu": "NVIDIA GPU", "rocm": "AMD GPU", "tpu": "TPU", "cpu": "CPU"}

# Tokens from which `auto` takes `blockwise` instead of `xla`. On CPU it was
# measured (docs/guides/pretrain/attention.md): 1.9 times as fast at 512, as its blocks stay in
# the cache; at 128, 8 rows, it was about the same. Elsewhere, where it was not,
# it is taken for its memory: the scores of 4096 tokens and 12 heads are 0.4 GB
# a row in bfloat16, and a layer keeps several such arrays.
_LONG = {"cpu": 512}
_LONG_ELSEWHERE = 4096
# Tokens from which `auto` takes a kernel. Its blocks are of 128 or more: below,
# it has one block or two a head, and the scores that it saves writing are few.
# Not measured, as there was no GPU or TPU.
_SHORT = 256


class Case(NamedTuple):
  """What an implementation is chosen for."""

  platform: str  # cpu | gpu (NVIDIA's) | rocm | tpu; "" = any.
  length: int | None  # L; None where it isn't known yet, as in jax.export.
  head_size: int
  dtype: str  # float32 | bfloat16.
  dropout: float  # Of the weights, in this call: 0 in evaluation.
  alibi: bool = False
  windows: bool = False  # Some layers see a window only.
  one_text: bool = False  # Rows are one text, then padding.
  capability: float | None = None  # Of an NVIDIA GPU; None = new enough.


def choose(asked: str, case: Case) -> str:
  """The implementation to use: the one asked for, or for "auto" the best.

  Raises:
    ConfigError: the one asked for can't serve.
  """
  if asked != "auto":
    check(asked, case)
    return asked
  if case.length is None:  # Exported for any length, and any platform.
    return "xla"
  for name in _OF_PLATFORM.get(case.platform, ()):
    if case.length >= _SHORT and not refusal(name, case):
      return name
  is_long = case.length >= _LONG.get(case.platform, _LONG_ELSEWHERE)
  return "blockwise" if is_long and not refusal("blockwise", case) else "xla"


def check(name: str, case: Case) -> None:
  """Raises ConfigError if it can't serve; "auto" always can."""
  why = "" if name == "auto" else refusal(name, case)
  if why:
    raise ConfigError(f"model.attention={name!r} {why}.")


def refusal(name: str, case: Case) -> str:
  """Why an implementation can't serve, and what to do; "" if it can."""
  if name == "xla":
    return ""
  if case.dropout and name != "triton":
    return (
      f"drops no attention weights: set model.attention_dropout=0 (it is "
      f"{case.dropout}), or model.attention='xla'"
    )
  if name == "blockwise":
    return ""
  if case.alibi and name != "triton":
    return (
      "adds no bias to the scores, as model.position='alibi' does: set "
      "model.attention='blockwise' or 'xla'"
    )
  if _PLATFORM[name] == "gpu" and case.dtype != "bfloat16":
    return (
      f"computes in bfloat16: set model.dtype='bfloat16' (it is "
      f"{case.dtype!r}), or model.attention='blockwise' or 'xla'"
    )
  if name == "triton" and case.head_size not in (16, 32, 64, 128):
    return (
      f"has heads of 16, 32, 64 or 128: model.width / model.num_heads is "
      f"{case.head_size}; change either, or set model.attention='xla'"
    )
  if name == "cudnn" and (case.head_size % 8 or case.head_size > 128):
    return (
      f"has heads of 8, 16, ... 128: model.width / model.num_heads is "
      f"{case.head_size}; change either, or set model.attention='xla'"
    )
  if name == "tokamax" and case.head_size % 64:
    return (
      f"has heads of a multiple of 64: model.width / model.num_heads is "
      f"{case.head_size}; change either, or set model.attention='blockwise'"
    )
  if name == "cudnn" and case.windows:
    return (
      "has no windows, as model.local_window asks for: set "
      "model.attention='tokamax' or 'blockwise'"
    )
  if name == "cudnn" and not case.one_text:
    return (
      "takes rows of one text alone, and these are packed: set "
      "model.attention='tokamax' or 'blockwise', or don't pack"
    )
  if not case.platform:
    return ""
  if case.platform != _PLATFORM[name]:
    return (
      f"runs on {_NAMES[_PLATFORM[name]]}s, not on "
      f"{_NAMES[case.platform]}s: set model.attention='auto'"
    )
  least = _CAPABILITY.get(name, 0.0)
  if case.capability is not None and case.capability < least:
    return (
      f"needs a GPU of compute capability {least} or more, and this has "
      f"{case.capability}: set model.attention='auto'"
    )
  if name == "tokamax" and importlib.util.find_spec("tokamax") is None:
    return (
      "isn't installed: pip install 'maskedlm[tokamax]', or set "
      "model.attention='auto'"
    )
  return ""
