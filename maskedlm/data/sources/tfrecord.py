"""Reads the records of TFRecord files, which TFDS writes, without TensorFlow.

A file is nothing but its records (tensorflow.org/tutorials/load_data/tfrecord),
in little-endian numbers:

  uint64   length of the data
  uint32   masked CRC-32C of the length's eight bytes
  bytes    data
  uint32   masked CRC-32C of the data
"""

import bisect
import itertools
import os
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEAD = _LENGTH.size + _CRC.size


class TfRecordError(ValueError):
  """A file that is damaged; the message names it and the place."""


class Shard(NamedTuple):
  """Records `begin` to `end` - 1 of a file."""

  path: str
  begin: int
  end: int


class TfRecords:
  """The records of several files, by their index; reads headers on demand."""

  def __init__(self, shards: Sequence[Shard]):
    """Takes the shards in order; no file is opened yet."""
    self._shards = shards
    sizes = [shard.end - shard.begin for shard in shards]
    self._ends = list(itertools.accumulate(sizes))
    self._path, self._file, self._places = "", None, np.zeros(0, np.int64)

  def __len__(self) -> int:
    return self._ends[-1] if self._ends else 0

  def __getitem__(self, index: int) -> bytes:
    """Returns a record, from 0.

    Raises:
      IndexError: there is no such record.
      OSError: the file can't be read.
      TfRecordError: the record is damaged, or the file has fewer records.
    """
    if not 0 <= index < len(self):
      raise IndexError(index)
    number = bisect.bisect_right(self._ends, index)
    shard = self._shards[number]
    self._open(shard.path)
    place = shard.end - (self._ends[number] - index)
    if place >= len(self._places):
      raise TfRecordError(
        f"{shard.path} has {len(self._places):,} records; the dataset's "
        f"dataset_info.json says at least {shard.end:,}"
      )
    return _read_record(self._file, int(self._places[place]), shard.path)

  def _open(self, path: str) -> None:
    """Opens a file and finds its records, unless it was the last one read."""
    if path == self._path:
      return
    from etils import epath  # Opens gs://... as well.

    if self._file:
      self._file.close()
    self._path = ""
    self._file = epath.Path(path).open("rb")
    self._places = _find_records(self._file, path)
    self._path = path


def _find_records(file, path: str) -> np.ndarray:
  """Returns where the records of a file begin, int64 [n]."""
  size = file.seek(0, os.SEEK_END)
  place, begins = 0, []
  while place < size:
    begins.append(place)
    place += _HEAD + _read_length(file, place, path) + _CRC.size
  if place > size:
    raise TfRecordError(
      f"{path} ends within its record {len(begins)}, at byte {size:,}"
    )
  return np.array(begins, np.int64)


def _read_length(file, place: int, path: str) -> int:
  file.seek(place)
  head = file.read(_HEAD)
  if len(head) < _HEAD or not _is_intact(head[:8], head[8:]):
    raise TfRecordError(
      f"{path} has no record at byte {place:,} (the checksum of its length "
      "differs)"
    )
  return _LENGTH.unpack_from(head)[0]


def _read_record(file, place: int, path: str) -> bytes:
  length = _read_length(file, place, path)
  data, crc = file.read(length), file.read(_CRC.size)
  if len(data) < length or not _is_intact(data, crc):
    raise TfRecordError(
      f"{path}: the record at byte {place:,} is damaged (its checksum differs)"
    )
  return data


def _is_intact(data: bytes, masked: bytes) -> bool:
  import google_crc32c  # Here, as other sources need no such library.

  crc = google_crc32c.value(data)
  rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
  return masked == _CRC.pack((rotated + 0xA282EAD8) & 0xFFFFFFFF)
