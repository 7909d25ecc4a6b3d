"""Writes TFRecord files by hand, and TFDS datasets of them."""

import json
import pathlib
import struct

from array_record.python import array_record_module


def crc32c(data: bytes) -> int:
  """The checksum of RFC 3720, bit by bit."""
  crc = 0xFFFFFFFF
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
  return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
  crc = crc32c(data)
  rotated = (crc >> 15) + (crc << 17) % 2**32
  return struct.pack("<I", (rotated + 0xA282EAD8) % 2**32)


def to_tfrecord(records) -> bytes:
  """Returns a file's content."""
  parts = []
  for data in records:
    length = struct.pack("<Q", len(data))
    parts += [length, masked(length), data, masked(data)]
  return b"".join(parts)


def as_tfrecord(folder: pathlib.Path) -> None:
  """Turns TFDS's array_record files and their metadata into TFRecord's."""
  for path in folder.rglob("*.array_record-*"):
    reader = array_record_module.ArrayRecordReader(str(path))
    content = to_tfrecord(reader.read_all())
    reader.close()
    path.unlink()
    name = path.name.replace(".array_record-", ".tfrecord-")
    path.with_name(name).write_bytes(content)
  for path in folder.rglob("dataset_info.json"):
    info = json.loads(path.read_text()) | {"fileFormat": "tfrecord"}
    path.write_text(json.dumps(info))
