"""Recognises what a file holds by its first bytes, and what is not UTF-8.

1f 8b, 28 b5 2f fd, BZh, fd 37 7a   gzip, zstd, bzip2, xz
PAR1                                Parquet
ff fe, fe ff; many NULs             UTF-16 or UTF-32; binary data
PK 03 04, d0 cf 11 e0               zip or Excel, old Excel
ustar, from the 257th byte on       tar
SQLite format 3, %PDF-, ...         SQLite, PDF, Arrow, HDF5, numpy, pickle

Which older encoding a text has is not guessed: a wrong guess would damage it
when it is converted.
"""

import re

COMPRESSED = {
  b"\x1f\x8b": "gzip",
  b"\x28\xb5\x2f\xfd": "zstd",
  b"BZh": "bzip2",
  b"\xfd7zXZ": "xz",
}
PARQUET = b"PAR1"
ARROW, TAR = "Arrow", "a tar archive"
_TAR_MAGIC = slice(257, 262)
_BINARY = {
  **COMPRESSED,
  PARQUET: "Parquet",
  b"PK\x03\x04": "zip or Excel (.xlsx)",
  b"\xd0\xcf\x11\xe0": "Excel (.xls) or another Office file",
  b"SQLite format 3\0": "an SQLite database",
  b"%PDF-": "PDF",
  b"ARROW1": ARROW,
  b"\xff\xff\xff\xff": ARROW,
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
WARN_SHARE = 0.01  # Share of invalid characters above which a file is reported,
MAX_SHARE = 0.2  # and above which it is refused.
_HEAD = 1_000  # Characters in which a page of HTML shows.
_MAX_NULLS = 0.05  # Maximum share of NULs in the first bytes of a text.


def name_of_binary(head: bytes) -> str:
  """Returns what a file is that is no UTF-8 text, by its first bytes, or ""."""
  for magic, name in _BINARY.items():
    if head.startswith(magic):
      return name
  if head[_TAR_MAGIC] == b"ustar":
    return TAR
  if head.count(0) <= max(_MAX_NULLS * len(head), 1):
    return ""
  return "binary data, or UTF-16 without a mark (many bytes are NUL)"


def is_html(head: bytes) -> bool:
  """Returns whether a file is an HTML page, such as a server's error."""
  return bool(_HTML.match(head))


def name_of_markup(text: str) -> str:
  """Returns what a text that begins so is, and what helps; "" for prose."""
  if is_html(text[:_HEAD].encode(errors="replace")):
    return "a page of HTML; extract its text first"
  line = text.lstrip().partition("\n")[0]
  if line.startswith('{"') and line.rstrip().endswith("}"):
    return "made of JSON objects; read it as jsonl:FILE"
  if line.startswith("{'") and line.rstrip().endswith("}"):
    return "made of dicts of Python; write them with json.dumps, for jsonl:FILE"
  return ""


ARROW_REMEDY = (
  "write each .arrow file as Parquet: datasets.Dataset.from_file('FILE.arrow')"
  ".to_parquet('FILE.parquet')"
)


def remedy_for_binary(name: str) -> str:
  """Returns how a file becomes UTF-8 text, given its name_of_binary."""
  if name == TAR:
    return "unpack it: tar -xf FILE"
  if name in COMPRESSED.values():
    return "decompress it"
  if name in ("UTF-16", "UTF-32"):
    return f"convert it: iconv -f {name.lower()} -t utf-8"
  return "export or convert it to text"


def remedy_for_invalid(*, is_utf8: bool = False) -> str:
  """Returns how to convert a text that is not UTF-8, without damage.

  Args:
    is_utf8: whether other lines are UTF-8 and not ASCII only.
  """
  if is_utf8:
    return "other lines are UTF-8: repair this one"
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


def first_invalid(text: str, before: int) -> str:
  """Returns the first byte that was not UTF-8, and its place in a file.

  Args:
    text: a text with such bytes, as lone surrogates.
    before: the characters that precede it in the file.
  """
  match = _SURROGATE.search(text)
  assert match is not None
  return f"byte 0x{ord(match[0]) & 0xFF:02x} at {before + match.start() + 1:,}"
