"""Corpora read in place: the same bits as a folder's, whatever the cache."""

import collections
import errno
import pathlib
import tracemalloc

import fsspec
import numpy as np
import pytest

from helpers import damage, web_server
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError, StorageError
from maskedlm.data.batches import pair_rows, text_rows
from maskedlm.data.corpus import concat, shards, store, streamed
from maskedlm.data.tokenizers import tokenizer
from maskedlm.runtime import buckets

MEGABYTE = 0.001  # GB.


def documents(rng, count, vocab_size):
  """Yields random documents of 1 to 60 sentences of 1 to 70 tokens."""
  for i in range(count):
    ends = np.cumsum(rng.integers(1, 70, rng.integers(1, 60)))
    text = rng.integers(5, vocab_size, ends[-1])
    yield "heldout" if i % 9 == 4 else "train", np.split(text, ends[:-1])


def write(folder, *, parts=(), dtype_ids=0):
  made = tokenizer.train_tokenizer(
    ["a boy, a girl, a dog and a cat met on a hill at noon"] * 3,
    kind="wordpiece",
    vocab_size=50,
    lowercase=True,
  )
  size = max(made.vocab_size, dtype_ids)
  return store.write_corpus(
    folder,
    documents(np.random.default_rng(7), 1_300, made.vocab_size),
    tokenizer=made._replace(vocab_size=size),
    shard_tokens=301_117,
    options={},
    report=collections.Counter(),
    domains=parts,
  )


@pytest.fixture(scope="module")
def local(tmp_path_factory):
  """Returns a corpus of 1.4 million tokens, 47 blocks in 6 files."""
  return write(tmp_path_factory.mktemp("served") / "corpus")


@pytest.fixture
def cache(monkeypatch, tmp_path):
  """Uses an empty cache, and waits for nothing; returns the blocks' folder."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  monkeypatch.setattr(buckets, "PAUSES", (0,) * 6)
  return tmp_path / "cache" / "maskedlm" / "blocks"


@pytest.fixture
def web(local, cache):
  pytest.importorskip("aiohttp")
  with web_server.serve(pathlib.Path(local.path).parent) as found:
    yield found


def stream(address, cache_gb=MEGABYTE, log=None):
  lines = [] if log is None else log
  return streamed.open_corpus(address, cache_gb=cache_gb, log=lines.append)


def on_disk(folder):
  return sum(p.stat().st_size for p in folder.glob("*/*"))


def assert_same_batches(one, other, steps=(0, 1, 17)):
  for step in steps:
    for split in ("train", "heldout"):
      a, b = (
        x.batch_at(split, step % x.num_heldout_batches) for x in (one, other)
      )
      assert a.keys() == b.keys()
      for name, values in a.items():
        np.testing.assert_array_equal(values, b[name])
        assert values.dtype == b[name].dtype


KINDS = {
  "documents": text_rows.document_batches,
  "packed": lambda *args: text_rows.document_batches(*args, pack=True),
  "stream": lambda *args: text_rows.full_sentence_batches(
    *args, isolate_documents=True
  ),
  "pairs": lambda *args: pair_rows.nsp_batches(*args, short_share=0.1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_a_folder(local, web, cache, kind):
  config = defaults.default()
  config.data.length, config.data.batch_size = 97, 24
  config.train.eval_rows = 33
  other = stream(f"{web.address}/corpus")
  assert other.fingerprint == local.fingerprint
  make = KINDS[kind]
  tokens = sum(len(array) for array in local.train.tokens.arrays)
  assert tokens > 1_200_000 and len(local.train.tokens.arrays) == 5
  for shard in ((0, 1), (2, 3)):
    one, two = (make(config, corpus, shard) for corpus in (local, other))
    assert_same_batches(one, two)
    assert 0 < on_disk(cache) <= 1_000_000
  # Blocks came one by one, and nothing else of the tokens' files.
  requests, num_bytes = web.sent(shards.TOKENS)
  assert num_bytes <= requests * shards.HASHED
  assert web.sent(".sentences.npy")[0] == 6


def test_a_cache_that_holds_all_asks_for_each_block_once(local, web, cache):
  address = f"{web.address}/corpus"
  sizes = [
    file["bytes"]
    for name, file in local.meta["files"].items()
    if name.endswith(shards.TOKENS)
  ]
  for log in ([], []):  # Also those of the process before.
    other = stream(address, 1.0, log)
    for split in ("train", "heldout"):
      column = getattr(other, split).tokens
      whole = concat.take_all(getattr(local, split).tokens)
      np.testing.assert_array_equal(concat.take_all(column), whole)
  blocks = sum(-(-size // shards.HASHED) for size in sizes)
  assert web.sent(shards.TOKENS) == (blocks, sum(sizes))
  assert on_disk(cache) == sum(sizes)
  (line,) = log
  assert address in line and "streamed" in line and str(cache) in line


def test_tokens_are_indexed_and_sliced_like_a_vector(local, web):
  column = stream(f"{web.address}/corpus").train.tokens
  (tokens,) = column.arrays
  whole = concat.take_all(local.train.tokens)
  assert len(tokens) == len(whole)
  borders = local.train.tokens.starts
  places = np.concatenate(
    [borders[1:-1] + shift for shift in (-2, -1, 0, 1)]
    + [np.arange(1, len(whole), 30_011), [len(whole) - 1, 0, 0]]
  )
  rng = np.random.default_rng(2)
  for index in (places, rng.permutation(places), places[:4].reshape(2, 2)):
    np.testing.assert_array_equal(tokens[index], whole[index])
  part = tokens[70_001:900_003][11:]
  assert len(part) == 829_991 and len(tokens[5:2]) == 0
  np.testing.assert_array_equal(part[[0, 829_990]], whole[[70_012, 900_002]])
  assert tokens[np.zeros(0, int)].shape == (0,)
  domain = concat.view(column, 70_001, 900_003)
  assert concat.size(domain) == 830_002
  assert concat.take(domain, [11])[0] == whole[70_012]
  for wrong in ([-1], [len(tokens)]):
    with pytest.raises(IndexError):
      tokens[wrong]


def test_memory_does_not_grow_with_what_is_missing(local, cache, monkeypatch):
  monkeypatch.setattr(streamed, "AT_ONCE", 4)
  fs = fsspec.filesystem("memory")
  fs.put(local.path, "/bounded", recursive=True)
  try:
    (tokens,) = stream("memory://bounded").train.tokens.arrays
    every = np.arange(100, len(tokens), 20_000)  # Of all blocks.
    tokens[every[:3]]
    tracemalloc.start()
    tokens[every]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
  finally:
    fs.rm("/bounded", recursive=True)
  # The file system holds the blocks of a request, and so does the reader.
  assert peak < 12 * shards.HASHED < 42 * shards.HASHED


# What may go wrong


def one_line(caught):
  return "\n" not in str(caught.value)


def test_a_server_that_drops_connections(local, web, cache, monkeypatch):
  other = stream(f"{web.address}/corpus")
  asked = collections.Counter()

  def at_first(path):
    asked[path] += 1
    return "drop" if asked[path] < 7 else ""

  web.failing = at_first
  (tokens,) = other.train.tokens.arrays
  whole = concat.take_all(local.train.tokens)
  np.testing.assert_array_equal(tokens[[3, 900_000]], whole[[3, 900_000]])
  web.failing = lambda path: "drop"
  before = len(web.requests)
  with pytest.raises(StorageError, match=f"{web.address}/corpus") as caught:
    tokens[[400_000]]
  assert one_line(caught) and len(web.requests) == before
  np.testing.assert_array_equal(tokens[[5]], whole[[5]])  # It is cached.


@pytest.mark.parametrize("code", [403, 404, 503])
def test_a_server_that_refuses(web, code):
  (tokens,) = stream(f"{web.address}/corpus").train.tokens.arrays
  web.failing = lambda path: code
  error = StorageError if code == 503 else ConfigError
  with pytest.raises(error, match=f"{web.address}/corpus") as caught:
    tokens[[0]]
  assert one_line(caught)


def test_a_server_without_ranges(web):
  web.ranges = False
  with pytest.raises(ConfigError, match=r"corpus\.cache_gb") as caught:
    stream(f"{web.address}/corpus")
  assert one_line(caught) and not web.sent(shards.TOKENS)[0]
  # Whole copies need none.
  assert stream(f"{web.address}/corpus", None).fingerprint


@pytest.mark.parametrize("change", ["flip", "cut", "longer"])
def test_a_file_that_has_changed(local, tmp_path, cache, change):
  pytest.importorskip("aiohttp")
  name = "train-00001.tokens.npy"
  root = tmp_path / "served" / "corpus"
  fsspec.filesystem("file").put(local.path, str(root), recursive=True)
  with web_server.serve(root.parent) as web:
    (tokens,) = stream(f"{web.address}/corpus").train.tokens.arrays
    content = bytearray((root / name).read_bytes())
    content[-1] ^= 1
    if change == "cut":
      del content[-70_000:]
    if change == "longer":
      content.extend(bytes(content))
    (root / name).write_bytes(content)
    last = local.train.tokens.starts[2] - 1  # Its last token.
    with pytest.raises(ConfigError, match=f"/corpus/{name}") as caught:
      tokens[[last]]
  assert one_line(caught)


def test_a_damaged_block_of_the_cache_is_read_again(local, web, cache):
  address = f"{web.address}/corpus"
  stream(address).heldout.tokens.arrays[0][:][[7]]
  (block,) = cache.glob("*/0")
  whole = block.read_bytes()
  for content in (whole[:-1] + b"x", whole[:-1], b""):
    block.write_bytes(content)
    column = stream(address).heldout.tokens
    found = concat.take(column, [7])
    np.testing.assert_array_equal(found, concat.take(local.heldout.tokens, [7]))
    assert block.read_bytes() == whole
  assert web.sent(shards.TOKENS)[0] == 4


@pytest.mark.parametrize("cache_gb", [MEGABYTE, None])
@pytest.mark.parametrize("name", ["meta.json", "*.sentences.npy", "token_*"])
def test_a_copy_that_lost_a_file_is_mended(local, web, cache, cache_gb, name):
  address = f"{web.address}/corpus"
  folder = pathlib.Path(stream(address, cache_gb).path)
  lost = min(folder.glob(name))
  whole = lost.read_bytes()
  for hurt in (
    lost.unlink,
    lambda: lost.write_bytes(whole[:-1]),
    lambda: damage.fifo(lost),
  ):
    hurt()
    log: list[str] = []
    found = stream(address, cache_gb, log).heldout.tokens
    np.testing.assert_array_equal(
      concat.take(found, [7]), concat.take(local.heldout.tokens, [7])
    )
    assert lost.read_bytes() == whole
    assert any("has lost files" in line for line in log)


def test_a_full_disk(web, cache, monkeypatch):
  (tokens,) = stream(f"{web.address}/corpus").train.tokens.arrays

  def full(self, data):
    raise OSError(errno.ENOSPC, "No space left on device", str(self))

  monkeypatch.setattr(pathlib.Path, "write_bytes", full)
  with pytest.raises(StorageError, match=r"No space.*corpus\.cache_gb") as e:
    tokens[[0]]
  assert one_line(e) and str(cache) in str(e.value)
