"""Chooses the implementation of attention from the machine and the shapes.

All implementations compute the same function; docs/guides/pretrain/attention.md
compares them, and layer.py calls the chosen one. This module does not import
jax, as it also checks the config.
"""

from typing import NamedTuple

from maskedlm.core.errors import ConfigError

IMPLEMENTATIONS = ("auto", "xla", "blockwise", "cudnn", "splash")
# Platform -> its kernel, which `auto` tries first and which runs only there.
_KERNEL = {"gpu": "cudnn", "tpu": "splash"}
_PLATFORM = {kernel: platform for platform, kernel in _KERNEL.items()}
_NAMES = {"gpu": "NVIDIA GPU", "rocm": "AMD GPU", "tpu": "TPU", "cpu": "CPU"}
_CUDNN_CAPABILITY = 8.0  # Ampere; older GPUs have no bfloat16 matmuls.

# Row length from which `auto` prefers `blockwise` to `xla`
# (docs/results/attention.md). On CPUs it is 1.9 times as fast at 512 tokens, as
# the blocks stay in the cache, and about equal at 128 tokens and 8 rows.
# Elsewhere it is chosen for memory, as on an H200 it is the slower of the two:
# the scores of 4096 tokens and 12 heads take 0.4 GB a row in bfloat16, and a
# layer keeps several such arrays.
_MIN_BLOCKWISE_LENGTH = {"cpu": 512}
_MIN_BLOCKWISE_LENGTH_ELSEWHERE = 4096
# Row length from which `auto` prefers a kernel. On an H200 cuDNN is 1.2 times
# as fast as `xla` at 128 tokens (docs/results/attention.md). Splash was not
# measured; its blocks have 128 tokens, so shorter rows have few scores to save.
_MIN_KERNEL_LENGTH = {"gpu": 128, "tpu": 256}


class Case(NamedTuple):
  """A call of attention, for which an implementation is chosen."""

  platform: str  # cpu, gpu (NVIDIA), rocm or tpu; "" for any.
  length: int | None  # L; None if unknown, as in jax.export.
  head_size: int
  dtype: str  # float32 or bfloat16.
  dropout: float  # Rate for the weights in this call: 0 in evaluation.
  alibi: bool = False
  relative: bool = False  # Scores have terms of distances (DeBERTa).
  mixed: bool = False  # Some rows are causal, others are not.
  capability: float | None = None  # An NVIDIA GPU's; None if new enough.


def choose_implementation(requested: str, case: Case) -> str:
  """Returns the implementation asked for, or the best one for "auto".

  Raises:
    ConfigError: the implementation asked for does not support the case.
  """
  if requested != "auto":
    check_supported(requested, case)
    return requested
  if case.length is None:  # Exported for any length and platform.
    return "xla"
  kernel = _KERNEL.get(case.platform)
  is_short = kernel and case.length < _MIN_KERNEL_LENGTH[case.platform]
  if kernel and not is_short and not refusal(kernel, case):
    return kernel
  is_long = case.length >= _MIN_BLOCKWISE_LENGTH.get(
    case.platform, _MIN_BLOCKWISE_LENGTH_ELSEWHERE
  )
  return "blockwise" if is_long and not refusal("blockwise", case) else "xla"


def check_supported(name: str, case: Case) -> None:
  """Raises ConfigError if an implementation does not support the case.

  "auto" supports every case.
  """
  why = "" if name == "auto" else refusal(name, case)
  if why:
    raise ConfigError(f"model.attention={name!r} {why}.")


def refusal(name: str, case: Case) -> str:
  """Returns why an implementation does not support a case, and the remedy.

  It is the rest of a sentence that begins with the name, one of IMPLEMENTATIONS
  except "auto"; "" if the case is supported.
  """
  if name == "xla":
    return ""
  if case.relative:
    return (
      "has no terms of distances, which model.position='disentangled' needs: "
      "set model.attention='xla'"
    )
  if case.dropout:
    return (
      f"has no dropout: set model.attention_dropout=0 (it is {case.dropout}), "
      "or model.attention='xla'"
    )
  if name == "blockwise":
    return ""
  if case.alibi:
    return (
      "adds no bias to the scores, which model.position='alibi' needs: set "
      "model.attention='blockwise' or 'xla'"
    )
  if name == "splash" and case.mixed:
    return (
      "reads all rows of a batch in one direction: set model.attention='auto'"
    )
  if name == "cudnn" and (why := _cudnn_refusal(case)):
    return why
  if not case.platform:
    return ""
  if case.platform != _PLATFORM[name]:
    return (
      f"runs on {_NAMES[_PLATFORM[name]]}s, not on {_NAMES[case.platform]}s: "
      "set model.attention='auto'"
    )
  too_old = case.capability is not None and case.capability < _CUDNN_CAPABILITY
  if name == "cudnn" and too_old:
    return (
      f"needs a GPU of compute capability {_CUDNN_CAPABILITY} or more, and "
      f"this one has {case.capability}: set model.attention='auto'"
    )
  return ""


def _cudnn_refusal(case: Case) -> str:
  if case.dtype != "bfloat16":
    return (
      f"computes in bfloat16: set model.dtype='bfloat16' (it is "
      f"{case.dtype!r}), or model.attention='blockwise' or 'xla'"
    )
  if case.head_size % 8 or case.head_size > 128:
    return (
      "needs heads of 8, 16, ... 128: model.width / model.num_heads is "
      f"{case.head_size}; change either, or set model.attention='xla'"
    )
  return ""
