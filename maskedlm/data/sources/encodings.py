"""Recognises what a file holds: by its first bytes, or by its invalid UTF-8.

| the first bytes | the file is |
|---|---|
| 1f 8b, 28 b5 2f fd, BZh, fd 37 7a 58 5a | compressed: gzip, zstd, bzip2, xz |
| PAR1 | Parquet |
| ff fe, fe ff; many NULs | UTF-16, or UTF-32; binary data |
| PK 03 04, d0 cf 11 e0, SQLite format 3 | zip or Excel, old Excel, SQLite |
| %PDF-, a page's tags | PDF, HTML |
"""

import re
from collections.abc import Sequence

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
  # The longer ones first: those of UTF-16 begin UTF-32's.
  b"\xff\xfe\0\0": "UTF-32",
  b"\0\0\xfe\xff": "UTF-32",
  b"\xff\xfe": "UTF-16",
  b"\xfe\xff": "UTF-16",
}
_HTML = re.compile(rb"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)
_MAX_NULLS = 0.05  # Maximum share of NULs in the first bytes of a text.


def name_of_binary(head: bytes) -> str:
  """Returns what a file is that is no UTF-8 text, by its first bytes, or ""."""
  for magic, name in _BINARY.items():
    if head.startswith(magic):
      return name
  if head.count(0) <= _MAX_NULLS * len(head):
    return ""
  if not head[::2].count(0):
    return "UTF-16LE"
  if not head[1::2].count(0):
    return "UTF-16BE"
  return "UTF-16, UTF-32 or binary data (many bytes are NUL)"


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
  if encoding := _guess(data):
    return f"convert it, for example with iconv -f {encoding} -t utf-8"
  return (
    "convert it from its own encoding (`file -i` may name it): "
    "iconv -f ENCODING -t utf-8"
  )


def _guess(data: bytes) -> str:
  """Returns cp1252 for a text in a Latin alphabet, else ""."""
  runs = re.findall(rb"[\x80-\xff]+", data)
  # Whole words of such bytes are another script, or Chinese, in any of several
  # encodings.
  if sum(len(run) <= 2 for run in runs) < 0.8 * len(runs):
    return ""
  try:
    data.decode("cp1252")
  except UnicodeDecodeError:
    return ""
  return "cp1252"
