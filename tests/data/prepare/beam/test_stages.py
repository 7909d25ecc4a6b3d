"""The stages write the same bytes as the local runner.

Here each stage is a loop, so that they are tested without Apache Beam;
test_runner.py uses it.
"""

import collections
import functools
import json
import os

import pytest

from helpers import damage
from helpers.many_files import make_config, make_text
from helpers.prepare_corpus import prepare_corpus, read_files
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import store
from maskedlm.data.prepare.beam import job, runner, stages


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
    {"corpus__heldout_share": 0.0},
    {"corpus__heldout_share": 0.3, "corpus__deduplicate": True},
    # Two documents are delayed from the first piece to the last.
    {"corpus__heldout_share": 1e-9, "corpus__near_duplicates": 0.7},
    {"tokenizer__sample_bytes": 900, "corpus__sentences": "split"},
    {"corpus__min_words": 12, "corpus__max_repetition": 0.9},
  ],
  ids=["none-held-out", "copies", "delayed", "sample", "filtered"],
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


@pytest.mark.parametrize("spoil", [damage.flip, damage.cut, damage.pickled])
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
