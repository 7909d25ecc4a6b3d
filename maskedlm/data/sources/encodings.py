"""Recognises what a file holds: by its first bytes, or by its invalid UTF-8.

1f 8b, 28 b5 2f fd, BZh, fd 37 7a   gzip, zstd, bzip2, xz
PAR1                                Parquet
ff fe, fe ff; many NULs             UTF-16 or UTF-32; binary data
PK 03 04, d0 cf 11 e0               zip or Excel, old Excel
SQLite format 3, %PDF-, ...         SQLite, PDF, Arrow, HDF5, numpy, pickle
"""

import pathlib
import re
import shlex
from collections.abc import Sequence

from maskedlm.data.sources.legacy_encodings import (
  guess_encoding,
  guess_wide_encoding,
)

COMPRESSED = {
  b"\x1f\x8b": "gzip",
  b"\x28\xb5\x2f\xfd": "zstd",
  b"BZh": "bzip2",
  b"\xfd7zXZ": "xz",
}
PARQUET = b"PAR1"
_BINARY = {
  **COMPRESSED,
  PARQUET: "Parquet",
  b"PK\x03\x04": "zip or Excel (.xlsx)",
  b"\xd0\xcf\x11\xe0": "Excel (.xls) or another Office file",
  b"SQLite format 3\0": "an SQLite database",
  b"%PDF-": "PDF",
  b"ARROW1": "Arrow or Feather",
  b"\xff\xff\xff\xff": "a stream of Arrow",
  b"\x89HDF": "HDF5",
  b"\x93NUMPY": "an array of numpy",
  b"\x80\x03": "a pickle of Python",
  b"\x80\x04\x95": "a pickle of Python",
  b"\x80\x05\x95": "a pickle of Python",
  # The longer ones first: those of UTF-16 begin UTF-32's.
  b"\xff\xfe\0\0": "UTF-32",
  b"\0\0\xfe\xff": "UTF-32",
  b"\xff\xfe": "UTF-16",
  b"\xfe\xff": "UTF-16",
}
_HTML = re.compile(rb"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
# For people who know an encoding by another name.
_KNOWN_AS = {
  "gbk": "gbk (GB2312)",
  "cp932": "cp932 (Shift-JIS)",
  "cp1252": "cp1252 (Windows, Latin-1)",
}
WARN_SHARE = 0.01  # Share of invalid characters above which a file is reported,
MAX_SHARE = 0.2  # and above which it is refused.
_MAX_NULLS = 0.05  # Maximum share of NULs in the first bytes of a text.


def name_of_binary(head: bytes) -> str:
  """Returns what a file is that is no UTF-8 text, by its first bytes, or ""."""
  for magic, name in _BINARY.items():
    if head.startswith(magic):
      return name
  if head.count(0) <= max(_MAX_NULLS * len(head), 1):
    return ""
  wide = guess_wide_encoding(head)
  return wide.upper() if wide else "binary data (many bytes are NUL)"


def is_html(head: bytes) -> bool:
  """Returns whether a file is a page of the web, such as an error's."""
  return bool(_HTML.match(head))


def remedy_for_binary(name: str) -> str:
  """Returns how a file becomes UTF-8 text, given its name_of_binary."""
  if name in COMPRESSED.values():
    return "decompress it"
  if re.fullmatch(r"UTF-\d+[BL]?E?", name):
    return f"convert it: iconv -f {name.lower()} -t utf-8"
  return "export or convert it to text"


def remedy_for_invalid(lines: Sequence[bytes], *, is_utf8: bool) -> str:
  """Returns how a text that is not UTF-8 becomes it, without damage.

  Bytes 0x80 to 0x9f are letters and quotation marks in Windows' cp1252, which
  is latin-1 otherwise, and control characters in latin-1, which tokenizers
  drop.

  Args:
    lines: some of its lines, at least one of them invalid.
    is_utf8: whether other lines are UTF-8 and not ASCII only.
  """
  invalid = []
  for line in lines:
    try:
      is_utf8 |= not line.decode("utf-8").isascii()
    except UnicodeDecodeError:
      invalid.append(line)
  if is_utf8:
    return "other lines are UTF-8: repair this one"
  data = b"\n".join(invalid)
  if encoding := guess_encoding(data):
    return f"convert it, for example with iconv -f {encoding} -t utf-8"
  return (
    "convert it from its own encoding (`file -i` may name it): "
    "iconv -f ENCODING -t utf-8"
  )


def count_invalid(text: str) -> int:
  """Returns the number of lone surrogates: bytes that were not UTF-8."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return len(_SURROGATE.findall(text))
  return 0


def lines_beyond_ascii(data: bytes) -> bytes:
  """Returns the lines with characters beyond ASCII, for describe_invalid."""
  lines = data.split(b"\n")
  return b"\n".join(line for line in lines if not line.isascii())


def describe_invalid(path: str, data: bytes, share: float) -> str:
  """Returns a clause: the file is not UTF-8, its likely encoding, the remedy.

  Args:
    path: the file's; the remedy for Parquet is to write its texts again.
    data: bytes of its text, decompressed.
    share: of its characters that are invalid.
  """
  what = f"{path} is not UTF-8: {share:.1%} of its characters are invalid"
  found = guess_encoding(data)
  if found in (None, "utf-8"):  # A part of it is UTF-8.
    return f"{what}, and no other encoding fits: check the file"
  remedy = iconv_command(path, found)
  if path.lower().endswith(".parquet"):
    remedy = f"decode its texts as {found}, and write them as UTF-8"
  return f"{what}; it looks like {_KNOWN_AS.get(found, found)}: {remedy}"


def iconv_command(path: str, encoding: str) -> str:
  """Returns the shell command that writes a copy of a file in UTF-8.

  Args:
    path: the file's; .gz and .zst are decompressed and compressed again.
    encoding: a name that iconv knows.
  """
  packed = {".gz": ("gzip -dc", "gzip"), ".zst": ("zstd -dc", "zstd")}
  ending = pathlib.Path(path).suffix
  ending = ending if ending.lower() in packed else ""
  stem = pathlib.Path(path.removesuffix(ending))
  target = stem.with_name(f"{stem.stem}.utf-8{stem.suffix}{ending}")
  source, target = shlex.quote(path), shlex.quote(str(target))
  convert = f"iconv -f {encoding} -t utf-8"
  if ending:
    unpack, pack = packed[ending.lower()]
    return f"{unpack} {source} | {convert} | {pack} > {target}"
  return f"{convert} {source} > {target}"
