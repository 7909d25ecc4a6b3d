"""From text to corpus: nothing lost, the same bytes, nothing half-written."""

import collections
import functools
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from helpers.repository import ROOT
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data import workers
from maskedlm.data.corpus import concat, store
from maskedlm.data.prepare import documents as documents_lib
from maskedlm.data.prepare import encode, prepare, vocabulary_sample
from maskedlm.data.sources.domains import Domain
from maskedlm.data.tokenizers import tokenizer

SENTENCE = "a cat and the dog sat on it then it ran under a big red mat hill"
WORDS = SENTENCE.split()


def make_text(seed, num_documents):
  """Documents of one to nine sentences, a line each."""
  rng = np.random.default_rng(seed)
  documents = [
    [
      " ".join(rng.choice(WORDS, rng.integers(2, 12))) + "."
      for _ in range(rng.integers(1, 10))
    ]
    for _ in range(num_documents)
  ]
  return "\n\n".join("\n".join(lines) for lines in documents) + "\n"


@pytest.fixture
def make_config(tmp_path):
  """A config whose source is the given text."""

  def make(text, **corpus):
    (tmp_path / "text.txt").write_bytes(text.encode(errors="surrogatepass"))
    config = defaults.default()
    config.corpus.source = f"text:{tmp_path}/text.txt"
    config.corpus.sentences = "lines"
    config.corpus.num_workers = 1
    config.corpus.update(corpus)
    config.tokenizer.vocab_size = 60
    return config

  return make


def silent(line):
  pass


def run(config, path, log=silent):
  return prepare.prepare(config, path, log=log, progress=False)


def stored(split):
  """The token ids of every sentence of every document."""
  tokens, starts, documents = map(concat.take_all, split)
  found = [tokens[a:b] for a, b in itertools.pairwise(starts)]
  return [found[a:b] for a, b in itertools.pairwise(documents)]


def read(config):
  return documents_lib.read_documents(config, collections.Counter())


def sentences(corpus, split):
  """Every sentence of a split, decoded, by document."""
  decode = corpus.tokenizer.decode
  return [
    [decode(ids.tolist()) for ids in document]
    for document in stored(getattr(corpus, split))
  ]


def files(path):
  root = pathlib.Path(path)
  return {
    str(file.relative_to(root)): file.read_bytes()
    for file in root.rglob("*")
    if file.is_file()
  }


def test_long_sentences_are_cut_evenly():
  pieces = encode.cut_lengths(np.array([7, 0, 1, 3, 4, 8, 0]), 3)
  assert pieces.tolist() == [3, 2, 2, 1, 3, 2, 2, 3, 3, 2]
  assert pieces.dtype == np.int64
  assert encode.cut_lengths(np.array([], np.int64), 3).tolist() == []


def document(key, name=""):
  return documents_lib.Document([name or str(key)], key, 10)


def split(keys, share):
  """Keys that are held out, and the others, as sorted lists."""
  found = {"train": [], "heldout": []}
  for name, doc in documents_lib.split_documents(map(document, keys), share):
    found[name].append(doc.key)
  return sorted(found["heldout"]), sorted(found["train"])


@pytest.mark.parametrize(
  ("keys", "share", "heldout", "train"),
  [
    ([0.9, 0.1, 0.3, 0.2, 0.7], 0.25, [0.1, 0.2], [0.3, 0.7, 0.9]),
    # Fewer than two below the share: the smallest of all, with their copies.
    ([0.9, 0.1, 0.3, 0.2, 0.7], 0.15, [0.1, 0.2], [0.3, 0.7, 0.9]),
    ([0.9, 0.3, 0.2, 0.7], 0.01, [0.2, 0.3], [0.7, 0.9]),
    ([0.9, 0.2, 0.3, 0.2, 0.3], 0.01, [0.2, 0.2, 0.3, 0.3], [0.9]),
    ([0.9, 0.1, 0.1, 0.1, 0.5], 0.15, [0.1, 0.1, 0.1, 0.5], [0.9]),
    # Copies of what is not held out stay together too.
    ([0.9, 0.9, 0.2, 0.3, 0.9], 0.01, [0.2, 0.3], [0.9, 0.9, 0.9]),
    ([0.4, 0.0], 0.0, [], [0.0, 0.4]),
    ([], 0.5, [], []),
  ],
)
def test_the_split_is_by_key_whatever_the_order(keys, share, heldout, train):
  for order in itertools.permutations(keys):
    assert split(order, share) == (heldout, train)


def test_the_split_holds_at_most_two_documents_back():
  keys = np.random.default_rng(7).permutation(1000) / 1000 + 0.5
  taken = itertools.count()
  stream = (document(key) for key in keys if next(taken) >= 0)
  given = documents_lib.split_documents(stream, 0.01)
  for index, _ in enumerate(given):
    if index == 500:
      break
  assert next(taken) <= 504


def test_chunks_hold_whole_documents_in_order(monkeypatch):
  monkeypatch.setattr(documents_lib, "CHUNK_BYTES", 25)
  documents = [("train", document(i / 10)) for i in range(7)]
  found = list(documents_lib.make_chunks(documents))
  assert [len(chunk) for chunk in found] == [3, 3, 1]
  assert list(itertools.chain(*found)) == documents


def test_a_small_corpus(make_config, tmp_path):
  documents = [
    [f"the {a} {b}.", f"it was {a}."] for a in "abcd" for b in "efgh"
  ]
  text = "\n\n".join("\n".join(lines) for lines in documents)
  lines = []
  corpus = run(make_config(text), tmp_path / "corpus", lines.append)
  # 16 documents at 1%: two are held out all the same.
  train, heldout = sentences(corpus, "train"), sentences(corpus, "heldout")
  assert len(heldout) == 2
  assert sorted(train + heldout) == sorted(documents)
  assert store.verify_corpus(corpus.path) == []
  report = corpus.meta["report"]
  assert report["characters"] == 16 * (8 + 9)
  assert report["words"] == 16 * (3 + 3)
  assert report["unknown tokens"] == 0
  shown = "\n".join(lines)
  assert "train: 14 documents, 28 sentences, 112 tokens" in shown
  assert "heldout: 2 documents, 4 sentences, 16 tokens" in shown
  assert "272 characters, 96 words; 2.125 characters per token" in shown
  assert "1.333 tokens per word, 0.000% of the tokens unknown" in shown
  assert sorted(os.listdir(tmp_path)) == ["corpus", "text.txt"]


def test_long_sentences_and_empty_documents(make_config, tmp_path):
  text = make_text(3, 30) + "\n\n" + "cat " * 13 + "\n\n\u200b\n\n"
  config = make_config(text, max_sentence_tokens=5, heldout_share=0.0)
  corpus = run(config, tmp_path / "corpus")
  assert sentences(corpus, "train")[-1] == [
    "cat cat cat cat cat",
    "cat cat cat cat",
    "cat cat cat cat",
  ]
  assert np.diff(concat.take(corpus.train.sentences, range(50))).max() == 5
  report = corpus.meta["report"]
  assert report["sentences cut at max_sentence_tokens"] > 1
  assert report["documents without tokens"] == 1
  assert len(sentences(corpus, "train")) == 31
  assert sentences(corpus, "heldout") == []


def test_what_a_worker_counts_by_hand(make_config, tmp_path):
  config = make_config(make_text(3, 9), heldout_share=0.0)
  run(config, tmp_path / "corpus")
  path = str(tmp_path / "corpus" / "tokenizer")
  part = Domain("", "", "")

  def document(*lines):
    return documents_lib.make_document(list(lines), part)

  made = encode.make_encoder(path, "lines", 5)(
    [
      ("train", document("dog " * 5, "\u200b", "dog é")),
      ("heldout", document("\u200b")),
      ("train", document("dog " * 6, "猫 dog 猫")),
    ]
  )
  assert made.lengths.tolist() == [5, 2, 3, 3, 3]
  assert len(made.tokens) == 16
  first, none, last = (counts for *_, counts in made.documents)
  # What gives no token counts neither as a sentence nor by its characters.
  assert (first["sentences"], first["tokens"]) == (2, 7)
  assert (first["characters"], first["bytes"]) == (24, 25)
  assert (none["sentences"], none["characters"], none["bytes"]) == (0, 0, 0)
  assert (last["sentences"], last["tokens"]) == (3, 9)
  assert [first["unknown"], none["unknown"], last["unknown"]] == [0, 0, 2]
  assert made.report["sentences without tokens"] == 2
  # Not the one of five tokens.
  assert made.report["sentences cut at max_sentence_tokens"] == 1


def test_every_line_of_the_report_is_documented(make_config, tmp_path):
  odd = ["\ufeff\0", f"\0\x07\ud800 caf\u00e9 {'cat ' * 300_000}", "\u200b"]
  text = "\n\n".join([make_text(1, 40), *odd])
  config = make_config(text, num_workers=2)
  lines = []
  corpus = run(config, tmp_path / "corpus", lines.append)
  report = corpus.meta["report"]
  found = {name for name, count in report.items() if count}
  assert len(found) > 12
  page = ROOT / "docs" / "reference" / "corpus-format.md"
  documented = page.read_text()
  for name in found:
    assert re.sub("[0-9,]{5,}", "N", name) in documented
  summed_up = {"characters", "words", "unknown tokens"}
  for name in found - summed_up:
    assert f"  {name}: {report[name]:,}" in lines


def test_a_small_source_is_read_once(make_config, tmp_path, monkeypatch):
  config = make_config(make_text(4, 50))
  opened = []
  documents = documents_lib.reader.read_documents

  def counted(*args, **kwargs):
    opened.append(args)
    return documents(*args, **kwargs)

  monkeypatch.setattr(documents_lib.reader, "read_documents", counted)
  run(config, tmp_path / "small")
  assert len(opened) == 1
  monkeypatch.setattr(documents_lib, "CACHE_BYTES", 1000)
  run(config, tmp_path / "large")
  assert len(opened) == 3
  assert files(tmp_path / "small") == files(tmp_path / "large")


def test_the_same_bytes_with_any_number_of_workers(
  make_config, tmp_path, monkeypatch
):
  monkeypatch.setattr(documents_lib, "CHUNK_BYTES", 999)
  text = make_text(5, 150)
  for num_workers in (1, 2, 3):
    config = make_config(text, num_workers=num_workers, shard_tokens=1500)
    run(config, tmp_path / f"corpus{num_workers}")
  one, two, three = (files(tmp_path / f"corpus{n}") for n in (1, 2, 3))
  assert len([name for name in one if name.startswith("train")]) > 6
  assert one == two == three


def test_a_finished_corpus_is_used_again(make_config, tmp_path):
  config = make_config(make_text(1, 40))
  first = run(config, tmp_path / "corpus")
  before = os.stat(first.path).st_mtime_ns
  lines = []
  config.corpus.num_workers = 2  # Makes no difference.
  config.seed = 5
  again = run(config, tmp_path / "corpus", lines.append)
  assert again.fingerprint == first.fingerprint
  assert os.stat(first.path).st_mtime_ns == before
  assert "prepared before" in lines[0]


@pytest.mark.parametrize(
  ("section", "option", "value", "there"),
  [
    ("corpus", "heldout_share", 0.25, 0.01),
    ("corpus", "language", "de", "en"),
    ("tokenizer", "vocab_size", 61, 60),
  ],
)
def test_other_options_are_refused(
  make_config, tmp_path, section, option, value, there
):
  config = make_config(make_text(1, 40))
  run(config, tmp_path / "corpus")
  config[section][option] = value
  with pytest.raises(CorpusError) as error:
    run(config, tmp_path / "corpus")
  message = str(error.value)
  assert f"{section}.{option}={value!r} (there {there!r})" in message
  assert "remove this one" in message
  assert message.count("(there ") == 1


def test_a_given_tokenizer_counts_by_its_content(make_config, tmp_path):
  config = make_config(make_text(1, 40))
  made = prepare.train_tokenizer(
    config, tmp_path / "one", log=silent, progress=False
  )
  made.save(tmp_path / "two")
  config.tokenizer.path = str(tmp_path / "one")
  corpus = run(config, tmp_path / "corpus")
  assert corpus.tokenizer.sha256 == made.sha256
  config.tokenizer.path = str(tmp_path / "two")
  assert run(config, tmp_path / "corpus").fingerprint == corpus.fingerprint
  other = tokenizer.train_tokenizer(
    ["quite other words"] * 9, kind="wordpiece", vocab_size=40, lowercase=True
  )
  other.save(tmp_path / "two")
  with pytest.raises(CorpusError, match=other.sha256):
    run(config, tmp_path / "corpus")
  # Without one, the refusal names the file that undoes it.
  config.tokenizer.path = ""
  with pytest.raises(CorpusError) as error:
    run(config, tmp_path / "corpus")
  path = f"{tmp_path / 'corpus' / 'tokenizer'}"
  assert f"options: tokenizer.path='' (there that of {path})" in str(
    error.value
  )
  config.tokenizer.path = path
  assert run(config, tmp_path / "corpus").fingerprint == corpus.fingerprint


def test_the_tokenizer_is_not_trained_on_what_is_held_out(
  make_config, tmp_path
):
  config = make_config(make_text(2, 60), heldout_share=0.2)
  config.tokenizer.vocab_size = 100
  seen = [
    s for _, s in vocabulary_sample.training_sentences(config, read(config))
  ]
  corpus = run(config, tmp_path / "corpus")
  train = [s for doc in sentences(corpus, "train") for s in doc]
  assert seen == train


@pytest.mark.parametrize(
  ("name", "value"),
  [
    ("num_workers", -1),
    ("max_sentence_tokens", 1),
    ("shard_tokens", 0),
    ("shard_tokens", 1 << 32),
    ("heldout_share", 1.0),
    ("heldout_share", -0.1),
  ],
)
def test_options_out_of_range(make_config, tmp_path, name, value):
  config = make_config("a b", **{name: value})
  with pytest.raises(ConfigError, match=f"corpus.{name}={value} must be"):
    run(config, tmp_path / "corpus")


def test_a_share_that_leaves_nothing_is_refused():
  for keys, share in (([0.4, 0.6], 0.01), ([0.1, 0.2, 0.3], 0.9), ([0.1], 0.5)):
    with pytest.raises(CorpusError, match=f"share={share}.*leaves none"):
      split(keys, share)


def test_too_few_documents_are_refused(make_config, tmp_path):
  with pytest.raises(CorpusError, match="leaves none for training"):
    run(make_config("the cat.\n\nthe dog."), tmp_path / "corpus")
  assert os.listdir(tmp_path) == ["text.txt"]
  one = run(make_config("the cat.", heldout_share=0.0), tmp_path / "corpus")
  assert sentences(one, "train") == [["the cat."]]


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("file", "file: already exists"),
    ("folder", "folder: already exists"),
    ("corpus.tmp", "ends in .tmp"),
    ("corpus", "corpus.tmp: .*working folder"),
    ("locked", "locked.lock: .*isn't empty"),
    ("file/corpus", "file/corpus can't be written"),
  ],
)
def test_a_wrong_place_is_told_before_the_text_is_read(
  make_config, tmp_path, name, message
):
  (tmp_path / "file").write_text("mine")
  (tmp_path / "locked.lock").write_text("mine")
  for folder in ("folder", "corpus.tmp"):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "tokenizer.json").write_text("mine")
  before = files(tmp_path)
  config = make_config("a b")
  config.corpus.source = "text:/nowhere/*.txt"
  with pytest.raises((CorpusError, ConfigError), match=message):
    run(config, tmp_path / name)
  (tmp_path / "text.txt").unlink()
  assert files(tmp_path) == before


def test_a_tokenizer_s_place_is_told_before_the_text_is_read(
  make_config, tmp_path
):
  config = make_config("a b")
  config.corpus.source = "text:/nowhere/*.txt"
  with pytest.raises(ConfigError, match=r"text\.txt can't be written"):
    prepare.train_tokenizer(config, tmp_path / "text.txt", log=silent)


def test_what_a_killed_prepare_left_is_not_mistaken_for_this_one_s(
  make_config, tmp_path
):
  """Of another kind of tokenizer, say."""
  config = make_config(make_text(1, 40), heldout_share=0.0)
  first = run(config, tmp_path / "first")
  shutil.copytree(first.path, store.work_folder(tmp_path / "corpus"))
  config.tokenizer.update(kind="unigram", vocab_size=38, lowercase=False)
  corpus = run(config, tmp_path / "corpus")
  assert corpus.tokenizer.kind == "unigram"
  assert sentences(corpus, "train") == [d.lines for d in read(config)]


def test_progress_goes_to_stderr(make_config, tmp_path, capsys):
  config = make_config(make_text(1, 40))
  prepare.prepare(config, tmp_path / "corpus", log=silent)
  out, err = capsys.readouterr()
  assert out == ""
  assert "reading for the tokenizer: 0.0 MB of text, 40 documents" in err
  assert "preparing: 0.0 MB of text, 40 documents" in err


def test_only_one_prepares_at_a_time(make_config, tmp_path):
  config = make_config(make_text(1, 40))
  lines, waiting = [], threading.Event()

  def log(line):
    lines.append(line)
    waiting.set()

  with prepare._lock(str(tmp_path / "corpus"), silent):
    thread = threading.Thread(
      target=run, args=(config, tmp_path / "corpus", log)
    )
    thread.start()
    assert waiting.wait(10)
    assert "waiting for another process" in lines[0]
    # Meanwhile the other one finishes.
    first = run(config, tmp_path / "other")
    os.rename(first.path, tmp_path / "corpus")
  thread.join(10)
  assert "prepared before" in lines[1]
  assert len(lines) == 2
  assert sorted(os.listdir(tmp_path)) == ["corpus", "text.txt"]


def test_workers_keep_order_and_take_little_at_a_time():
  taken = itertools.count()

  def items():
    for i in range(40):
      next(taken)
      yield -i

  results = workers.ordered_map(
    functools.partial, (abs,), items(), num_workers=2
  )
  assert next(results) == 0
  assert next(taken) == 4
  assert list(results) == list(range(1, 40))


def test_as_many_workers_as_are_asked_for_or_there_are_cores(monkeypatch):
  options = defaults.default().corpus
  monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5})
  assert workers.num_workers(options) == 3
  options.num_workers = 7
  assert workers.num_workers(options) == 7


def test_workers_import_no_jax():
  """Nor anything else that is large: a worker is on every core."""
  expression = (
    "[m for m in ('jax', 'flax', 'grain', 'torch', 'tensorflow')"
    " if __import__('maskedlm.data.prepare.prepare') and m in"
    " __import__('sys').modules]"
  )
  found = workers.ordered_map(
    functools.partial, (eval,), [expression] * 2, num_workers=2
  )
  assert list(found) == [[], []]


def test_a_worker_that_dies_is_an_error():
  results = workers.ordered_map(
    functools.partial, (os._exit,), [1, 1, 1], num_workers=2
  )
  with pytest.raises(CorpusError, match="one of 2 worker processes died"):
    list(results)


# No `if __name__` guard: workers must not run the program again.
PROGRAM = """
import sys
from maskedlm.config import defaults
from maskedlm.data.prepare import documents, prepare
print("started", flush=True)
config = defaults.default()
config.corpus.update(
  source=f"text:{sys.argv[1]}", sentences="lines", num_workers=2)
config.tokenizer.vocab_size = 60
documents.CHUNK_BYTES = 1000
prepare.prepare(config, sys.argv[2])
print("finished", flush=True)
"""


def children(pid):
  command = ["ps", "-o", "pid=", "--ppid", str(pid)]
  found = subprocess.run(command, capture_output=True, text=True, check=False)
  return [int(word) for word in found.stdout.split()]


def is_alive(pid):
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  # A killed process stays as a zombie until its parent asks for it.
  return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()


def test_a_killed_prepare_leaves_nothing_that_looks_finished(tmp_path):
  text = tmp_path / "text.txt"
  text.write_text(make_text(9, 8_000))
  program = tmp_path / "program.py"
  program.write_text(PROGRAM)
  path = tmp_path / "corpus"

  def start():
    return subprocess.Popen(
      [sys.executable, program, text, path],
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      cwd=ROOT,
      text=True,
    )

  process = start()
  tokens = pathlib.Path(store.work_folder(path)) / "train-00000.tokens.npy"
  while not (tokens.exists() and tokens.stat().st_size > 9_000):
    assert process.poll() is None, process.stdout.read()
    time.sleep(0.01)
  started = children(process.pid)
  process.send_signal(signal.SIGKILL)
  assert process.wait() == -signal.SIGKILL
  assert process.stdout.read().splitlines()[0] == "started"
  assert not path.exists()
  with pytest.raises(CorpusError, match="not a finished corpus"):
    store.open_corpus(store.work_folder(path))
  # The workers end by themselves.
  assert len(started) >= 2
  deadline = time.monotonic() + 10
  while any(map(is_alive, started)):
    assert time.monotonic() < deadline
    time.sleep(0.05)

  process = start()
  out, _ = process.communicate()
  assert process.returncode == 0
  assert out.splitlines().count("started") == 1
  assert out.splitlines()[-1] == "finished"
  assert store.verify_corpus(path) == []
  assert sorted(os.listdir(tmp_path)) == ["corpus", "program.py", "text.txt"]


def test_real_text(data_dir, tmp_path):
  whole = (data_dir / "text" / "en_novels.txt").open(encoding="utf-8")
  with whole:
    text = whole.read(400_000).rpartition("\n")[0] + "\n"
  (tmp_path / "novels.txt").write_text(text, encoding="utf-8")
  config = defaults.default()
  config.corpus.update(
    source=f"text:{tmp_path}/novels.txt", sentences="lines", num_workers=1
  )
  config.tokenizer.vocab_size = 3000
  corpus = run(config, tmp_path / "corpus")
  documents = [d.split("\n") for d in text.strip().split("\n\n")]
  splits = corpus.meta["splits"]
  assert len(documents) == sum(s["documents"] for s in splits.values())
  assert store.verify_corpus(corpus.path) == []
  report = corpus.meta["report"]
  tokens = sum(s["tokens"] for s in splits.values())
  assert report["words"] == len(text.split())
  assert report["unknown tokens"] < 1e-3 * tokens
  assert 3 < report["characters"] / tokens < 5
  # Entropy of BERT-like vocabularies on prose, in nats.
  assert 5 < store.unigram_entropy(corpus) < 7
  # The text itself, token by token.
  found = [
    np.concatenate(sentences).tolist()
    for split in (corpus.train, corpus.heldout)
    for sentences in stored(split)
  ]
  encode = corpus.tokenizer.encode_batch
  given = [np.concatenate(encode(lines)).tolist() for lines in documents]
  assert sorted(found) == sorted(given)
