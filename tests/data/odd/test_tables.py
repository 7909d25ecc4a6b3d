"""Hundreds of odd tables: rows in are rows used and rows reported."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import odd_tables
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.finetune import config as configs

_LEFT_OUT = re.compile(r"([\d,]+) (?:row|passage|repetition)[^:]* left out")


def _text(example):
  for name in ("text", "context"):
    if hasattr(example, name):
      return getattr(example, name)
  return example.passages[0]


def _read(task, path):
  options = {"regression": {"regression": True}}.get(task, {})
  name = "classification" if task == "regression" else task
  return configs.make_task(name, options).read_examples(str(path))


# Tables are read by one reader, so few programs suffice for the other tasks.
FILES = [("classification", program) for program in odd_tables.PROGRAMS] + [
  (task, program)
  for task in odd_tables.TABLES
  if task != "classification"
  for program in ("pandas", "glue", "lines", "parquet")
]


@pytest.mark.parametrize(("task", "program"), FILES)
def test_rows_in_are_rows_used_and_reported(task, program, tmp_path, capsys):
  count = 0
  for file in odd_tables.make_files(task, program):
    path = tmp_path / file.name
    path.write_bytes(file.data)
    capsys.readouterr()
    try:
      examples = _read(task, path)
    except DataError as error:
      assert "\n" not in str(error) and file.name in str(error)
      assert file.texts is None, f"{file.name}: {error}"
      continue
    finally:
      told = capsys.readouterr().err
      count += 1
    reported = sum(int(n.replace(",", "")) for n in _LEFT_OUT.findall(told))
    if file.rows >= 0:
      rows = examples
      if task == "retrieval":  # A row makes an example for each right passage.
        rows = {(example.where, example.query) for example in examples}
      assert len(rows) + reported == file.rows, (file.name, told)
    if file.texts is not None:
      assert list(map(_text, examples)) == file.texts, file.name
    assert all(_text(x).strip() or "empty" in told for x in examples)
  assert count > 20


# --- Properties ---

# No lone surrogates (UTF-8 has none), and no \r: csv has it as a line end.
_texts = st.text(
  st.characters(blacklist_categories=("Cs",), blacklist_characters="\r\0"),
  min_size=1,
  max_size=20,
).filter(lambda text: text.strip() and not text.startswith("\ufeff"))
_rows = st.lists(
  st.tuples(_texts, st.sampled_from(["a", "b c", "1"])), min_size=1, max_size=5
)
_WRITERS = sorted(set(odd_tables.PROGRAMS) - {"glue", "glue_txt"})


@pytest.mark.parametrize("program", _WRITERS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(rows=_rows)
def test_what_is_written_is_read(program, rows, tmp_path_factory):
  suffix, write = odd_tables.PROGRAMS[program]
  table = odd_tables.Table(
    ["text", "label"], [list(row) for row in rows], "text", "label"
  )
  path = tmp_path_factory.getbasetemp() / f"{program}{suffix}"
  data = write(table)
  path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
  found = [
    (tables.get_text(record, "text"), tables.get_field(record, "label"))
    for record in tables.read_records(path)
  ]
  assert found == rows
