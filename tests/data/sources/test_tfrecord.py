"""TFRecord files are read as they are written, and damage is noticed."""

import pytest

from helpers.tfrecords import crc32c, to_tfrecord
from maskedlm.data.sources.tfrecord import Shard, TfRecordError, TfRecords

A = [b"one", b"", b"three" * 70, b"four"]
B = [b"five", b"six"]


@pytest.fixture
def paths(tmp_path):
  for name, records in (("a", A), ("b", B)):
    (tmp_path / name).write_bytes(to_tfrecord(records))
  return [str(tmp_path / "a"), str(tmp_path / "b")]


def test_the_checksum_is_that_of_the_standard():
  assert crc32c(b"123456789") == 0xE3069283  # RFC 3720, B.4's algorithm.


def test_records_of_shards_are_one_sequence(paths):
  records = TfRecords([Shard(paths[0], 1, 3), Shard(paths[1], 0, 2)])
  assert list(records) == [*A[1:3], *B] and len(records) == 4
  assert [records[i] for i in (3, 0, 2, 1)] == [B[1], A[1], B[0], A[2]]
  with pytest.raises(IndexError):
    records[4]
  assert list(TfRecords([])) == []


# A record has 8 + 4 bytes before and 4 after its data.
@pytest.mark.parametrize(
  ("place", "message"),
  [
    (0, "no record at byte 0"),  # Its length.
    (9, "no record at byte 0"),  # The checksum of the length.
    (12, "record at byte 0 is damaged"),  # Its data.
    (15, "record at byte 0 is damaged"),  # The checksum of the data.
    (19, "no record at byte 19"),
  ],
)
def test_a_changed_byte_is_noticed(paths, tmp_path, place, message):
  content = bytearray(to_tfrecord(A))
  content[place] ^= 4
  (tmp_path / "a").write_bytes(content)
  with pytest.raises(TfRecordError, match=message):
    TfRecords([Shard(paths[0], 0, 4)])[0]


@pytest.mark.parametrize(
  ("cut", "message"), [(3, "ends within"), (20, "has 3")]
)
def test_a_file_that_is_cut_off_is_noticed(paths, tmp_path, cut, message):
  (tmp_path / "a").write_bytes(to_tfrecord(A)[:-cut])  # Record 4 has 20 bytes.
  with pytest.raises(TfRecordError, match=message):
    TfRecords([Shard(paths[0], 0, 4)])[3]
