"""The encoding of a text that is not UTF-8, by the characters that it gives."""

import pytest

from maskedlm.data.sources import encodings, legacy_encodings

# Texts in encodings that were used for their languages.
TEXTS = {
  "cp1252": "L’élève a été reçu à l’école où il étudie, c’est très bien.",
  "latin-1": "Die Größe der Straße überrascht die Mädchen, schöne Grüße!",
  "macintosh": "El niño comió una manzana, ¿dónde está el corazón?",
  "cp850": "A criança não está na estação: a informação é irmã da ação.",
  "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
  "iso-8859-2": "Zażółć gęślą jaźń, pięknie się żyje.",
  "cp1254": "Güneş doğdu, çocuklar şarkı söylüyor, ağaçların altında ışık.",
  "cp1251": "Старый доктор идёт в школу, а учитель видит собаку у реки.",
  "koi8-r": "Старый доктор идёт в школу, а учитель видит собаку у реки.",
  "cp866": "Старый доктор идёт в школу, а учитель видит собаку у реки.",
  "cp1253": "Ο γιατρός πηγαίνει στο σχολείο και βλέπει τον σκύλο.",
  "cp1255": "הרופא הולך לבית הספר ורואה את הכלב הקטן ליד הנהר.",
  "cp1256": "الطبيب يذهب إلى المدرسة ويرى الكلب الصغير قرب النهر.",
  "cp874": "แพทย์ไปโรงเรียนและเห็นสุนัขตัวเล็กใกล้แม่น้ำ",
  "gbk": "今天天气很好，我们一起去学校看老师，他说电脑很重要。",
  "gb18030": "今天天气很好，我们一起去学校看老师，他说电脑很重要。",
  "big5": "今天天氣很好，我們一起去學校看老師，他說電腦很重要。",
  "cp932": "今日は天気がいいので、みんなで学校へ行って先生に会いました。",
  "euc-jp": "今日は天気がいいので、みんなで学校へ行って先生に会いました。",
  "euc-kr": "오늘은 날씨가 좋아서 우리는 함께 학교에 가서 선생님을 만났다.",
}
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
