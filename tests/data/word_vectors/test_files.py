"""Files of word vectors: text and binary, as gensim reads and writes them."""

import gzip

import numpy as np
import pytest

from maskedlm.core.errors import DataError
from maskedlm.data.word_vectors import files

TEXT = "sun 1 -2.5 0.125\nmoon 3 4e2 -5\n"
VALUES = [[1, -2.5, 0.125], [3, 400, -5]]
BINARY = b"2 3\n" + b"".join(
  word + b" " + np.array(x, "<f4").tobytes() + b"\n"
  for word, x in zip((b"sun", b"moon"), VALUES, strict=True)
)


def write(folder, content):
  path = folder / "vectors"
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  return str(path)


def read(path, lines=None, **options):
  lines = [] if lines is None else lines
  return files.read_word_vectors(path, log=lines.append, **options)


@pytest.mark.parametrize(
  "content",
  [
    TEXT,
    f"2 3\n{TEXT}",
    f"2 3\r\n{TEXT.replace(chr(10), ' ' + chr(13) + chr(10))}\n",  # fastText.
    BINARY,
    BINARY.replace(b"\nmoon", b"moon"),
  ],
  ids=["glove", "word2vec", "crlf", "binary", "binary without newlines"],
)
def test_forms(tmp_path, content):
  made = read(write(tmp_path, content))
  assert made.words == ("sun", "moon")
  assert made.values.dtype == np.float32
  np.testing.assert_array_equal(made.values, np.float32(VALUES))


def test_compressed_and_limited(tmp_path):
  path = tmp_path / "vectors.txt.gz"
  path.write_bytes(gzip.compress(f"9 3\n{TEXT}".encode()))
  made = read(str(path), most=1)  # The rest, and its count, are not read.
  assert made.words == ("sun",)
  for content in ("5 3\n", f"3 3\n{TEXT}"):
    with pytest.raises(DataError, match="fetch it again"):
      read(write(tmp_path, content), most=3)


def test_words_may_have_spaces_and_any_letters(tmp_path):
  made = read(write(tmp_path, "naïve 7 8\n. . . 3 4\n\u00a0 5 6\n"))
  assert made.words == ("naïve", ". . .", "\u00a0")
  np.testing.assert_array_equal(made.values, [[7, 8], [3, 4], [5, 6]])


def test_of_a_repeated_word_the_first_vector_counts(tmp_path):
  lines = []
  content = f"5 3\n{TEXT}sun 7 7 7\nmoon 8 8 8\nsun 9 9 9\n"
  made = read(write(tmp_path, content), lines)
  np.testing.assert_array_equal(made.values, np.float32(VALUES))
  (line,) = lines
  assert "3 lines" in line and "'sun'" in line


@pytest.mark.parametrize(
  ("content", "wanted"),
  [
    ("", "empty"),
    (" \n", "empty"),
    ("0 3\n", "0 words"),
    ("word\n", "no number"),
    (f"3 3\n{TEXT}", "3 words, but it has 2"),
    (f"1 3\n{TEXT}", "1 words, but it has 2"),
    (f"{TEXT}earth 1 2\n", "vectors:3"),
    (f"{TEXT}earth 1 x 2\n", "vectors:3"),
    (f"2 3\n{TEXT}earth 1 nan 2\n", "vectors:4"),
    (f"{TEXT} 1 2 3\n", "vectors:3"),
    (TEXT.encode() + b"\xff\xfe 1 2 3\n", "UTF-8"),
    (BINARY[:-4], "damaged"),
    (BINARY.replace(b"2 3", b"3 3"), "3 words, but it has 2"),
    (BINARY.replace(b"moon", b"mo\xffn"), "word 2 is not UTF-8"),
    (BINARY.replace(np.float32(400).tobytes(), b"\0\0\xc0\x7f"), "finite"),
    (b"PK\x03\x04 something", "neither"),
  ],
)
def test_bad_files(tmp_path, content, wanted):
  with pytest.raises(DataError, match=wanted) as error:
    read(write(tmp_path, content))
  assert "\n" not in str(error.value)


def test_equal_gensim(tmp_path):
  models = pytest.importorskip("gensim.models")
  words = ("the", "of", "é日", "well-known")
  x = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
  ours = tmp_path / "ours.txt"
  files.write_word_vectors(ours, files.WordVectors(words, x))
  theirs = models.KeyedVectors.load_word2vec_format(str(ours))
  assert tuple(theirs.index_to_key) == words
  np.testing.assert_array_equal(theirs.vectors, x)
  for binary in (False, True):
    path = str(tmp_path / f"theirs{binary}")
    theirs.save_word2vec_format(path, binary=binary)
    made = read(path)
    assert made.words == words
    np.testing.assert_allclose(made.values, x, rtol=1e-6)
