"""FASTA: records, letters, and what is refused."""

import gzip
from collections import Counter

import pytest
import zstandard

from helpers.read_source import read, read_pieces
from maskedlm.core.errors import CorpusError
from maskedlm.data.sources import fasta, reader


def _read(path, **letters):
  report = Counter()
  found = reader.read_documents(
    f"fasta:{path}",
    text_field="text",
    report=report,
    letters=fasta.Letters(**letters),
  )
  return [document for [document] in found], report


def test_a_record_is_a_document_in_any_file_and_any_lines(tmp_path):
  (tmp_path / "a.fa").write_bytes(
    b">one  of two\r\nACG\r\nTA\r\n\r\n>two\nNN C\n"
  )
  with gzip.open(tmp_path / "b.fasta.gz", "wt") as file:
    file.write(">three\nGG\n")
  packed = zstandard.compress(b">four\nM*\n>five\nA-C")
  (tmp_path / "c.faa.zst").write_bytes(packed)
  expected = [["ACGTA"], ["NNC"], ["GG"], ["M*"], ["A-C"]]
  found, report = read(f"fasta:{tmp_path}")
  assert found == expected
  assert (report["documents"], report["files read"]) == (5, 3)
  assert report["characters"] == 5 + 3 + 2 + 2 + 3
  pieces, found, again = read_pieces(f"fasta:{tmp_path}")
  assert len(pieces) == 3
  assert found == expected
  assert again == report


def test_letters_are_raised_kept_or_dropped_and_counted(tmp_path):
  (tmp_path / "a.fa").write_text(">a\nACgtN\n>b\nRyAA\n>c\nNNN\n")
  small, dropped = "small letters read as capitals", "ambiguous bases dropped"
  found, report = _read(tmp_path / "a.fa")
  assert found == ["ACGTN", "RYAA", "NNN"]
  assert report[small] == 2 + 1
  found, report = _read(tmp_path / "a.fa", read="keep")
  assert found == ["ACgtN", "RyAA", "NNN"]
  assert not report[small]
  found, report = _read(tmp_path / "a.fa", read="drop", bases=True)
  assert found == ["ACGT", "AA"]
  assert report[dropped] == 1 + 2 + 3
  assert report["empty documents dropped"] == 1


@pytest.mark.parametrize("width", [7, 60, 10_000])
def test_a_long_record_is_several_documents(tmp_path, monkeypatch, width):
  monkeypatch.setattr(fasta, "MAX_PART", 100)
  sequence = "ACGGT" * 70
  lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
  path = tmp_path / "a.fa"
  path.write_text("\n".join([">a", *lines, ">b", "AC"]))
  found, report = _read(path)
  assert "".join(found) == sequence + "AC"
  assert [*map(len, found)] == [100, 100, 100, 50, 2]
  assert report["cuts in records over 100 letters"] == 3


@pytest.mark.parametrize(
  ("text", "letters", "message"),
  [
    (">a\nAC\n>b\n>c\nAC", {}, r"a.fa:3: the header 'b' has no sequence"),
    (">a\nAC\n>b", {}, r"a.fa:3: the header 'b' has no sequence"),
    (
      ">a x\nAC\n>a y\nGT",
      {},
      r"a.fa:3: a second record 'a', .*a.fa:1: rename it",
    ),
    ("AC\n>a\nGT", {}, r"a.fa:1: 'AC' before any header"),
    (">\nAC", {}, r"a.fa:1: a header without a name"),
    (">a\nAC1", {}, r"a.fa:2: '1' in the sequence of 'a'; expected letters"),
    (
      ">a\nAC\n>b\nACLE",
      {"bases": True},
      r"a.fa:3: the record 'b' has 'L' at letter 3, an amino acid; .*kind=ch",
    ),
    (
      ">a\nACGTAC\n>b\nACGTA",
      {"least": 6},
      r"a.fa:3: the record .b. has 5 letters \(ACGTA\), fewer than .*k=6",
    ),
    ("\n\n", {}, "holds no text"),
  ],
)
def test_what_is_no_record_is_refused(tmp_path, text, letters, message):
  (tmp_path / "a.fa").write_text(text)
  with pytest.raises(CorpusError, match=message) as error:
    _read(tmp_path / "a.fa", **letters)
  assert "\n" not in str(error.value)
