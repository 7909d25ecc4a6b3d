"""Files that no one means to give: pipes, huge lines, a million columns."""

import gzip
import json
import os
import pathlib
import time

import pytest

from maskedlm.core.errors import CorpusError, DataError
from maskedlm.core.open_file import open_file
from maskedlm.data.labelled import tables, text_lines
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.finetune.config import make_task
from maskedlm.inference.plots import isotropy

COLUMNS = 50_000


@pytest.mark.parametrize("kind", ["pipe", "loop", "folder"])
def test_only_a_file_is_read(kind, tmp_path):
  """Nobody writes to the pipe, so opening it would wait forever."""
  made = {
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path),
    "folder": pathlib.Path.mkdir,
  }[kind]
  paths = {}
  for suffix in (".txt", ".csv", ".json", ".jsonl.gz"):
    paths[suffix] = tmp_path / f"odd{suffix}"
    made(paths[suffix])
  for read in (
    lambda: list(text_lines.read_lines(str(paths[".txt"]))),
    lambda: list(text_lines.read_lines(str(paths[".jsonl.gz"]))),
    lambda: list(tables.read_records(paths[".csv"])),
    lambda: list(tables.read_records(paths[".json"])),
    lambda: _read("question_answering", paths[".json"]),
    lambda: _read("tagging", paths[".txt"]),
    lambda: load_tokenizer(paths[".txt"]),
    lambda: isotropy.read_table(str(paths[".json"])),
  ):
    with pytest.raises((DataError, CorpusError), match="odd"):
      read()


def _read(name, path):
  return make_task(name, {}).read_examples(str(path))


def test_a_pipe_of_the_shell_is_read():
  read, write = os.pipe()
  os.write(write, b"one\ntwo\n")
  os.close(write)
  with open_file(f"/dev/fd/{read}") as file:
    assert list(file) == [b"one\n", b"two\n"]
  os.close(read)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_huge_line_is_not_read_whole(compressed, tmp_path, monkeypatch):
  monkeypatch.setattr(text_lines, "MAX_LINE", 1000)
  content = b"a b\n" + 999 * b"c" + b"\n" + 5_000_000 * b"d"
  path = tmp_path / ("x.txt.gz" if compressed else "x.txt")
  path.write_bytes(gzip.compress(content) if compressed else content)
  lines = text_lines.read_lines(str(path))
  assert next(lines) == (1, "a b")
  assert next(lines) == (2, 999 * "c")
  with pytest.raises(DataError, match=r"x.txt.*:3: .* over 1,000 bytes"):
    next(lines)


def test_an_unclosed_quotation_mark_takes_time_in_proportion(tmp_path):
  seconds = []
  for count in 20_000, 80_000:
    path = tmp_path / "x.csv"
    path.write_text('text,label\n"a,1\n' + "some words,0\n" * count)
    began = time.process_time()
    with pytest.raises(DataError, match=r"x.csv:2: .* mark not closed"):
      list(tables.read_records(path))
    seconds.append(time.process_time() - began)
  assert seconds[1] < 12 * max(seconds[0], 0.01)


def test_many_columns_take_time_in_proportion(tmp_path):
  names = [f"c{i}" for i in range(COLUMNS)]
  csv, twice = tmp_path / "wide.csv", tmp_path / "twice.csv"
  row = ",".join(map(str, range(COLUMNS)))
  csv.write_text(f"{','.join(names)}\n{row}\n")
  twice.write_text(f"{','.join([*names, 'c5'])}\n{row},1\n")
  wide = tmp_path / "wide.jsonl"
  pairs = ", ".join(f"{json.dumps(name)}: 1" for name in [*names, "c7"])
  wide.write_text(f"{{{pairs}}}\n")
  start = time.monotonic()
  (record,) = tables.read_records(csv)
  assert record.fields["c49999"] == "49999"
  with pytest.raises(DataError, match="'c5' occurs twice"):
    list(tables.read_records(twice))
  with pytest.raises(DataError, match="'c7' occurs twice"):
    list(tables.read_records(wide))
  with pytest.raises(DataError, match=r"no 'text'; .* 49,960 more"):
    tables.get_text(record, "text")
  assert time.monotonic() < start + 30
