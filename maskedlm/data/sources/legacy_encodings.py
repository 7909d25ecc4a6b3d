"""Guesses the encoding of text that is not UTF-8.

A wrong guess would damage text when the file is converted, so an encoding is
named only if it decodes the bytes without an error and the characters beyond
ASCII are mostly those that a language's text consists of. The functions are
pure: they see bytes, and return a name that Python and iconv know.
"""

import codecs
import functools
import re

SAMPLE = 1 << 16  # Bytes that a guess is based on.
_MIN_FIT = 0.85  # Share of the characters that must fit a language.


def guess_encoding(data: bytes) -> str | None:
  """Returns the encoding of text by its first bytes.

  Among older encodings, the one is returned in which the most of the characters
  are usual ones in a language that it is used for.

  Args:
    data: the first bytes of a file; at most SAMPLE of them are read.

  Returns:
    The name, such as "cp1252"; "utf-8" for valid UTF-8; None for other data, or
    a mixture of encodings.
  """
  data = data[:SAMPLE]
  if _decode(data, "utf-8") is not None:
    return "utf-8"
  if _is_mixed(data):
    return None
  rows = _latin_letters() if _is_latin(data) else _other_characters()
  best, best_fit = None, 0.0
  for encodings, usual in rows:
    for name in encodings:
      text = _decode(data, name)
      fit = 0.0 if text is None else _fit(text, usual)
      if fit > best_fit:  # Of equal ones, the first.
        best, best_fit = name, fit
  return best if best_fit >= _MIN_FIT else None


def guess_wide_encoding(data: bytes) -> str | None:
  """Returns the encoding of text with NULs, which has 2 or 4 bytes a character.

  Text uses few blocks of 256 characters; in the wrong byte order it would use
  many, as other data does in both.

  Args:
    data: the first bytes of a file; at most SAMPLE of them are read.

  Returns:
    "utf-16le", "utf-16be", "utf-32le" or "utf-32be"; None for other data.
  """
  data = data[:SAMPLE]
  blocks = {}
  for name in ("utf-32le", "utf-32be", "utf-16le", "utf-16be"):
    text = _decode(data, name)
    if text and not _CONTROL.search(text):
      blocks[name] = len({ord(char) >> 8 for char in text})
  best = min(blocks, key=blocks.get, default=None)
  wrong = blocks.get({"utf-16le": "utf-16be", "utf-16be": "utf-16le"}.get(best))
  is_text = best and (wrong is None or 2 * blocks[best] <= wrong)
  return best if is_text else None


def _is_mixed(data: bytes) -> bool:
  """Returns whether a part of the text is UTF-8, and another part isn't.

  Some characters of other encodings are valid UTF-8 by chance: in Japanese,
  four for ten invalid bytes.
  """
  text = data.decode("utf-8", "surrogateescape")
  invalid = len(_SURROGATE.findall(text))
  return len(_BEYOND_ASCII.findall(text)) - invalid > 0.6 * invalid


def _decode(data: bytes, encoding: str) -> str | None:
  """Returns the text; None if a byte is invalid. The end may be cut off."""
  try:
    return codecs.getincrementaldecoder(encoding)().decode(data)
  except UnicodeDecodeError:
    return None


_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\0-\x08\x0b\x0e-\x1f]")
_FIRST = re.compile(r"\b\w")
_BEYOND_ASCII = re.compile(r"[^\0-\x7f]")


def _fit(text: str, usual: frozenset[str]) -> float:
  """Returns the share of the characters beyond ASCII that are usual.

  A capital that begins a word counts as its small letter.
  """
  text = _FIRST.sub(lambda match: match[0].lower(), text)
  found = _BEYOND_ASCII.findall(text)
  return sum(char in usual for char in found) / max(len(found), 1)


_MARKS_OF_TEXT = "‘’‚“”„–—…«»€°§·•¿¡\xa0"
_WIDE_MARKS = "，。、！？：；「」『』（）《》〈〉【】・ー　～"
_WESTERN = ("cp1252", "macintosh", "cp850")
_CENTRAL = ("cp1250", "iso-8859-2")
_CYRILLIC = ("cp1251", "koi8-r", "cp866")
# Encodings, and the letters beyond ASCII of a language written in them.
_LATIN = (
  (_WESTERN, "éèàêçùâîôûëïœÉÈÀÊÇ"),
  (_WESTERN, "äöüßÄÖÜ"),
  (_WESTERN, "áéíóúñüÁÉÍÓÚÑ"),
  (_WESTERN, "áàâãçéêíóôõúÁÂÃÇÉÓ"),
  (_WESTERN, "àèéìòùÀÈÉÌÒÙ"),
  (_WESTERN, "åäöøæéÅÄÖØÆÉ"),
  (_WESTERN, "áðéíóúýþæöÁÐÉÍÓÚÝÞÆÖ"),
  (_CENTRAL, "ąćęłńóśźżĄĆĘŁŃÓŚŹŻ"),
  (_CENTRAL, "áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽľĺŕôäĽ"),
  (_CENTRAL, "áéíóöőúüűÁÉÍÓÖŐÚÜŰ"),
  (_CENTRAL, "čćđšžČĆĐŠŽ"),
  (_CENTRAL, "ăâîşţĂÂÎŞŢ"),
  (("cp1254",), "çğıöşüâîÇĞİÖŞÜ"),
  (("cp1257",), "āčēģīķļņšūžąęėįųõäöüĀČĒĢĪĶĻŅŠŪŽĄĘĖĮŲÕÄÖÜ"),
  # A mixture of languages.
  (("cp1252",), "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŒàáâãäåæçèéêëìíîïñòóôõöøùúûüœß"),
)
# The same, without capitals, since KOI8-R has them where Windows has small
# letters. Hebrew precedes Cyrillic, whose last five letters it doesn't have.
_OTHERS = (
  (("cp1255",), "אבגדהוזחטיךכלםמןנסעףפץצקרשת"),
  (_CYRILLIC, "абвгдежзийклмнопрстуфхцчшщъыьэюяё"),
  (("cp1251", "koi8-u"), "абвгґдеєжзиіїйклмнопрстуўфхцчшщьюя"),
  (("cp1253",), "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ"),
  (("iso-8859-5",), "абвгдежзийклмнопрстуфхцчшщъыьэюяё"),
  (("cp1256", "iso-8859-6"), "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگ،؟"),
  (
    ("cp874",),
    "".join(map(chr, (*range(0xE01, 0xE3B), *range(0xE40, 0xE4F)))),
  ),
)


def _is_latin(data: bytes) -> bool:
  """Returns whether bytes beyond ASCII are single letters within words."""
  runs = re.findall(rb"[\x80-\xff]+", data)
  return sum(len(run) <= 2 for run in runs) >= 0.8 * len(runs)


_Row = tuple[tuple[str, ...], frozenset[str]]  # Encodings, usual characters.


@functools.cache
def _latin_letters() -> tuple[_Row, ...]:
  return tuple((e, frozenset(text + _MARKS_OF_TEXT)) for e, text in _LATIN)


@functools.cache
def _other_characters() -> tuple[_Row, ...]:
  """Returns the usual characters of languages in other scripts.

  Those of Chinese, Japanese and Korean are the first level of each national
  standard, whose rows hold the common characters. Korean precedes Chinese:
  all of its syllables are common characters in GBK, but half of the Chinese
  ones are none in EUC-KR.
  """
  korean = _rows("euc_kr", [range(0xB0, 0xC9)], [range(0xA1, 0xFF)])
  chinese = _rows("gb2312", [range(0xB0, 0xD8)], [range(0xA1, 0xFF)])
  traditional = _rows(
    "big5", [range(0xA4, 0xC7)], [range(0x40, 0x7F), range(0xA1, 0xFF)]
  )
  japanese = _rows(
    "euc_jp", [range(0xA4, 0xA6), range(0xB0, 0xD0)], [range(0xA1, 0xFF)]
  )
  utf_16 = ("utf-16le", "utf-16be")
  eastern = (
    (("euc-kr", "cp949", *utf_16), korean),
    (("gbk", "gb18030", *utf_16), chinese),
    (("cp932", "euc-jp", *utf_16), japanese),
    (("big5", "gbk", *utf_16), traditional),
  )
  return (
    *((e, frozenset(chars) | {*_WIDE_MARKS}) for e, chars in eastern),
    *((e, frozenset(letters + _MARKS_OF_TEXT)) for e, letters in _OTHERS),
  )


def _rows(encoding: str, leads: list[range], trails: list[range]) -> set[str]:
  """Returns the characters of two bytes with lead and trail in these ranges."""
  found = set()
  for lead in (byte for part in leads for byte in part):
    for trail in (byte for part in trails for byte in part):
      found.update(bytes([lead, trail]).decode(encoding, "ignore"))
  return found
