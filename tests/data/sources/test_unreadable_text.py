"""Files that are not UTF-8: refused or reported, with a remedy that works."""

import json

import pytest

from helpers.read_source import read
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import files


@pytest.mark.parametrize("form", ["text", "lines", "jsonl", "parquet"])
@pytest.mark.parametrize("encoding", ["gbk", "cp932", "cp1251", "big5"])
def test_a_file_of_another_encoding_is_refused(tmp_path, form, encoding):
  """The message has the first byte and its place, and no guess."""
  line = {"cp1251": "Привет", "cp932": "今日は天気"}.get(encoding, "今天很好")
  line *= 9
  first, place = line.encode(encoding)[0], 1
  path = tmp_path / f"a.{'txt' if form in ('text', 'lines') else form}"
  if form == "parquet":
    _write_parquet(path, [line.encode(encoding)])
  else:
    text = line
    if form == "jsonl":
      text = json.dumps({"text": line}, ensure_ascii=False)
      place = 1 + text.index(line)
    path.write_bytes(text.encode(encoding))
  with pytest.raises(CorpusError) as raised:
    read(f"{form}:{path}")
  assert f"{path} is not UTF-8: " in str(raised.value)
  assert f"the first is byte 0x{first:02x} at {place};" in str(raised.value)
  assert encoding not in str(raised.value)
  assert form == "parquet" or "iconv -f ENCODING -t utf-8" in str(raised.value)


@pytest.mark.parametrize("form", ["text", "parquet"])
def test_above_one_percent_a_warning_names_the_file(tmp_path, form):
  # 1 of 100 characters is not over 1%; 2 of 100 are, and 21 over 20%.
  for invalid, outcome in ((1, "counted"), (2, "warned"), (21, "refused")):
    data = b"x" * (100 - 2 * invalid) + b"x\xe9" * invalid
    path = tmp_path / f"{invalid}.{'txt' if form == 'text' else form}"
    if form == "text":
      path.write_bytes(data)
    else:
      _write_parquet(path, [data])
    if outcome == "refused":
      with pytest.raises(CorpusError, match=r"21\.0% of its char.*0xe9 at 60"):
        read(f"{form}:{path}")
      continue
    _, report = read(f"{form}:{path}")
    warned = [name for name in report if name.startswith(files.WARNING)]
    assert len(warned) == (outcome == "warned")
    if warned:
      assert str(path) in warned[0] and "2.0%" in warned[0]
      assert report[warned[0]] == 2


def _write_parquet(path, texts):
  import pyarrow as pa
  import pyarrow.parquet as pq

  pq.write_table(pa.table({"text": pa.array(texts, pa.binary())}), path)
