"""Files that are not UTF-8: refused or reported, with a remedy that works."""

import gzip
import json
import shutil
import subprocess
from collections import Counter

import pytest

from helpers.legacy_texts import TEXTS
from helpers.read_source import read
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import encodings, files


@pytest.mark.parametrize("encoding", sorted(set(TEXTS)))
def test_the_remedy_gives_the_text(tmp_path, encoding):
  if not shutil.which("iconv"):
    pytest.skip("iconv is not installed")
  path = tmp_path / "it's a file.txt"
  path.write_bytes(f"{TEXTS[encoding]}\n".encode(encoding))
  problem = encodings.describe_invalid(str(path), path.read_bytes(), 0.5)
  command = problem.split(": ")[2]
  subprocess.run(command, shell=True, check=True)
  written = tmp_path / "it's a file.utf-8.txt"
  assert written.read_text("utf-8") == f"{TEXTS[encoding]}\n"


def test_the_remedy_of_a_compressed_file(tmp_path):
  path = tmp_path / "a.txt.gz"
  path.write_bytes(gzip.compress(f"{TEXTS['gbk']}\n".encode("gbk")))
  with pytest.raises(CorpusError, match="looks like gbk") as raised:
    read(f"text:{path}")
  command = str(raised.value).split(": ")[2]
  subprocess.run(command, shell=True, check=True)
  assert read(f"text:{tmp_path}/a.utf-8.txt.gz")[0] == [[TEXTS["gbk"]]]


@pytest.mark.parametrize("form", ["text", "lines", "jsonl", "parquet"])
@pytest.mark.parametrize("encoding", ["gbk", "cp932", "cp1251", "big5"])
def test_a_file_of_another_encoding_is_refused(tmp_path, form, encoding):
  lines = [TEXTS[encoding]] * 3
  path = tmp_path / f"a.{'txt' if form in ('text', 'lines') else form}"
  if form == "parquet":
    _write_parquet(path, [line.encode(encoding) for line in lines])
  else:
    if form == "jsonl":
      lines = [json.dumps({"text": x}, ensure_ascii=False) for x in lines]
    path.write_bytes("\n".join(lines).encode(encoding))
  with pytest.raises(
    CorpusError, match=f"{path} is not .*looks like {encoding}"
  ):
    read(f"{form}:{path}")


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
      with pytest.raises(CorpusError, match=r"21\.0% of its char.*cp1252"):
        read(f"{form}:{path}")
      continue
    _, report = read(f"{form}:{path}")
    warned = [name for name in report if name.startswith(files.WARNING)]
    assert len(warned) == (outcome == "warned")
    if warned:
      assert str(path) in warned[0] and "2.0%" in warned[0]
      assert report[warned[0]] == 2


def test_warnings_of_many_files_are_limited(tmp_path):
  for index in range(files._MAX_WARNINGS + 5):
    (tmp_path / f"{index}.txt").write_bytes(b"x" * 90 + b"\xe9" * 5)
  report = read(f"text:{tmp_path}")[1]
  warned = Counter(
    {name: n for name, n in report.items() if name.startswith(files.WARNING)}
  )
  assert len(warned) == files._MAX_WARNINGS + 1
  assert warned.total() == 5 * (files._MAX_WARNINGS + 5)


def _write_parquet(path, texts):
  import pyarrow as pa
  import pyarrow.parquet as pq

  pq.write_table(pa.table({"text": pa.array(texts, pa.binary())}), path)
