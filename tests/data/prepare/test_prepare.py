"""From text to corpus: nothing is lost, and the bytes are the same."""

import collections
import itertools
import os
import re
import shlex
import shutil
import threading

import numpy as np
import pytest

from helpers.prepare_corpus import make_text, prepare_corpus, read_files
from helpers.repository import ROOT
from maskedlm.config import defaults, overrides
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import concat, store
from maskedlm.data.prepare import documents, options, vocabulary_sample
from maskedlm.runtime import output_files


@pytest.fixture
def make_config(tmp_path):
  """A function that makes a config whose source is the given text."""

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


def stored(split):
  """Returns the token ids of each sentence of each document."""
  tokens, starts, documents = map(concat.take_all, split)
  found = [tokens[a:b] for a, b in itertools.pairwise(starts)]
  return [found[a:b] for a, b in itertools.pairwise(documents)]


def read(config):
  return documents.read_documents(config, collections.Counter())


def sentences(corpus, split):
  """Returns the decoded sentences of each document of a split."""
  decode = corpus.tokenizer.decode
  return [
    [decode(ids.tolist()) for ids in document]
    for document in stored(getattr(corpus, split))
  ]


def test_a_small_corpus(make_config, tmp_path):
  documents = [
    [f"the {a} {b}.", f"it was {a}."] for a in "abcd" for b in "efgh"
  ]
  text = "\n\n".join("\n".join(lines) for lines in documents)
  lines = []
  corpus = prepare_corpus(
    make_config(text), tmp_path / "corpus", log=lines.append
  )
  # Of 16 documents at 1%, two are held out.
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
  assert "1.333 tokens per word, 0.000% of the characters lost" in shown
  assert sorted(os.listdir(tmp_path)) == ["corpus", "text.txt"]


def test_what_a_corpus_records_does_not_change():
  """Or corpora that are there would be prepared again, or match wrongly."""
  config = defaults.default("roberta")
  expected = {
    "corpus.source": "docstrings:",
    "corpus.text_field": "text",
    "corpus.sentences": "split",
    "corpus.language": "en",
    "corpus.heldout_share": 0.01,
    "corpus.max_sentence_tokens": 128,
    "corpus.shard_tokens": 1 << 26,
    "tokenizer.kind": "wordpiece",
    "tokenizer.vocab_size": 30_522,
    "tokenizer.lowercase": True,
    "tokenizer.sample_bytes": 1 << 28,
  }
  assert options.recorded_options(config, None, domains=False) == expected
  config.tokenizer.k, config.corpus.num_workers = 7, 7
  found = options.recorded_options(config, None, domains=True)
  assert found == expected | {"tokenizer.k": 7, "tokenizer.alpha": 0.3}


def test_every_line_of_the_report_is_documented(make_config, tmp_path):
  odd = ["\ufeff\0", f"\0\x07\ud800 caf\u00e9 {'cat ' * 270_000}", "\u200b"]
  text = "\n\n".join([make_text(1, 40), *odd])
  config = make_config(text, num_workers=2)
  lines = []
  corpus = prepare_corpus(config, tmp_path / "corpus", log=lines.append)
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


def test_the_same_bytes_with_any_number_of_workers(
  make_config, tmp_path, monkeypatch
):
  monkeypatch.setattr(documents, "CHUNK_BYTES", 999)
  text = make_text(5, 150)
  for num_workers in (1, 3):
    config = make_config(text, num_workers=num_workers, shard_tokens=1500)
    prepare_corpus(config, tmp_path / f"corpus{num_workers}")
  one, three = (read_files(tmp_path / f"corpus{n}") for n in (1, 3))
  assert len([name for name in one if name.startswith("train")]) > 6
  assert one == three


def test_the_error_names_options_that_open_the_corpus(make_config, tmp_path):
  """Of several: parts and source, options of later versions, quotes."""
  path = tmp_path / "corpus"
  one = make_config(make_text(1, 40))
  other = make_config(make_text(1, 40))
  other.corpus.parts = f"en:lines:{tmp_path}/text.txt"
  other.corpus.update(near_duplicates=0.5, language="de")
  other.corpus.text_field = "a 'field'"
  for there, wrong in ((one, other), (other, one)):
    shutil.rmtree(path, ignore_errors=True)
    prepare_corpus(there, path)
    with pytest.raises(CorpusError) as error:
      prepare_corpus(wrong, path)
    (give,) = re.findall("give (.*); to prepare", str(error.value))
    given = wrong.copy_and_resolve_references()
    given = overrides.apply_overrides(given, shlex.split(give))
    lines = []
    prepare_corpus(given, path, log=lines.append)
    assert "prepared before" in lines[0]


def test_the_tokenizer_is_not_trained_on_heldout_text(make_config, tmp_path):
  config = make_config(make_text(2, 60), heldout_share=0.2)
  config.tokenizer.vocab_size = 100
  seen = [
    s for _, s in vocabulary_sample.training_sentences(config, read(config))
  ]
  corpus = prepare_corpus(config, tmp_path / "corpus")
  train = [s for doc in sentences(corpus, "train") for s in doc]
  assert seen == train


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
def test_a_wrong_path_is_an_error_before_the_text_is_read(
  make_config, tmp_path, name, message
):
  (tmp_path / "file").write_text("mine")
  (tmp_path / "locked.lock").write_text("mine")
  for folder in ("folder", "corpus.tmp"):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "tokenizer.json").write_text("mine")
  before = read_files(tmp_path)
  config = make_config("a b")
  config.corpus.source = "text:/nowhere/*.txt"
  with pytest.raises((CorpusError, ConfigError), match=message):
    prepare_corpus(config, tmp_path / name)
  (tmp_path / "text.txt").unlink()
  assert read_files(tmp_path) == before


def test_a_kind_that_is_not_trained_is_refused_before_the_text_is_read(
  make_config, tmp_path
):
  config = make_config("a b", source="text:/nowhere/*.txt")
  config.tokenizer.kind = "wordlevel"
  with pytest.raises(ConfigError, match=r"tokenizer\.kind='wordlevel'"):
    prepare_corpus(config, tmp_path / "corpus")


def test_one_process_prepares_at_a_time(make_config, tmp_path):
  config = make_config(make_text(1, 40))
  lines, waiting = [], threading.Event()

  def log(line):
    lines.append(line)
    waiting.set()

  with output_files.lock(tmp_path / "corpus.lock", on_wait=lambda: None):
    thread = threading.Thread(
      target=prepare_corpus,
      args=(config, tmp_path / "corpus"),
      kwargs={"log": log},
    )
    thread.start()
    assert waiting.wait(10)
    assert "waiting for another process" in lines[0]
    # Meanwhile the other process finishes.
    first = prepare_corpus(config, tmp_path / "other")
    os.rename(first.path, tmp_path / "corpus")
  thread.join(10)
  assert "prepared before" in lines[1]
  assert len(lines) == 2
  assert sorted(os.listdir(tmp_path)) == ["corpus", "text.txt"]


@pytest.mark.parametrize("kind", ["characters", "kmers", "bpe"])
def test_a_sequence_is_one_sentence_of_any_length(tmp_path, kind):
  rng = np.random.default_rng(3)
  records = ["".join(rng.choice([*"ACGT"], n)) for n in (700, 5_000, 31, 200)]
  fasta = "".join(f">{i}\n{x}\n" for i, x in enumerate(records))
  (tmp_path / "a.fa").write_text(fasta)
  config = defaults.default()
  config.corpus.source = f"fasta:{tmp_path}/a.fa"
  config.corpus.num_workers = 1
  config.tokenizer.update(kind=kind, vocab_size=300, lowercase=False, k=3)
  corpus = prepare_corpus(config, tmp_path / "corpus")
  found = [x for s in ("train", "heldout") for x in sentences(corpus, s)]
  assert sorted(len(document) for document in found) == [1, 1, 1, 1]
  if kind != "kmers":
    shown = sorted(text.strip() for [text] in found)
  else:  # The last letters of all but the first.
    split = [text.split() for [text] in found]
    shown = sorted(x[0] + "".join(kmer[-1] for kmer in x[1:]) for x in split)
  assert shown == sorted(records)
