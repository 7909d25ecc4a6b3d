"""Refused files: a table of reader, file, content, and parts of the error."""

import io
import json

import numpy as np
import pytest

from helpers import sense_files
from maskedlm.inference.plots import isotropy as isotropy_plot
from maskedlm.inference.plots import training_curves
from maskedlm.inference.score import minimal_pairs
from maskedlm.inference.vectors import isotropy, standardise
from maskedlm.inference.word_senses import data, inputs, senses
from maskedlm.inference.words_in_context import pairs

READERS = {
  "senses": lambda path: list(data.read_sentences(path)),
  "first senses": data.read_first_senses,
  "marked words": lambda path: list(inputs.read_marked_words([path])),
  "pairs": lambda path: list(pairs.read_pairs([path])),
  "wic": pairs.read_wic,
  "minimal pairs": lambda path: minimal_pairs.read_pairs([path]),
  "sts": isotropy.read_pairs,
  "isotropy table": isotropy_plot.read_table,
  "metrics": lambda path: training_curves.read_run(path.rpartition("/")[0]),
  "standardiser": standardise.load_standardiser,
  "sense vectors": senses.load_senses,
}
PLACE = {
  "word": "place",
  "idx": 0,
  "label": True,
  "sentence1": "In my place .",
  "start1": 6,
  "end1": 11,
  "sentence2": "Places fill",
  "start2": 0,
  "end2": 6,
}
# A pair of WiC's, and a line of BLiMP's.
WIC = "place\tN\t2-0\tIn my place he came .\tPlaces fill up .\n"
GOOD = {"sentence_good": "She sees herself.", "sentence_bad": "She him."}
HEADER = "index\tsentence1\tsentence2\tscore\n"
XML, KEYS = sense_files.XML, sense_files.KEYS


def lines(*objects):
  return "".join(f"{json.dumps(each)}\n" for each in objects)


def npz(mean, stddev):
  file = io.BytesIO()
  np.savez(file, mean=mean, stddev=stddev, about=np.array("{}"))
  return file.getvalue()


TABLE = [
  ("senses", "f", "a\t_\t_\t_\nb\t_\t_\n", "f:2: 3 columns between tabs; exp"),
  ("senses", "f", "a\ta\t\ts.1\n", "f:1: a word with a sense has no part of"),
  ("senses", "f", " \ta\tN\ts.1\n", "f:1: a word with a sense has no token"),
  ("senses", "f", "a\t_\t_\t_\n", "f: no word with a sense; expected"),
  ("senses", "f", "", "f: no word with a sense; expected"),
  ("senses", "f", "<corpus></corpus>", "f:1: 1 columns ... XML in a file NA"),
  ("senses", "none.tsv", None, "none.tsv: No such file"),
  ("first senses", "f", "bank\tNOUN\n", "f:1: expected lemma, part of speech"),
  ("first senses", "f", "b%1:14:00:: 1 1 0\nb\n", "f:2: neither lemma"),
  ("marked words", "f", "a *b c", "f:1: 1 asterisks: one is not closed"),
  ("marked words", "f", "a ** b", "f:1: ** is not a marked word"),
  ("marked words", "f", "*a|b|c|d*", "f:1: *a|b|c|d* is not a marked word"),
  (
    *("marked words", "f.jsonl", '\n{"tokens": ["a"], "target": 1}'),
    "f.jsonl:2: target=1; expected the index",
  ),
  ("pairs", "f.txt", "a *cat*\n", "f.txt:1: 1 columns; expected two"),
  ("pairs", "f.jsonl", '{"text": "*a*"}', "f.jsonl:1: no 'text_b'; there"),
  ("pairs", "f", "the *bank\t*a*", "f:1: 1 asterisks: one is not closed"),
  ("pairs", "f", "the * * bank\t*a*", "f:1: the marked word of"),
  ("wic", "f.data.txt", "a\tN\t0-0\ta b\n", "f.data.txt:1: 4 columns"),
  ("wic", "f.data.txt", "a\tN\t0\ta\ta\n", "f.data.txt:1: '0'; expected i-j"),
  ("wic", "f.data.txt", "a\tN\t0-1\ta\ta\n", "f.data.txt:1: no word 1 in 'a'"),
  *(
    ("wic", "f.jsonl", lines({**PLACE, **change}), f"f.jsonl:1: {message}")
    for change, message in (
      ({"label": "T"}, "'label' is 'T'; expected true or false"),
      ({"end2": 12}, "start2=0, end2=12; expected the characters"),
    )
  ),
  *(
    ("minimal pairs", "f.jsonl", lines(GOOD, line), f"f.jsonl:2: ... {message}")
    for line, message in (
      ({"sentence_good": "a"}, "sentence_bad"),
      ({"sentence_good": "a", "sentence_bad": ""}, "sentence_bad is empty"),
      ({**GOOD, "sentence_good": ["a"]}, "sentence_good is a list"),
    )
  ),
  ("minimal pairs", "f.jsonl", "\n", "f.jsonl"),
  (
    "sts",
    "f.tsv",
    f"{HEADER}0\tA\tB\t1\n1\tA\tB\tnan\n",
    "f.tsv:3: label 'nan",
  ),
  (
    *("sts", "f.tsv", "index\tsentence1\tsentence2\n0\tA\tB\n"),
    "f.tsv:2: no 'score' or 'label'; there are",
  ),
  *(
    ("isotropy table", "f.json", text, "f.json: not a table of layers; exp")
    for text in ("", "[]", "{}", "[1]", '[{"layer": 0}]')
  ),
  (
    *("metrics", "metrics.jsonl", lines({"step": 1, "loss": 2.0}, [1], {})),
    "metrics.jsonl:2: not a line of",
  ),
  ("metrics", "metrics.jsonl", '{"ste', "no step is logged yet"),
  *(
    (reader, "f.npz", content, f"not written by `maskedlm {verb}`")
    for content in (b"", b"PK\x03\x04", b"text", sense_files.COLUMNS)
    for reader, verb in (
      ("standardiser", "embed --fit"),
      ("sense vectors", "word-senses train"),
    )
  ),
  *(
    ("standardiser", "f.npz", npz(mean, stddev), f"ed --fit` ({message}")
    for mean, stddev, message in (
      (np.zeros(3), np.zeros(3, "f4"), "mean is float64[3]"),
      (np.zeros(3, "f4"), np.zeros(2, "f4"), "stddev is float32[2]"),
      (np.array("a"), np.zeros(2, "f4"), "mean is <U1[]"),
    )
  ),
]
# A file with another beside it: (reader, ending, content, ending, content).
PAIRED = [
  ("wic", ".data.txt", WIC, ".gold.txt", "yes\n", "'yes'; expected T or F"),
  *(
    ("senses", ".data.xml", xml, ".gold.key.txt", keys, message)
    for xml, keys, message in (
      (XML.replace("/se", "/"), KEYS, "f.data.xml:9: not XML: mismatched"),
      (
        *(XML.replace('lemma="sit" ', ""), KEYS),
        "f.data.xml:7: a word with a sense has no lemma (br-a01.s0",
      ),
      (XML, f"{KEYS}x y", "key.txt: 1 keys have no instance in"),
      (XML, "a b\na c\n", "key.txt:2: the instance a is repeated"),
      (XML, "\n", "f.data.xml:6: the instance 'br-a01.s000.t000' has no key"),
      (XML, None, "f.gold.key.txt: no such file"),
    )
  ),
]


def write(path, content):
  if content is not None:
    path.write_bytes(
      content if isinstance(content, bytes) else content.encode()
    )
  return str(path)


def refused(reader, path, message):
  with pytest.raises(ValueError) as found:
    READERS[reader](path)
  line = str(found.value)
  assert all(part.strip() in line for part in message.split("..."))
  assert "\n" not in line and found.value.exit_code == 2


@pytest.mark.parametrize(("reader", "name", "content", "message"), TABLE)
def test_refused(tmp_path, reader, name, content, message):
  refused(reader, write(tmp_path / name, content), message)


@pytest.mark.parametrize(
  ("reader", "ending", "content", "beside", "other", "message"), PAIRED
)
def test_refused_with_the_file_beside_it(
  tmp_path, reader, ending, content, beside, other, message
):
  write(tmp_path / f"f{beside}", other)
  refused(reader, write(tmp_path / f"f{ending}", content), message)
