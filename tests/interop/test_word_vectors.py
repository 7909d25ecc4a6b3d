"""`maskedlm import --from=word2vec`: word vectors as an encoder."""

import numpy as np
import pytest

import maskedlm
from maskedlm.cli import main

VECTORS = {
  "the": [1, 0, -2],
  "bank": [0.5, -1, 4],
  "river": [2, 2, 1],
  "well-known": [9, 9, 9],
  "é": [3, 1, 0],
}


def import_(folder, vectors=VECTORS, *more):
  path, out = folder / "vectors.txt", folder / "out"
  lines = (f"{word} {' '.join(map(str, x))}\n" for word, x in vectors.items())
  path.write_text("".join(lines))
  argv = ["import", "--from=word2vec", str(path), f"--out={out}", *more]
  return main.main(argv), out


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
  code, out = import_(tmp_path_factory.mktemp("static"))
  assert code == 0
  return maskedlm.load(out)


def test_a_word_has_its_vector_in_every_context(imported):
  texts = ["The bank, é", "bank of the River", "the river the bank"]
  made = imported.vectors(texts, unit="word")
  forms = [
    source.text[begin:end]
    for source, (begin, end) in zip(made.sources, made.offsets, strict=True)
  ]
  assert " ".join(forms) == (
    "The bank , é bank of the River the river the bank"
  )
  wanted = [VECTORS.get(form.lower(), [0, 0, 0]) for form in forms]
  np.testing.assert_array_equal(made.values, np.float32(wanted))


def test_a_text_has_the_mean_of_its_words(imported):
  (made,) = imported.embed(["the bank river bank"])
  # [CLS] and [SEP] count as two words with the vector 0, so only the length,
  # not the direction, depends on them.
  np.testing.assert_allclose(made, [4 / 6, 0 / 6, 7 / 6], rtol=1e-6)


def test_it_has_one_layer_of_vectors(imported):
  assert imported.cfg.num_layers == 0
  made = imported.vectors(["the bank"], unit="word", layers=(0,)).values
  last = imported.vectors(["the bank"], unit="word", layers=(-1,)).values
  np.testing.assert_array_equal(made, last)
  with pytest.raises(ValueError, match="layers"):
    imported.vectors(["the bank"], layers=(1,))


def test_what_no_text_gives_is_reported(tmp_path, capsys):
  vectors = {"The": [1.5], "new york": [2], "[UNK]": [3], "the": [4], "1": [5]}
  code, out = import_(tmp_path, vectors, "--words=4")
  printed = capsys.readouterr()
  assert code == 0 and "4 words, 1 numbers" in printed.out
  assert "1 of 4" in printed.err and "new york" in printed.err
  model = maskedlm.load(out)
  assert not any(model.tokenizer.tokens(i) == "1" for i in range(8))
  x = model.vectors(["The 1 the [MASK]"], unit="word").values
  # With a capital in the file, texts keep theirs; it has a vector for [UNK].
  np.testing.assert_array_equal(x[:3, 0], [1.5, 3, 4])


@pytest.mark.parametrize(
  ("vectors", "more", "wanted"),
  [
    ({"##s": [1]}, (), "##"),
    ({"a": [1]}, ("--part=encoder",), "--part"),
    ({"a": [1]}, ("--words=-1",), "--words"),
    ({}, (), "empty"),
  ],
)
def test_bad_input_is_one_line(tmp_path, capsys, vectors, more, wanted):
  code, out = import_(tmp_path, vectors, *more)
  line = capsys.readouterr().err
  assert code == 2 and wanted in line and line.count("\n") == 1
  assert not out.exists()
