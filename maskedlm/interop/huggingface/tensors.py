"""Reads tensors of a Hugging Face directory: safetensors, perhaps in shards.

No other format is read: opening a pickle (pytorch_model.bin) can run code.
"""

import contextlib
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import ml_dtypes  # noqa: F401 - adds bfloat16 to numpy.
import numpy as np
import safetensors
import safetensors.numpy

from maskedlm.core.errors import InteropError
from maskedlm.core.open_file import open_file
from maskedlm.core.parse_json import parse_json
from maskedlm.runtime import storage_errors

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
# File names of weights in formats that are not read.
UNREAD_WEIGHTS = (
  "pytorch_model*.bin",
  "*.bin",
  "tf_model.h5",
  "flax_model.msgpack",
)
NO_WEIGHTS = ("training_args.bin", "optimizer.bin", "scheduler.bin")
DTYPES = ("F64", "F32", "F16", "BF16")


class Tensors(NamedTuple):
  """The tensors of a directory, read one at a time."""

  shapes: Mapping[str, tuple[int, ...]]  # Name -> shape.
  dtypes: Mapping[str, str]  # Name -> safetensors' dtype, such as "BF16".
  read: Callable[[str], np.ndarray]  # Name -> tensor.


@contextlib.contextmanager
def open_tensors(folder: pathlib.Path) -> Iterator[Tensors]:
  """Yields the tensors of a directory.

  Raises:
    InteropError: there are no safetensors, a shard is missing, or a file is
      damaged.
  """
  with contextlib.ExitStack() as stack:
    owners, shapes, dtypes = {}, {}, {}
    for path in _list_files(folder):
      file = stack.enter_context(_open(path))
      for name in file.keys():  # noqa: SIM118 - not a dict.
        tensor = file.get_slice(name)
        owners[name], shapes[name] = file, tuple(tensor.get_shape())
        dtypes[name] = tensor.get_dtype()
    yield Tensors(
      shapes=shapes,
      dtypes=dtypes,
      read=lambda name: owners[name].get_tensor(name),
    )


def write_tensors(
  path: pathlib.Path, tensors: Mapping[str, np.ndarray]
) -> None:
  """Writes a safetensors file with the metadata that transformers expects."""
  try:
    safetensors.numpy.save_file(dict(tensors), path, metadata={"format": "pt"})
  except safetensors.SafetensorError as error:
    code = re.search(r"os error (\d+)", str(error))
    if not code:
      raise
    number = int(code[1])
    raise OSError(number, os.strerror(number), str(path)) from error
  path.chmod(0o644)  # The library makes it readable to the owner only.


def _list_files(folder: pathlib.Path) -> list[pathlib.Path]:
  if (folder / FILE).is_file():
    return [folder / FILE]
  if (folder / INDEX).is_file():
    return _list_shards(folder)
  unread = [
    p.name
    for pattern in UNREAD_WEIGHTS
    for p in sorted(folder.glob(pattern))
    if p.name not in NO_WEIGHTS
  ]
  if unread:
    if unread[0].endswith(".bin"):
      pattern = unread[0].replace("-00001-", "-*-")
      remedy = "a pickle can run code. If you trust it: "
      remedy += convert_command(folder, pattern)
    else:
      remedy = (
        "save it with transformers 4, from_pretrained(..., from_tf=True) or "
        "from_flax=True, and save_pretrained."
      )
    raise InteropError(
      f"{folder} has no {FILE} but {unread[0]}, which is not read: {remedy}"
    )
  raise InteropError(
    f"{folder} has no weights: expected {FILE}, or shards and {INDEX}."
  )


def convert_command(folder: pathlib.Path, pattern: str) -> str:
  """Returns the command that makes safetensors of a pickle, whatever its class.

  weights_only lets PyTorch refuse everything but tensors.
  """
  return (
    'python -c "import pathlib, torch; from safetensors.torch import save_file '
    f"as save; d = pathlib.Path('{folder}'); save({{k: x.clone().contiguous()"
    f" for file in sorted(d.glob('{pattern}')) for k, x in torch.load("
    f"file, 'cpu', weights_only=True).items()}}, d / '{FILE}', "
    "{'format': 'pt'})\""
  )


def _list_shards(folder: pathlib.Path) -> list[pathlib.Path]:
  try:
    index = parse_json((folder / INDEX).read_text("utf-8"))
    names = sorted(set(index["weight_map"].values()))
  except (ValueError, KeyError, AttributeError, TypeError) as error:
    raise InteropError(
      f"{folder / INDEX} can't be read ({error!r}); expected a weight_map of "
      "tensors to files. Fetch it again."
    ) from None
  for name in names:
    if pathlib.PurePath(name).name != name:
      raise InteropError(
        f"{folder / INDEX} names {name!r}: expected a file beside it."
      )
  missing = [name for name in names if not (folder / name).is_file()]
  if missing:
    raise InteropError(
      f"{folder} lacks {len(missing)} of {len(names)} shards: "
      f"{', '.join(missing)}. Fetch them."
    )
  return [folder / name for name in names]


def _open(path: pathlib.Path):
  try:
    open_file(path).close()  # For safe_open, every error is "no such file".
    return safetensors.safe_open(path, framework="numpy")
  except (safetensors.SafetensorError, OSError) as error:
    storage_errors.raise_if_temporary(path, error)
    raise InteropError(
      f"{path} is damaged or truncated ({error}); it has "
      f"{path.stat().st_size:,} bytes. Fetch it again."
    ) from None
