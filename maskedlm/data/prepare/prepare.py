"""Prepares a corpus: from text to a tokenizer and shards of token ids on disk.

The main function is `prepare`. It checks the path, and opens the corpus that is
already there, or calls a runner to make it: local.py, with processes on this
machine, or beam/. A document's split is determined by a hash of its text. The
corpus depends on the text and the options alone, not on the number of workers,
and not on the runner if each domain has 200 documents (documents.FEW) or more.
"""

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Callable

from maskedlm.core.counts import counted
from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import domain_splits, integrity, shards, store
from maskedlm.data.options import TextConfig
from maskedlm.data.prepare import local, options, vocabulary_sample
from maskedlm.data.sources import files, same_files
from maskedlm.data.sources.sentences import stripped
from maskedlm.data.tokenizers import lost_text
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.runtime import output_files, storage_errors

FEW_DOCUMENTS, FEW_TOKENS = 20, 2_000  # Held out; fewer are reported.
CHECKED_LINES = 1 << 15  # Of the source, for text that a new tokenizer loses.


def train_tokenizer(
  config: TextConfig, path, *, log: Callable = print
) -> Tokenizer:
  """Trains the tokenizer on the source's text, or loads tokenizer.path.

  Training reads the whole source except held-out documents, and uses every k-th
  sentence, as many as fit in sample_bytes, or for several domains a sample
  (vocabulary_sample.py). The result is saved to the directory `path`.

  Raises:
    ConfigError: `path` is a file or not writable.
    CorpusError: there is no text; or as for tokenizer.train_tokenizer and
      load_tokenizer.
    StorageError: the disk is full.
  """
  try:
    with output_files.folder(path):  # Fails before the text is read.
      read = local.document_reader(config, Counter())
      tokenizer = local.make_tokenizer(config, read(), log=log)
      lines = (line for document in read() for line in stripped(document.lines))
      checked = list(itertools.islice(lines, CHECKED_LINES))
      counts = lost_text.count_texts(tokenizer, checked)
      for warning in lost_text.describe(counts, sum(map(len, checked))):
        log(warning)
      tokenizer.save(path)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  return tokenizer


def prepare(
  config: TextConfig,
  path,
  *,
  log: Callable = print,
  run: Callable[..., store.Corpus] = local.run,
) -> store.Corpus:
  """Prepares the corpus at `path`, or opens the one prepared there before.

  Args:
    config: `corpus` and `tokenizer` are read.
    path: a directory, renamed into place when the corpus is complete; PATH.tmp
      and PATH.lock exist until then. If another process prepares the same path,
      this one waits and opens the result.
    log: called with lines for the user; at the end, one for each type of repair
      or cut made in the text.
    run: the runner, (config, path, log=) -> corpus.

  Raises:
    ConfigError: `path` is not writable, or the tokenizer's kind is not trained.
    CorpusError: there is no text, or too little; `path` holds a corpus prepared
      with other options, or something else; a worker was killed.
    StorageError: the disk is full.
  """
  path = os.path.abspath(path)
  # First, as it may be on a read-only disk, which has no lock.
  if integrity.is_complete(path):
    return _reuse(config, store.open_corpus(path), log)
  with _lock(path, log):
    if integrity.is_complete(path):
      return _reuse(config, store.open_corpus(path), log)
    store.check_destination(path)
    if config.tokenizer.kind == "wordlevel" and not config.tokenizer.path:
      raise ConfigError(
        "tokenizer.kind='wordlevel' is read, not trained: give tokenizer.path "
        "or another kind."
      )
    corpus = run(config, path, log=log)
  for line in describe_corpus(corpus):
    log(line)
  return corpus


def check_tokenizer(
  config: TextConfig, corpus: store.Corpus, *, log: Callable
) -> store.Corpus:
  """Returns the corpus of corpus.path, regardless of its source.

  Raises:
    CorpusError: it was prepared with another tokenizer than the config's.
  """
  return _reuse(config, corpus, log, sections=("tokenizer",))


def _reuse(
  config: TextConfig,
  corpus: store.Corpus,
  log: Callable,
  sections: tuple[str, ...] = ("corpus", "tokenizer"),
) -> store.Corpus:
  """Returns a corpus if the options of these sections are the same."""
  path, tokenizer = corpus.path, None
  if config.tokenizer.path:
    tokenizer = vocabulary_sample.load_given(config.tokenizer)
    if tokenizer.sha256 == corpus.tokenizer.sha256:  # Ignore how it was made.
      sections = tuple(name for name in sections if name != "tokenizer")
  requested = options.recorded_options(
    config, tokenizer, domains=bool(corpus.domains)
  )
  recorded = corpus.meta["options"]
  different = [
    name
    for name in sorted(requested.keys() | recorded.keys())
    if name.startswith(sections)
    and not same_files.is_same(name, requested.get(name), recorded.get(name))
  ]
  if different:
    raise CorpusError(
      options.describe_differences(path, requested, recorded, different)
    )
  source = recorded.get("corpus.parts") or recorded.get("corpus.source")
  log(
    f"corpus: {path}, prepared before from {source} (if the text has changed "
    "since, prepare it at another path)"
  )
  if corpus.meta["version"] == 1 and corpus.tokenizer.kind != "wordpiece":
    log(
      f"warning: {path} was prepared by an older maskedlm, which left out the"
      " spaces between sentences. Runs that began with it go on as before; for"
      " others, prepare it again at another path."
    )
  return corpus


@contextlib.contextmanager
def _lock(path: str, log: Callable):
  """Holds PATH.lock, which the system frees if the process is killed."""
  try:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = _open_lock(f"{path}.lock", log)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  try:
    yield
  finally:
    for clean_up in (lambda: os.unlink(file.name), file.close):
      with contextlib.suppress(OSError):  # It must not hide the first error.
        clean_up()


def _open_lock(name: str, log: Callable):
  if os.path.isfile(name) and os.path.getsize(name):
    raise CorpusError(
      f"{name}: prepare needs this name for an empty lock file, but the file"
      " isn't empty; move it away or use another path."
    )

  def on_wait() -> None:
    log(f"corpus: waiting for another process, which holds {name}")

  while True:
    file = output_files.lock(name, on_wait=on_wait)
    # The process that held the lock has unlinked the file, and perhaps another
    # one has created it again.
    with contextlib.suppress(FileNotFoundError):
      if os.path.samestat(os.stat(name), os.fstat(file.fileno())):
        return file
    file.close()


def describe_corpus(corpus: store.Corpus) -> list[str]:
  """Returns lines with the corpus's size, its text and the report's counts."""
  report = dict(corpus.meta["report"])
  splits = corpus.meta["splits"]
  lines = [f"corpus: {corpus.path}"]
  for split in shards.SPLITS:
    nouns = ("document", "sentence", "token")
    sizes = (counted(splits[split][f"{noun}s"], noun) for noun in nouns)
    lines.append(f"  {split}: {', '.join(sizes)}")
  lines += domain_splits.domain_table(corpus.domains)
  heldout = splits["heldout"]
  is_small = (
    heldout["documents"] < FEW_DOCUMENTS or heldout["tokens"] < FEW_TOKENS
  )
  if is_small and heldout["documents"]:
    lines[-1] += " (few: their loss is rough; raise corpus.heldout_share)"
  tokens = sum(counts["tokens"] for counts in splits.values())
  characters = lost_text.kept_characters(report)
  words = report.pop("words")
  del report["characters"], report["unknown tokens"]
  lines.append(
    f"  text: {counted(characters, 'character')}, {counted(words, 'word')};"
    f" {characters / tokens:.3f} characters per token,"
    f" {tokens / max(words, 1):.3f} tokens per word,"
    f" {lost_text.total(report) / max(characters, 1):.3%} of the characters"
    " lost"
  )
  counts = sorted((k, v) for k, v in report.items() if v)
  warnings = [name for name, _ in counts if name.startswith(files.WARNING)]
  # A vocabulary that was trained on domains has reported what each loses.
  if options.TOKENIZER_HASH in corpus.meta["options"] or not corpus.domains:
    warnings += lost_text.describe(report, characters)
  return [
    *lines,
    *(f"  {name}: {n:,}" for name, n in counts if name not in warnings),
    *warnings,
  ]
