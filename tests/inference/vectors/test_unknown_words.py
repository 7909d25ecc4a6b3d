"""How many words of a text the vocabulary lacks."""

from collections import Counter

import numpy as np
import pytest

import maskedlm
from maskedlm.cli import main
from maskedlm.data.batches.text_pairs import PairRow
from maskedlm.data.labelled.text_lines import Text, text_of_words
from maskedlm.finetune.common import multi_sequence
from maskedlm.finetune.contract import Rows
from maskedlm.finetune.row_checks import unknown_notes
from maskedlm.inference.vectors import unknown_words


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
  folder = tmp_path_factory.mktemp("static")
  (folder / "v.txt").write_text("the 1 2\nbank 3 4\n. 5 6\n")
  out = folder / "run"
  argv = ["import", "--from=word2vec", str(folder / "v.txt"), f"--out={out}"]
  assert main.main(argv) == 0
  return out


def test_words_are_counted_as_they_are(workdir, capsys):
  counts = Counter()
  texts = [Text("The bank, the Sea."), text_of_words(["sea", "New York"])]
  assert list(unknown_words.count_words(texts, counts)) == texts
  assert counts["The"] == counts["Sea"] == counts["New York"] == 1
  tokenizer = maskedlm.load(workdir).tokenizer
  capsys.readouterr()
  unknown_words.log_unknown(tokenizer, counts)
  line = capsys.readouterr().err  # A comma, Sea, sea, New York.
  assert line.startswith("4 of 8 words (50.0%)") and "Sea" in line
  unknown_words.log_unknown(tokenizer, Counter(the=3))
  assert not capsys.readouterr().err


def test_the_verbs_report_them(workdir, tmp_path, capsys):
  main.main(["similarity", f"--checkpoint={workdir}", "*the*", "a *sea* ."])
  assert "1 of 2 words (50.0%)" in capsys.readouterr().err
  (tmp_path / "t.txt").write_text("the bank by the bank.\nThe bank\n")
  argv = ["isotropy", f"--checkpoint={workdir}", f"--input={tmp_path}/t.txt"]
  assert main.main(argv) == 0
  assert "1 of 8 words (12.5%)" in capsys.readouterr().err


def test_tokens_of_labelled_data_are_counted(workdir):
  tokenizer = maskedlm.load(workdir).tokenizer
  ids = [tokenizer.encode(text).ids for text in ("the sea", "bank by the sea")]
  rows = Rows({"input_ids": ids}, {}, np.arange(2))
  (note,) = unknown_notes(rows, tokenizer)
  assert note.startswith("3 of 6 tokens (50.0%)")
  assert not list(
    unknown_notes(rows._replace(tokens={"input_ids": ids[:0]}), tokenizer)
  )


def test_tokens_of_rows_of_several_texts_are_all_counted(workdir):
  tokenizer = maskedlm.load(workdir).tokenizer
  texts = [tokenizer.encode(text).ids for text in ("the sea", "by the sea")]
  rows = multi_sequence.stack_rows(
    [[PairRow(ids, 0 * ids, len(ids)) for ids in texts]], tokenizer.special.pad
  )
  (note,) = unknown_notes(rows, tokenizer)
  assert note.startswith("3 of 5 tokens (60.0%)")
