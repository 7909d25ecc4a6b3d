"""Codes vectors in 8 bits a number, or in 1, to find candidates in less memory.

A search by cosine needs no scale: a vector's largest number becomes 127 or -127
("int8"), or only the signs are kept, 8 in a byte ("binary"). A query is not
coded. The vectors whose codes are nearest are then compared themselves, and are
read from the file as needed (Yamada et al. 2021, arXiv:2106.00882).
"""

import os
import pathlib
import struct
import zipfile

import numpy as np

KINDS = ("int8", "binary")
READ = 1 << 20  # Bytes at a time.


def encode(x: np.ndarray, kind: str) -> np.ndarray:
  """Returns int8 [n, C], or uint8 [n, C / 8] if binary, of vectors [n, C]."""
  if kind == "binary":
    return np.packbits(x > 0, axis=-1)
  largest = np.max(np.abs(x), axis=-1, keepdims=True)
  return np.rint(x * (127 / np.where(largest == 0, 1, largest))).astype(np.int8)


def decode(codes: np.ndarray, width: int) -> np.ndarray:
  """Returns float32 [n, width], in about the directions that were encoded."""
  if codes.dtype == np.int8:
    return codes.astype(np.float32)
  return np.unpackbits(codes, axis=-1, count=width) * np.float32(2) - 1


def map_array(path: str | os.PathLike, name: str) -> np.ndarray:
  """Returns an array of an .npz file in the file system, mapped, not loaded.

  It raises what numpy does, also if the checksum is wrong.
  """
  with zipfile.ZipFile(path) as file, file.open(f"{name}.npy") as member:
    np.lib.format.read_magic(member)
    shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    begin, info = member.tell(), file.getinfo(member.name)
    while member.read(READ):  # It compares the checksum at the end.
      pass
  with pathlib.Path(path).open("rb") as raw:  # Past the member's own header.
    raw.seek(info.header_offset + 26)
    begin += info.header_offset + 30 + sum(struct.unpack("<HH", raw.read(4)))
  return np.memmap(path, dtype, "r", begin, shape)
