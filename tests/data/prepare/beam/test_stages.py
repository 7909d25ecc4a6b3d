"""The stages write the same bytes as the local runner.

Here each stage is a loop, so that they are tested without Apache Beam;
test_runner.py uses it.
"""

import collections
import functools
import json
import os

import numpy as np
import pytest

from helpers import damage
from helpers.many_files import make_config, make_text
from helpers.prepare_corpus import prepare_corpus, read_files
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import shards, store
from maskedlm.data.prepare.beam import (
  job,
  merge_shards,
  piece_plan,
  runner,
  stages,
)
from maskedlm.data.tokenizers import training


def each(folder, log, stage, function, items):
  """Runs a stage in a loop over the items, last one first."""
  for item in reversed(items):
    if not job.is_done(folder, stage, item[:1]):
      function(folder, *item)


def find_duplicates(folder, num_documents, pieces, log):
  """Groups hashes as Beam does, in memory."""
  groups, marks = (collections.defaultdict(list) for _ in range(2))
  for index in reversed(pieces):
    for key, values in stages.band_hashes(folder, 3, index):
      groups[key].append(values)
  for key, found in groups.items():
    for index, mark in stages.mark_duplicates(key, found):
      marks[index].append(mark)
  for index in pieces:
    stages.write_status(folder, index, marks[index])


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
  monkeypatch.setattr(runner, "PIECE_BYTES", 700)


staged = functools.partial(runner.run, runner.Machines(each, find_duplicates))


def leave_unfinished(config, path, at="sample", done=0):
  """Runs a pipeline that is killed after some items of a stage."""

  def killed(folder, log, stage, function, items):
    each(folder, log, stage, function, items[:done] if stage == at else items)
    if stage == at:
      raise KeyboardInterrupt

  run = functools.partial(runner.run, runner.Machines(killed, find_duplicates))
  with pytest.raises(KeyboardInterrupt):
    prepare_corpus(config, path, run)
  assert not path.exists()


@pytest.mark.parametrize(
  "options",
  [
    {},
    {"corpus__heldout_share": 0.0},
    {"corpus__heldout_share": 0.3, "corpus__deduplicate": True},
    # Two documents are delayed from the first piece to the last.
    {"corpus__heldout_share": 1e-9, "corpus__near_duplicates": 0.7},
    {"tokenizer__sample_bytes": 900, "corpus__sentences": "split"},
    {"corpus__min_words": 12, "corpus__max_repetition": 0.9},
  ],
  ids=["plain", "none-held-out", "copies", "delayed", "sample", "filtered"],
)
def test_the_same_bytes(tmp_path, options):
  config = make_config(tmp_path, **options)
  here = prepare_corpus(config, tmp_path / "here")
  there = prepare_corpus(config, tmp_path / "there", staged)
  assert here.fingerprint == there.fingerprint
  assert read_files(here.path) == read_files(there.path)
  assert len(here.meta["splits"]["train"]["shards"]) > 3
  assert store.verify_corpus(there.path) == []
  assert sorted(os.listdir(tmp_path)) == ["here", "text", "there"]


def test_lines_are_not_compared_by_several_machines(tmp_path):
  config = make_config(tmp_path, corpus__unique_lines=True)
  with pytest.raises(ConfigError, match=r"unique_lines=True .*--runner=local"):
    prepare_corpus(config, tmp_path / "corpus", staged)


def test_the_same_bytes_of_several_languages(tmp_path):
  config = make_config(tmp_path, corpus__near_duplicates=0.7)
  text = tmp_path / "text"
  records = [json.dumps({"body": make_text(20 + i, 3)}) for i in range(40)]
  (text / "b.jsonl").write_text("\n".join([*records, '{"none": 1}', "{"]))
  config.corpus.parts = (
    f"en:text:{text}/[0-5].txt,de:jsonl:{text}/b.jsonl,yo:{text}/8.txt"
  )
  config.corpus.text_field = "body"
  config.tokenizer.sample_bytes = 2_000
  here = prepare_corpus(config, tmp_path / "here")
  there = prepare_corpus(config, tmp_path / "there", staged)
  assert read_files(here.path) == read_files(there.path)
  assert [part["name"] for part in there.domains] == ["en", "de", "yo"]
  assert here.meta["report"]["broken JSON records dropped"] == 1


def test_a_domain_with_only_duplicates_is_named(tmp_path):
  config = make_config(tmp_path, corpus__deduplicate=True)
  text = tmp_path / "text"
  config.corpus.parts = f"en:{text}/[0-5].txt,de:{text}/2.txt"
  with pytest.raises(
    CorpusError, match="parts: 'de': every document duplicates"
  ):
    prepare_corpus(config, tmp_path / "corpus", staged)


def test_a_killed_run_continues(tmp_path):
  config = make_config(tmp_path, corpus__deduplicate=True)
  here = prepare_corpus(config, tmp_path / "here")
  leave_unfinished(config, tmp_path / "there", "encoded", done=3)
  folder = tmp_path / "there.beam"
  (folder / "corpus").mkdir()
  (folder / "corpus" / "train-00000.tokens.npy.99").write_text("rest")
  todo = {}

  def noted(folder, log, stage, function, items):
    todo[stage] = [i[0] for i in items if not job.is_done(folder, stage, i[:1])]
    each(folder, log, stage, function, items)

  run = functools.partial(runner.run, runner.Machines(noted, None))
  there = prepare_corpus(config, tmp_path / "there", run)
  assert not todo["survey"] and todo["encoded"][0] == 3
  assert read_files(here.path) == read_files(there.path)


@pytest.mark.parametrize(
  "spoil", [damage.flip, damage.cut, damage.empty, damage.zeros, damage.pickled]
)
def test_a_damaged_result_of_a_killed_run_is_made_again(tmp_path, spoil):
  config = make_config(tmp_path)
  here = prepare_corpus(config, tmp_path / "here")
  leave_unfinished(config, tmp_path / "there")
  (damaged, *_) = sorted((tmp_path / "there.beam/survey").iterdir())
  spoil(damaged)
  with pytest.raises(CorpusError, match=f"{damaged} is damaged .*: remove it"):
    prepare_corpus(config, tmp_path / "there", staged)
  damaged.unlink()
  there = prepare_corpus(config, tmp_path / "there", staged)
  assert read_files(here.path) == read_files(there.path)


def test_an_unfinished_run_with_other_options_is_an_error(tmp_path):
  config = make_config(tmp_path)
  leave_unfinished(config, tmp_path / "corpus")
  config.corpus.heldout_share = 0.2
  with pytest.raises(CorpusError, match="with other corpus options"):
    prepare_corpus(config, tmp_path / "corpus", staged)
  config.corpus.heldout_share = 0.01
  with (tmp_path / "text" / "8.txt").open("a") as file:
    file.write("more")
  with pytest.raises(CorpusError, match="with other text"):
    prepare_corpus(config, tmp_path / "corpus", staged)


def test_a_folder_with_other_files_is_an_error(tmp_path):
  kept = tmp_path / "corpus.beam" / "notes.txt"
  kept.parent.mkdir()
  kept.write_text("mine")
  with pytest.raises(CorpusError, match=r"corpus\.beam: .*holds other files"):
    prepare_corpus(make_config(tmp_path), tmp_path / "corpus", staged)
  assert kept.read_text() == "mine"


def test_a_wrong_source_is_an_error_before_anything_is_written(tmp_path):
  config = make_config(tmp_path, corpus__source=f"text:{tmp_path}/none.txt")
  with pytest.raises(CorpusError, match="matches no file"):
    prepare_corpus(config, tmp_path / "corpus", staged)
  config = make_config(
    tmp_path, corpus__source=f"text:{tmp_path}/text/empty.txt"
  )
  with pytest.raises(CorpusError, match="holds no text"):
    prepare_corpus(config, tmp_path / "corpus", staged)
  assert os.listdir(tmp_path) == ["text"]


@pytest.mark.parametrize("max_bytes", [1, 50, 400, 10**6])
def test_the_stride_is_that_of_the_sample(max_bytes):
  rng = np.random.default_rng(max_bytes)
  lines = ["x" * n for n in rng.integers(1, 30, 101)]
  pieces = [lines[:40], [], lines[40:41], lines[41:]]
  sizes = [np.array([len(x) for x in p], np.uint32) for p in pieces]
  step, starts, total = piece_plan.choose_stride(sizes, max_bytes)
  assert starts == [0, 40, 40, 41]
  assert total == 101
  assert lines[::step] == training.sample_sentences(lines, max_bytes)


@pytest.mark.parametrize("shard_tokens", [1, 7, 20, 23, 10**4])
def test_merged_shards_are_those_of_one_stream(tmp_path, shard_tokens):
  rng = np.random.default_rng(5)
  stream = [
    [rng.integers(0, 50, n) for n in rng.integers(1, 6, rng.integers(1, 5))]
    for _ in range(37)
  ]

  def write(name, stream, shard_tokens):
    folder = tmp_path / name
    folder.mkdir()
    splits = shards.write_shards(
      str(folder),
      (("train", document) for document in stream),
      vocab_size=50,
      shard_tokens=shard_tokens,
    )
    return splits["train"]

  whole = write("whole", stream, shard_tokens)
  pieces = []
  for i, (low, high) in enumerate([(0, 3), (3, 4), (4, 4), (4, 30), (30, 37)]):
    made = write(f"piece{i}", stream[low:high], 40)
    pieces += [
      (str(tmp_path / f"piece{i}"), shards.shard_name("train", j))
      for j in range(len(made["shards"]))
    ]
  plan = list(merge_shards.plan_shards(pieces, shard_tokens=shard_tokens))
  (tmp_path / "again").mkdir()
  counts = np.zeros(50, np.int64)
  totals = []
  for i, slices in enumerate(plan):
    total, _, found = merge_shards.write_shard(
      str(tmp_path / "again"),
      shards.shard_name("train", i),
      slices,
      vocab_size=50,
    )
    totals.append(total)
    counts += found
  assert totals == whole["shards"]
  assert read_files(tmp_path / "again") == read_files(tmp_path / "whole")
  tokens = np.concatenate([np.concatenate(d) for d in stream])
  assert np.array_equal(counts, np.bincount(tokens, minlength=50))
