"""Opens the corpora of a run of pretraining, and keeps its tokenizer."""

import dataclasses
import os
import pathlib

import jax
from ml_collections import ConfigDict

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.batches import domain_mixture
from maskedlm.data.corpus import integrity, store, streamed
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import prepare
from maskedlm.data.sources import domains
from maskedlm.data.tokenizers import tokenizer
from maskedlm.pretraining import predictions
from maskedlm.pretraining.config import PretrainConfig, split
from maskedlm.runtime import buckets, console
from maskedlm.training.checkpoints import resume


def open_corpora(
  config: ConfigDict, workdir: pathlib.Path
) -> list[store.Corpus]:
  """Returns the corpus of each phase, which is checked.

  Raises:
    ConfigError: as _open_corpus and _open_at, or two corpora have different
      tokenizers.
    CorpusError: there is nothing to predict in a corpus.
  """
  configs = [phase.config for phase in split(config)]
  paths = dict.fromkeys(c.corpus.path for c in configs)
  start, *later = paths
  # First the others, as preparing the first phase's text may take hours.
  opened = {path: _open_at(configs[0], path, "phases: ") for path in later}
  first = opened[start] = _open_corpus(configs[0], workdir)
  for path, corpus in opened.items():
    if corpus.tokenizer.sha256 != first.tokenizer.sha256:
      raise ConfigError(
        f"phases: corpus.path={path!r} has another tokenizer: prepare it again "
        f"with --config.tokenizer.path={first.path}/tokenizer."
      )
    predictions.check_corpus(corpus)
  return [opened[c.corpus.path] for c in configs]


def _open_at(config: TextConfig, path: str, where: str) -> store.Corpus:
  """Opens the corpus at a path, a folder or an address.

  Raises:
    ConfigError: nothing is there, which begins with `where`; or the address may
      not be read.
    CorpusError: it can't be opened.
    StorageError: the address can't be read at present.
  """
  if not buckets.is_address(path):
    folder = buckets.folder(path)
    if not path or not os.path.lexists(folder):
      raise ConfigError(
        f"{where}corpus.path={path!r}: nothing is at {folder}. Correct it, or "
        "prepare a corpus there, `maskedlm prepare --config=... "
        f"--out={folder}`."
      )
  cache_gb = config.corpus.cache_gb
  return streamed.open_corpus(path, cache_gb=cache_gb, log=console.warn)


def _open_corpus(config: PretrainConfig, workdir: pathlib.Path) -> store.Corpus:
  """Opens the corpus of corpus.path, or the workdir's, prepared if missing.

  Raises:
    ConfigError: there is none at corpus.path; or corpus.path is empty, and the
      workdir is an address, or has no corpus and there are several hosts, or
      holds a run with another corpus.
  """
  if config.corpus.path:
    # If it is misspelt, preparing would hide the mistake.
    corpus = _open_at(config, config.corpus.path, "")
    return prepare.check_tokenizer(config, corpus, log=console.warn)
  path = workdir / "corpus"
  if not integrity.is_complete(path):
    resume.check_corpus_options(workdir, dataclasses.asdict(config))
  if buckets.is_address(buckets.origin(workdir)):
    raise ConfigError(
      f"{buckets.origin(workdir)} can't hold the corpus, mapped from a "
      "disk: prepare it, and give --config.corpus.path=FOLDER, or =gs://... if "
      "you copy it there."
    )
  if not integrity.is_complete(path):
    # Checked now, not after hours of preparing.
    names = [x.name for x in domains.parse_domains(config.corpus) if x.name]
    domain_mixture.parse_domain_shares(config.data.shares, names)
    if jax.process_count() > 1:
      raise ConfigError(
        f"no corpus at {path}: several hosts don't prepare one. Do that first, "
        "on one machine: `maskedlm prepare --config=... --out=FOLDER`; then "
        "give all hosts --config.corpus.path=FOLDER."
      )
  return prepare.prepare(config, path, log=console.warn)


def keep_tokenizer(
  config: ConfigDict, corpus: store.Corpus, workdir: pathlib.Path
) -> None:
  """Copies the corpus's tokenizer into the workdir.

  Raises:
    ConfigError: the workdir has another tokenizer, or a damaged one.
  """
  path = workdir / "tokenizer"
  tokenizer.save_if_absent(corpus.tokenizer, path)
  try:
    sha256 = tokenizer.open_tokenizer(path).sha256
  except CorpusError as error:
    raise ConfigError(
      f"{path} is damaged ({error}): remove it, and the same command writes it "
      "again."
    ) from error
  if sha256 != corpus.tokenizer.sha256:
    resume.check_corpus_options(workdir, values(config))
    raise ConfigError(
      f"{path} is not the corpus's tokenizer ({sha256[:12]}, the corpus has "
      f"{corpus.tokenizer.sha256[:12]}): this workdir holds another run, or a "
      "damaged copy: give another --workdir, or remove the copy."
    )


def values(config: ConfigDict) -> dict:
  """Returns a config as config.json has it."""
  return parse_json(config.to_json_best_effort())
