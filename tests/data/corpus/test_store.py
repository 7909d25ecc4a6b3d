"""The corpus on disk: reading returns what was written; damage is found."""

import collections
import errno
import hashlib
import json
import os
import pathlib
import re

import numpy as np
import pytest

from helpers import damage
from maskedlm.core.errors import ConfigError, CorpusError, StorageError
from maskedlm.data.corpus import concat, manifest, shards, store
from maskedlm.data.tokenizers import tokenizer
from maskedlm.runtime import output_files


@pytest.fixture(scope="module")
def tiny_tokenizer():
  return tokenizer.train_tokenizer(
    ["a boy, a girl, a dog and a cat met on a hill at noon"] * 3,
    kind="wordpiece",
    vocab_size=50,
    lowercase=True,
  )


def ids(*values):
  return np.array(values, np.int32)


# The first two train documents share a shard of at most 7 tokens.
DOCUMENTS = [
  ("train", [ids(5, 6, 7), ids(8)]),
  ("heldout", [ids(9)]),
  ("train", [ids(9, 10)]),
  ("train", [ids(6, 6), ids(7, 7, 7)]),
]


@pytest.fixture
def write(tiny_tokenizer, tmp_path):
  """Writes documents to tmp_path / name."""

  def write(documents, name="corpus", *, shard_tokens=7, options=(), **changed):
    return store.write_corpus(
      tmp_path / name,
      documents,
      tokenizer=tiny_tokenizer._replace(**changed),
      shard_tokens=shard_tokens,
      options=dict(options),
      report=collections.Counter(oddities=3),
    )

  return write


def everything(column):
  return concat.take(column, np.arange(concat.size(column))).tolist()


def test_a_corpus_of_version_1_is_read_as_before(write, monkeypatch):
  corpus = write(DOCUMENTS)
  # The tokenizer of version 1 knew of no scripts without spaces.
  follows = np.arange(corpus.tokenizer.vocab_size) < 9
  load = store.open_tokenizer
  monkeypatch.setattr(
    store,
    "open_tokenizer",
    lambda path: load(path)._replace(follows_space=follows),
  )
  monkeypatch.setattr(manifest, "VERSION", 1)
  old = write(DOCUMENTS, "old")
  assert old.meta["version"] == 1 and corpus.meta["version"] == 2
  assert store.verify_corpus(old.path) == []
  # The same arrays: a run can be resumed with either.
  assert old.fingerprint == corpus.fingerprint
  assert old.tokenizer.starts_word.tolist() == follows.tolist()
  new = store.open_corpus(corpus.path).tokenizer
  assert new.starts_word.tolist() == corpus.tokenizer.starts_word.tolist()


def test_reading_returns_what_was_written(write):
  corpus = write(DOCUMENTS, options={"corpus.source": "text:x"})
  assert everything(corpus.train.tokens) == [5, 6, 7, 8, 9, 10, 6, 6, 7, 7, 7]
  assert everything(corpus.train.sentences) == [0, 3, 4, 6, 8, 11]
  assert everything(corpus.train.documents) == [0, 2, 3, 5]
  assert everything(corpus.heldout.tokens) == [9]
  assert everything(corpus.heldout.sentences) == [0, 1]
  assert everything(corpus.heldout.documents) == [0, 1]
  assert corpus.token_counts[:11].tolist() == [0, 0, 0, 0, 0, 1, 3, 4, 1, 1, 1]
  assert corpus.token_counts.shape == (corpus.tokenizer.vocab_size,)
  assert corpus.token_counts.dtype == np.int64
  assert corpus.meta["splits"]["train"]["shards"] == [
    {"tokens": 6, "sentences": 3, "documents": 2},
    {"tokens": 5, "sentences": 2, "documents": 1},
  ]
  assert corpus.meta["report"] == {"oddities": 3}
  assert corpus.meta["options"] == {"corpus.source": "text:x"}
  assert store.verify_corpus(corpus.path) == []


def test_take_reads_shards_as_one_array(write):
  rng = np.random.default_rng(7)
  documents = [
    ("train", [rng.integers(5, 30, rng.integers(1, 9)) for _ in range(n)])
    for n in rng.integers(1, 6, 40)
  ]
  corpus = write(documents, shard_tokens=50)
  whole = np.concatenate([s for _, sentences in documents for s in sentences])
  assert len(corpus.train.tokens.arrays) > 5
  for shape in [(3, 5, 7), (13,), (), (0, 4)]:
    indices = rng.integers(0, len(whole), shape)
    taken = concat.take(corpus.train.tokens, indices)
    np.testing.assert_array_equal(taken, whole[indices])
    assert taken.dtype == np.uint16
  lengths = [len(s) for _, sentences in documents for s in sentences]
  starts = np.concatenate([[0], np.cumsum(lengths)])
  indices = rng.integers(0, len(starts), (11, 3))
  taken = concat.take(corpus.train.sentences, indices)
  np.testing.assert_array_equal(taken, starts[indices])
  assert taken.dtype == np.int64
  for outside in (-1, len(whole)):
    with pytest.raises(IndexError, match=str(len(whole) - 1)):
      concat.take(corpus.train.tokens, [0, outside])


def test_a_full_disk_is_an_error_and_leaves_nothing(
  write, tmp_path, monkeypatch
):
  def full(file):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr(output_files, "sync", full)
  with pytest.raises(StorageError, match=r"No space left.*make room") as error:
    write(DOCUMENTS)
  assert error.value.exit_code == 74  # For which a job is restarted.
  assert os.listdir(tmp_path) == []


def test_remains_of_a_killed_write_are_removed(write, tmp_path):
  work = pathlib.Path(store.work_folder(tmp_path / "corpus"))
  (work / "tokenizer").mkdir(parents=True)
  (work / "tokenizer" / "tokenizer.model").write_bytes(b"of another kind")
  (work / "train-00007.tokens.npy").write_bytes(b"part")
  corpus = write(DOCUMENTS)
  assert os.listdir(tmp_path) == ["corpus"]
  assert "train-00007.tokens.npy" not in corpus.meta["files"]
  assert not os.path.exists(f"{corpus.path}/train-00007.tokens.npy")


def test_existing_files_are_not_overwritten(write, tmp_path):
  (tmp_path / "corpus").mkdir()
  write(DOCUMENTS)  # An empty directory may be replaced.
  with pytest.raises(CorpusError, match="already exists; move it away"):
    write(DOCUMENTS)
  assert store.verify_corpus(tmp_path / "corpus") == []
  (tmp_path / "file").write_text("text")
  with pytest.raises(CorpusError, match="already exists; move it away"):
    write(DOCUMENTS, "file")


def test_the_fingerprint_is_of_the_data_alone(write):
  one = write(DOCUMENTS, "one", options={"corpus.source": "text:here"})
  two = write(DOCUMENTS, "two", options={"corpus.source": "text:there"})
  assert one.fingerprint == two.fingerprint
  changed = [*DOCUMENTS[:-1], ("train", [ids(6, 6), ids(7, 7, 8)])]
  assert write(changed, "three").fingerprint != one.fingerprint
  moved = [*DOCUMENTS[:-1], ("train", [ids(6, 6, 7), ids(7, 7)])]
  assert write(moved, "four").fingerprint != one.fingerprint


def edit_meta(path, **fields):
  """Changes meta.json and its checksum."""
  file = pathlib.Path(path, "meta.json")
  meta = json.loads(file.read_text()) | fields
  meta["checksum"] = manifest.checksum(meta)
  file.write_text(json.dumps(meta))


def test_errors_of_opening_give_the_reason_and_the_remedy(write, tmp_path):
  with pytest.raises(CorpusError, match=r"no such corpus.*maskedlm prepare"):
    store.open_corpus(tmp_path / "nowhere")
  path = pathlib.Path(write(DOCUMENTS).path)
  unfinished = path.rename(f"{path}.tmp")
  with pytest.raises(CorpusError, match=r"not a finished corpus.*again"):
    store.open_corpus(unfinished)
  unfinished.rename(path)

  tokens = path / "train-00001.tokens.npy"
  content = tokens.read_bytes()
  tokens.write_bytes(content[:-2])
  with pytest.raises(CorpusError, match="has 136 bytes, expected 138; restore"):
    store.open_corpus(path)
  tokens.unlink()
  with pytest.raises(CorpusError, match=r"train-00001\.tokens\.npy is missing"):
    store.open_corpus(path)
  tokens.write_bytes(content)

  meta = path / "meta.json"
  text = meta.read_text()
  for wrong, match in (
    (text[:-9], "damaged"),
    (text.replace('"oddities": 3', '"oddities": 4'), "damaged.*checksum"),
    ("[]", "format"),
    (
      text.replace('"version": 2', '"version": 3'),
      "version 3.*reads versions 1 and 2",
    ),
  ):
    meta.write_text(wrong)
    with pytest.raises(CorpusError, match=match):
      store.open_corpus(path)
    assert len(store.verify_corpus(path)) == 1
  meta.unlink()
  with pytest.raises(CorpusError, match="not a finished corpus"):
    store.open_corpus(path)


@pytest.mark.parametrize("replace", damage.REPLACED)
@pytest.mark.parametrize(
  "name",
  [
    *("meta.json", "token_counts.npy", "tokenizer/tokenizer.json", "tokenizer"),
    *("train-00000.tokens.npy", "heldout-00000.sentences.npy"),
  ],
)
def test_what_stands_in_place_of_a_file_is_one_line(write, name, replace):
  path = write(DOCUMENTS).path
  replace(pathlib.Path(path, name))
  with pytest.raises((CorpusError, ConfigError)) as error:
    store.open_corpus(path)
  (found, *_) = store.verify_corpus(path)
  for line in (str(error.value), found):
    assert "\n" not in line and line.startswith(path)
    removed = name == "meta.json" and replace == damage.remove
    assert removed or (name in line and "restore it from a copy" in line)


@pytest.mark.parametrize("column", ["tokens", "sentences", "documents"])
def test_a_wrong_header_is_found_when_the_corpus_is_opened(write, column):
  """numpy would take some of them for another type or size."""
  path = write(DOCUMENTS).path
  name = f"train-00000.{column}.npy"
  file = pathlib.Path(path, name)
  whole = file.read_bytes()
  for bit in range(0, 8 * 128, 7):
    content = bytearray(whole)
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    with pytest.raises(CorpusError, match=f"header of {name} is damaged"):
      store.open_corpus(path)
  file.write_bytes(whole)
  store.open_corpus(path)


def test_a_disk_that_fails_while_reading_may_be_tried_again(write, monkeypatch):
  path = write(DOCUMENTS).path

  def fail(*_, **__):
    raise OSError(errno.EIO, "Input/output error", f"{path}/token_counts.npy")

  monkeypatch.setattr(shards, "load_array", fail)
  with pytest.raises(StorageError, match=r"token_counts\.npy can't be read"):
    store.open_corpus(path)


def test_verify_finds_a_flipped_bit_in_any_file(write):
  corpus = write(DOCUMENTS)
  names = corpus.meta["files"]
  assert len(names) >= 11  # 3 shards of 3, the counts, the tokenizer.
  for name in names:
    file = pathlib.Path(corpus.path, name)
    content = bytearray(file.read_bytes())
    for position in (0, len(content) // 2, len(content) - 1):
      content[position] ^= 16
      file.write_bytes(content)
      problems = store.verify_corpus(corpus.path)
      assert len(problems) == 1
      assert f"{name} is damaged" in problems[0]
      content[position] ^= 16
    file.write_bytes(content)
  assert store.verify_corpus(corpus.path) == []


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_verify_names_an_id_that_no_text_gives(write, split):
  corpus = write(DOCUMENTS)
  path = pathlib.Path(corpus.path)
  vocab_size, special = corpus.meta["vocab_size"], corpus.tokenizer.special
  for index, problem in (
    (vocab_size, f"id {vocab_size}, but the vocabulary has {vocab_size}"),
    (special.mask, f"token 0 is id {special.mask}, a special token"),
    (special.unk, None),
  ):
    name = f"{split}-00000.tokens.npy"
    tokens = np.load(path / name)
    tokens[0] = index
    np.save(path / name, tokens)
    edit_meta(path, files=_hashed(path, corpus.meta["files"]))
    meta = json.loads((path / "meta.json").read_text())
    edit_meta(path, fingerprint=manifest.fingerprint(meta))
    found = store.verify_corpus(path)
    if problem is None:  # An unknown character is text.
      assert not [line for line in found if name[:-4] in line]
    else:
      assert len(found) == 1 and name in found[0] and problem in found[0]


def _hashed(path, files):
  return {
    name: {
      "bytes": (path / name).stat().st_size,
      "sha256": hashlib.sha256((path / name).read_bytes()).hexdigest(),
    }
    for name in files
  }


@pytest.mark.parametrize(
  ("column", "values", "problem"),
  [
    ("tokens", [5, 6, 7, 12, 9, 10], "id 12, but the vocabulary has 12"),
    ("tokens", [5, 6, 7, 8, 9], r"shape \(5,\), expected \(6,\)"),
    ("sentences", [0, 4, 3], "starts do not increase"),
    ("sentences", [0, 3, 3], "starts do not increase"),
    ("sentences", [1, 3, 4], "first start is not 0"),
    ("sentences", [0, 3, 6], "start is past the last of the tokens"),
    ("documents", [0, 3], "start is past the last of the sentences"),
  ],
)
def test_a_wrong_shard_is_described(tmp_path, column, values, problem):
  arrays = {
    "tokens": [5, 6, 7, 8, 9, 10],
    "sentences": [0, 3, 4],
    "documents": [0, 2],
  }
  counts = {name: len(array) for name, array in arrays.items()}

  def problems(arrays):
    for name, array in arrays.items():
      np.save(tmp_path / f"train-00000.{name}.npy", np.array(array, np.uint32))
    return list(
      shards.shard_problems(
        tmp_path, "train-00000", counts=counts, vocab_size=12
      )
    )

  assert problems(arrays) == []
  found = problems({**arrays, column: values})
  assert len(found) >= 1
  assert re.search(f"{column}.npy: .*{problem}", found[0])


def test_a_row_with_an_id_of_no_token_is_refused(write):
  corpus = write(DOCUMENTS)
  size = corpus.meta["vocab_size"]
  rows = [np.array([[0, size - 1]]), np.array([[0, 5], [size, 1]])]
  batch_at = store.check_batches(
    lambda split, step: {"input_ids": rows[step]}, corpus
  )
  assert batch_at("train", 0)["input_ids"] is rows[0]
  with pytest.raises(CorpusError, match=f"id {size}.*has {size};.*--verify"):
    batch_at("train", 1)
