"""Domains of a corpus: corpus.parts, data.shares, counts, views of one."""

import itertools
import json
import shutil
import types

import numpy as np
import pytest

from helpers.languages import DOCUMENTS, LETTERS, language_of, make_config
from helpers.prepare_corpus import prepare_corpus
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.batches import domain_mixture
from maskedlm.data.corpus import concat, domain_splits, manifest, store
from maskedlm.data.sources import domains
from maskedlm.data.sources.domains import Domain


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  """(config, corpus) with shards that end within domains."""
  folder = tmp_path_factory.mktemp("parts")
  config = make_config(folder, shard_tokens=300)
  return config, prepare_corpus(config, folder / "corpus")


def parse(option):
  return domains.parse_domains(types.SimpleNamespace(parts=option))


def test_names_and_sources():
  assert parse("en:text:/a/en.txt, de:/b/*.txt,zh_hant:jsonl:c.jsonl") == [
    Domain("en", "en", "text:/a/en.txt"),
    Domain("de", "de", "text:/b/*.txt"),
    Domain("zh_hant", "zh", "jsonl:c.jsonl"),
  ]
  alone = types.SimpleNamespace(parts="", language="fi", source="docstrings:")
  assert domains.parse_domains(alone) == [Domain("", "fi", "docstrings:")]


def test_a_folder_has_a_domain_per_file(tmp_path):
  for name in ("yo.txt", "de.txt.gz", "en-web.txt", ".de.txt", "notes.md"):
    (tmp_path / name).write_text("a")
  found = parse(f"{tmp_path},fr:/fr.txt")
  assert [(p.name, p.language) for p in found] == [
    ("de", "de"),
    ("en-web", "en"),
    ("yo", "yo"),
    ("fr", "fr"),
  ]
  assert found[0].source == f"text:{tmp_path}/de.txt.gz"
  comma = tmp_path / "a,b"
  comma.mkdir()
  (comma / "de.txt").write_text("a")
  assert [p.source for p in parse(str(comma))] == [f"text:{comma}/de.txt"]
  assert parse(f"en:lines:{tmp_path}/x.txt")[0].source.startswith("lines:")


@pytest.mark.parametrize(
  ("option", "message"),
  [
    ("de:/a.txt,de:/b.txt", "two parts with the name 'de'"),
    ("hf://datasets/a/*.txt", "'hf://datasets/a/*.txt' is neither NAME:SO"),
    ("german:/a.txt", "'german:/a.txt' is neither NAME:SOURCE"),
    ("/no/such/folder", "nor a folder of files such as de.txt"),
    ("txt:/a.txt,text:/b.txt", "'text:/b.txt' is neither"),
  ],
)
def test_an_option_that_is_wrong(option, message):
  with pytest.raises(CorpusError) as error:
    parse(option)
  assert message in str(error.value) and "\n" not in str(error.value)


def test_shares_by_hand():
  names = ["en-web", "en-code", "de"]
  assert domain_mixture.parse_domain_shares("", names) is None
  found = domain_mixture.parse_domain_shares("de=2, en-web=5,en-code=3", names)
  assert found.tolist() == [0.5, 0.3, 0.2]
  found = domain_mixture.parse_domain_shares("en-web=1,en-code=0,de=3", names)
  assert found.tolist() == [0.25, 0, 0.75]


@pytest.mark.parametrize(
  ("shares", "names", "message"),
  [
    ("en=1,dd=2", ["en", "de"], "'dd' is no domain .*did you mean \"de\""),
    ("en=1", [], "'en' is no domain .* it has none"),
    ("en=1", ["en", "de", "fr"], "leaves out de, fr"),
    ("en=-1,de=2", ["en", "de"], "'en=-1': expected NAME=WEIGHT"),
    ("en=nan,de=2", ["en", "de"], "'en=nan': expected NAME=WEIGHT"),
    ("en=9,de=1,en=1", ["en", "de"], "has 'en' twice"),
    ("en,de=2", ["en", "de"], "'en': expected NAME=WEIGHT"),
    ("en=0,de=0", ["en", "de"], "one weight must be above 0"),
  ],
)
def test_shares_that_are_wrong(shares, names, message):
  with pytest.raises(ConfigError, match=message) as error:
    domain_mixture.parse_domain_shares(shares, names)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "'xx': 'text:.*' holds no text"),
    ("one\n\ntwo\n", "'xx': corpus.heldout_share=0.2.*leaves none"),
  ],
)
def test_a_domain_with_too_little_text(tmp_path, text, message):
  config = make_config(tmp_path)
  (tmp_path / "xx.txt").write_text(text)
  config.corpus.parts += f",xx:{tmp_path}/xx.txt"
  with pytest.raises(CorpusError, match=message) as error:
    prepare_corpus(config, tmp_path / "corpus")
  assert str(error.value).startswith("corpus.parts: 'xx': ")


def test_each_domain_has_its_documents(made):
  _, corpus = made
  language = language_of(corpus)
  assert [p["name"] for p in corpus.domains] == list(LETTERS)
  for name in ("train", "heldout"):
    split = getattr(corpus, name)
    documents, sentences, tokens = (
      concat.take(c, np.arange(concat.size(c)))
      for c in (split.documents, split.sentences, split.tokens)
    )
    counts = [p[name]["documents"] for p in corpus.domains]
    part = np.repeat(np.arange(3), counts)
    bounds = sentences[documents]
    for own, (begin, end) in zip(part, itertools.pairwise(bounds), strict=True):
      found = language[tokens[begin:end]]
      assert set(found[found >= 0]) <= {own}
  both = [
    p["train"]["documents"] + p["heldout"]["documents"] for p in corpus.domains
  ]
  assert both == list(DOCUMENTS.values())
  assert all(p["heldout"]["documents"] >= 2 for p in corpus.domains)


def test_a_domain_alone_is_the_corpus_of_its_file(made, tmp_path):
  config, corpus = made
  alone = domain_splits.split_by_domain(corpus)
  assert len({c.fingerprint for c in alone.values()}) == 3
  for part in domains.parse_domains(config.corpus):
    single = config.copy_and_resolve_references()
    single.corpus.parts = ""
    single.corpus.source = part.source
    single.corpus.shard_tokens = 1 << 20
    single.tokenizer.path = f"{corpus.path}/tokenizer"
    expected = prepare_corpus(single, tmp_path / part.name)
    for name in ("train", "heldout"):
      for one, other in zip(
        getattr(alone[part.name], name), getattr(expected, name), strict=True
      ):
        assert concat.size(one) == concat.size(other)
        at = np.arange(concat.size(one))
        np.testing.assert_array_equal(
          concat.take(one, at), concat.take(other, at)
        )


def test_verify_compares_the_counts_with_the_files(made, tmp_path):
  path = shutil.copytree(made[1].path, tmp_path / "corpus")
  text = (path / "meta.json").read_text()

  def problems(parts):
    meta = json.loads(text) | {"parts": parts}
    meta["fingerprint"] = manifest.fingerprint(meta)
    meta["checksum"] = manifest.checksum(meta)
    (path / "meta.json").write_text(json.dumps(meta))
    return store.verify_corpus(path)

  parts = json.loads(text)["parts"]
  assert problems(parts) == [] and len(problems(parts[:2])) == 2
  for name, wrong in (("documents", 1), ("sentences", 1), ("tokens", 2)):
    moved = json.loads(text)["parts"]
    moved[0]["train"][name] -= wrong
    moved[1]["train"][name] += wrong
    (found,) = problems(moved)
    assert "not those of the train files" in found
