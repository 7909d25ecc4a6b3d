"""The encoding of a text that is not UTF-8, by the characters that it gives."""

import pytest

from helpers.legacy_texts import TEXTS
from maskedlm.data.sources import encodings, legacy_encodings

WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")


@pytest.mark.parametrize(("encoding", "text"), TEXTS.items())
def test_the_encoding_of_a_languages_text(encoding, text):
  data = f"{text}\n".encode(encoding)
  found = legacy_encodings.guess_encoding(data)
  # The name may be that of a larger encoding, as cp1252 is of latin-1.
  assert data.decode(found) == f"{text}\n"
  # A character cut at the end doesn't matter.
  assert legacy_encodings.guess_encoding(data[:-3]) == found
  assert legacy_encodings.guess_encoding(f"{text}".encode()[:-1]) == "utf-8"


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", [*TEXTS.values(), "Plain."])
def test_two_and_four_bytes_a_character(encoding, text):
  if not encoding.endswith("e"):  # With a byte order mark.
    name = encodings.name_of_binary(text.encode(encoding))
    assert name == encoding.upper()
    return
  found = legacy_encodings.guess_wide_encoding(text.encode(encoding))
  # Without spaces, so without NULs, the byte order may be open.
  assert found == encoding.replace("-", "").replace("utf", "utf-") or (
    found is None and " " not in text
  )


def test_no_encoding_for_a_mixture_or_for_bytes():
  line = "Schöne Größe, weiße Straße.\n"
  for share in (1, 5):
    mixed = line.encode() * 5 + line.encode("latin-1") * share
    assert legacy_encodings.guess_encoding(mixed) is None
  data = bytes(range(256)) * 4
  assert legacy_encodings.guess_encoding(data) is None
  assert legacy_encodings.guess_wide_encoding(data) is None
  assert legacy_encodings.guess_wide_encoding(b"NULs\0in\0\0text.") is None
