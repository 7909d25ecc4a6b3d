"""Options of a vocabulary beside one that exists: obeyed, refused or named."""

import json

import pytest

from helpers import web_server
from maskedlm.cli import frame, pretrain
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import store, streamed
from maskedlm.data.prepare import prepare

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
TEXT = "the cat sat the cat\n\nthe sat sat\n\nthe the cat\n\ncat sat\n\n"


@pytest.fixture
def vocab(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n")
  return path


def _opened(config, path):
  corpus = store.open_corpus(path)
  return prepare.check_tokenizer(config, corpus, log=print)


def _config(tmp_path, *argv, file="", workdir=""):
  """Parses a command line on a config file that ends in the lines `file`."""
  path = tmp_path / "config.py"
  path.write_text(
    "from maskedlm.config import defaults\n\ndef get_config():\n"
    f"  config = defaults.default()\n{file}  return config\n"
  )
  argv = [f"--config={path}", *(f"--config.{option}" for option in argv)]
  argv.append(f"--workdir={workdir or tmp_path / 'none'}")
  return frame.parse(pretrain.Pretrain, "pretrain", argv).config


def test_kind_and_size_are_those_of_the_path(tmp_path, vocab, capsys):
  config = _config(
    tmp_path,
    f"tokenizer.path={vocab}",
    file="  config.tokenizer.kind = 'bpe'\n"
    "  config.tokenizer.vocab_size = 50_265\n",
  )
  assert (config.tokenizer.kind, config.tokenizer.vocab_size) == (
    "wordpiece",
    8,
  )
  assert capsys.readouterr().err == ""  # The preset's values bother nobody.


@pytest.mark.parametrize(
  "option", ["kind=bpe", "normalization=nfc", "byte_fallback=True"]
)
def test_what_contradicts_the_path_is_refused(tmp_path, vocab, option):
  with pytest.raises(ConfigError, match=f"tokenizer.{option.split('=')[0]}="):
    _config(tmp_path, f"tokenizer.path={vocab}", f"tokenizer.{option}")
  config = _config(
    tmp_path, f"tokenizer.path={vocab}", "tokenizer.kind=wordpiece"
  )
  assert config.tokenizer.vocab_size == 8


@pytest.mark.parametrize("prepared", [False, True])
def test_the_command_that_started_a_run_continues_it(
  tmp_path, vocab, capsys, prepared
):
  argv = [f"tokenizer.path={vocab}", "tokenizer.kind=bpe"]
  if prepared:
    argv[0] = f"corpus.path={_prepared(tmp_path, argv[0])}"
  run = tmp_path / "run"
  with pytest.raises(ConfigError, match=r"tokenizer\.kind='bpe'"):
    _config(tmp_path, *argv, workdir=run)
  run.mkdir()
  capsys.readouterr()
  config = _config(tmp_path, *argv, workdir=run)
  assert config.tokenizer.kind == "wordpiece"
  assert "tokenizer.kind='bpe' without effect" in capsys.readouterr().err


def test_lowercase_is_obeyed_or_refused(tmp_path, vocab, capsys):
  path, cased = f"tokenizer.path={vocab}", "tokenizer.lowercase=False"
  in_file = "  config.tokenizer.lowercase = False\n"
  both = f"  config.tokenizer.path = {str(vocab)!r}\n{in_file}"
  for config, lowercase in (
    (_config(tmp_path, path), None),
    (_config(tmp_path, path, cased), False),
    (_config(tmp_path, file=both), False),
  ):
    assert config.tokenizer.lowercase is lowercase
  assert capsys.readouterr().err == ""
  # A preset's value yields to a path on the command line.
  config = _config(tmp_path, path, file=in_file)
  assert config.tokenizer.lowercase is None
  assert "tokenizer.lowercase=False without effect" in capsys.readouterr().err
  beside = vocab.with_name("tokenizer_config.json")
  beside.write_text('{"do_lower_case": true}')
  with pytest.raises(CorpusError, match=r"tokenizer\.lowercase=False"):
    _config(tmp_path, path, cased)


def _prepared(tmp_path, *options):
  (tmp_path / "t.txt").write_text(TEXT * 9)
  config = _config(
    tmp_path,
    f"corpus.source=text:{tmp_path}/t.txt",
    "corpus.heldout_share=0.2",
    *options,
  )
  path = tmp_path / "corpus"
  prepare.prepare(config, path, log=lambda line: None)
  return path


def test_a_corpus_brings_the_options_of_its_tokenizer(tmp_path, capsys):
  path = _prepared(
    tmp_path,
    "tokenizer.kind=bpe",
    "tokenizer.vocab_size=270",
    "tokenizer.lowercase=False",
  )
  capsys.readouterr()
  config = _config(tmp_path, f"corpus.path={path}")
  assert config.tokenizer.kind == "bpe"
  assert config.tokenizer.vocab_size == 270
  assert config.tokenizer.lowercase is False
  assert _opened(config, path).meta["vocab_size"]
  # A config file's other values are named, the defaults are not.
  config = _config(
    tmp_path,
    f"corpus.path={path}",
    file="  config.tokenizer.vocab_size = 999\n",
  )
  assert config.tokenizer.vocab_size == 270
  err = capsys.readouterr().err
  assert "tokenizer.vocab_size=999 is 270" in err and "kind" not in err
  # The command line's are not replaced, so that they contradict the corpus.
  config = _config(tmp_path, f"corpus.path={path}", "tokenizer.vocab_size=300")
  with pytest.raises(CorpusError, match=r"tokenizer\.vocab_size=300"):
    _opened(config, path)


def test_a_damaged_corpus_is_not_taken_for_none(tmp_path):
  """A plan, which opens no corpus, would be that of another vocabulary."""
  for path in (tmp_path, tmp_path / "none"):
    config = _config(tmp_path, f"corpus.path={path}")
    assert config.tokenizer.vocab_size == 30_522
  (tmp_path / "meta.json").write_text(json.dumps([1]))
  with pytest.raises(CorpusError, match=r"meta\.json: \"format\" is not"):
    _config(tmp_path, f"corpus.path={tmp_path}")


@pytest.mark.parametrize("is_served", [False, True])
def test_a_corpus_brings_a_given_tokenizer(
  tmp_path, vocab, monkeypatch, is_served
):
  """A web server lists no folders."""
  pytest.importorskip("aiohttp")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  path = _prepared(tmp_path, f"tokenizer.path={vocab}")
  with web_server.serve(path.parent) as web:
    address = f"{web.address}/{path.name}" if is_served else str(path)
    config = _config(tmp_path, f"corpus.path={address}")
    assert config.tokenizer.vocab_size == 8
    if is_served:
      corpus = streamed.open_corpus(address, cache_gb=1.0, log=print)
    else:
      corpus = store.open_corpus(address)
    assert prepare.check_tokenizer(config, corpus, log=print) is corpus
    assert len(corpus.token_counts) == 8
