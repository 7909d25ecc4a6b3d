"""Reads the records of TFDS datasets, dicts of features, without TensorFlow.

  tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR]      e.g. tfds:glue/mrpc:test

SPLIT defaults to "train", DATA_DIR to the data folder of TFDS. A dataset may be
prepared as TFRecord, TFDS's default (tfrecord.py), as array_record or as
parquet. One that is not prepared is downloaded and prepared as array_record,
which needs no TensorFlow, either.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from maskedlm.data.sources import tfrecord

PREFIX = "tfds:"
# A version begins with a digit, which no split does.
_TFDS = re.compile(
  r"tfds:(?P<name>[^:@]+(:\d[\d.*]*)?)(:(?P<split>[^@]+))?(@(?P<data_dir>.+))?"
)


class TfdsError(ValueError):
  """A dataset that can't be opened or read; the message gives the reason."""


class Records(Protocol):
  """A dataset; `dataset_info.features` describes the fields of its records."""

  dataset_info: Any

  def __len__(self) -> int: ...

  def __getitem__(self, index: int, /) -> dict[str, Any]: ...


def open_records(source: str) -> Records:
  """Returns the records of a source.

  Raises:
    TfdsError: the name is misspelt, there is no such dataset or split, or it
      can't be prepared.
  """
  match = _TFDS.fullmatch(source)
  if not match:
    raise TfdsError(
      f"{source}: expected tfds:NAME[/CONFIG][:VERSION][:SPLIT][@DATA_DIR], "
      "such as tfds:glue/mrpc:train."
    )
  data_dir = match["data_dir"] and os.path.expanduser(match["data_dir"])
  try:
    with _without_current_folder():
      return _open(match["name"], match["split"] or "train", data_dir)
  except TfdsError as error:
    raise TfdsError(f"{source}: {error}") from error
  except Exception as error:  # Any type: no network, no TensorFlow ...
    raise TfdsError(
      f"{source}: TFDS can't open it: {_reason(error)}; expected a dataset "
      "that is prepared as tfrecord, array_record or parquet, or can be "
      "prepared here."
    ) from error


@contextlib.contextmanager
def _without_current_folder() -> Iterator[None]:
  """Keeps TFDS from importing modules of the current folder for a dataset."""
  before, here = sys.path, os.getcwd()
  sys.path = [p for p in before if p and os.path.realpath(p) != here]
  try:
    yield
  finally:
    sys.path = before


def _open(name: str, split: str, data_dir: str | None):
  import tensorflow_datasets as tfds  # 0.7 s to import.
  import tensorflow_datasets.text  # Registers glue, wikipedia, c4 ...

  try:
    builder = tfds.builder(name, data_dir=data_dir)
  except (
    tfds.core.DatasetNotFoundError,
    ValueError,  # No such config.
    AssertionError,  # No such version.
    ImportError,  # TFDS's code for the dataset needs TensorFlow.
  ) as error:
    place = os.path.join(
      data_dir or tfds.core.constants.DATA_DIR, name.partition(":")[0]
    )
    available = sorted(os.listdir(place)) if os.path.isdir(place) else []
    raise TfdsError(
      f"{_reason(error)[:200]}; in {place} there is "
      f"{', '.join(available) or 'nothing'}: correct the name, or give that "
      "of a prepared version, which is read without TFDS's code, as "
      "tfds:NAME:VERSION@DATA_DIR."
    ) from error
  if not builder.is_prepared():
    builder = tfds.builder(name, data_dir=data_dir, file_format="array_record")
    builder.download_and_prepare()
  formats = {x.value for x in builder.info.available_file_formats()}
  try:
    if formats & {"array_record", "parquet"}:
      return builder.as_data_source(split)
    if "tfrecord" in formats:
      return _TfRecordDataset(builder.info, split)
  except ValueError as error:  # There is no such split.
    raise TfdsError(f"{_reason(error)}.") from error
  raise TfdsError(
    f"it is prepared as {' and '.join(sorted(formats)) or 'nothing'}; expected "
    "tfrecord, array_record or parquet: prepare it again in another folder, "
    "and name that: tfds:NAME@DATA_DIR."
  )


def _reason(error: Exception) -> str:
  """Returns the message of an error, which may have many lines, as one."""
  return " ".join(str(error).split()).rstrip(".:") or type(error).__name__


class _TfRecordDataset:
  """A data source, as of as_data_source, of TFRecord files."""

  def __init__(self, dataset_info, split: str):
    self.dataset_info = dataset_info
    shards = [
      tfrecord.Shard(str(x.filename), x.skip, x.skip + x.take)
      for x in dataset_info.splits[split].file_instructions
    ]
    self._records = tfrecord.TfRecords(shards)

  def __len__(self) -> int:
    return len(self._records)

  def __getitem__(self, index: int) -> dict[str, Any]:
    features = self.dataset_info.features
    return features.deserialize_example_np(self._records[index])


def read_records(
  records: Records,
  source: str,
  indices: Sequence[int] | None = None,
) -> Iterator[dict[str, Any]]:
  """Yields the records at these indices, or all records if None.

  Raises:
    TfdsError: the dataset's files are damaged.
  """
  for index in range(len(records)) if indices is None else indices:
    try:
      yield records[index]
    except (RuntimeError, ValueError, OSError) as error:
      raise TfdsError(
        f"{source}: record {index + 1} can't be read ({_reason(error)}); its "
        "files are damaged: delete and prepare the dataset again."
      ) from error
