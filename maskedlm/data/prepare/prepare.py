"""From text to a corpus on disk: tokenizer -> worker processes -> shards.

The one function to know is `prepare`. It reads the documents of `sources`,
decides by a hash of each which side it is on, has workers split and tokenise
them, and streams the result to `store.write_corpus`. What it writes depends on
the text and the options only, not on the number of workers.
"""

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from ml_collections import ConfigDict

from maskedlm.core.errors import (ConfigError, CorpusError)
from maskedlm.data import workers
from maskedlm.data.corpus import language_parts as parts_lib
from maskedlm.data.corpus import store
from maskedlm.data.prepare import (dedup, encode, vocabulary_sample)
from maskedlm.data.prepare import documents as documents_lib
from maskedlm.data.sources import languages
from maskedlm.data.tokenizers import tokenizer as tokenizer_lib
from maskedlm.runtime import (output_files, storage_errors)

# The options that decide what a corpus holds, besides the tokenizer's.
OPTIONS = (
  "source",
  "text_field",
  "sentences",
  "language",
  "heldout_share",
  "max_sentence_tokens",
  "shard_tokens",
)
# Those that came later, with what was before they came.
LATER_OPTIONS = {"deduplicate": False, "near_duplicates": 0.0}
_GIVEN = "tokenizer.path (its SHA-256)"  # In place of the tokenizer's options.


def train_tokenizer(
  config: ConfigDict, path, *, log: Callable = print, progress: bool = True
) -> tokenizer_lib.Tokenizer:
  """Trains the tokenizer on the source's text, or loads tokenizer.path.

  Training reads the whole source, leaves out what will be held out, and takes
  every k-th sentence, as many as sample_bytes has room for, or of several
  parts a sample (vocabulary.py). The result is saved to the directory `path`.

  Raises:
    ConfigError: an option out of range; `path` is a file, or can't be written.
    CorpusError: no text, or what tokenizer.train and tokenizer.load raise.
    StorageError: the disk is full.
  """
  check_options(config)
  try:
    os.makedirs(path, exist_ok=True)  # What is wrong with it is told now.
    tokenizer = _train_tokenizer(
      config, document_reader(config, Counter(), progress)(), log, progress
    )
    tokenizer.save(path)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  return tokenizer


def _train_tokenizer(
  config: ConfigDict,
  documents: Iterable[documents_lib.Document],
  log: Callable,
  progress: bool,
) -> tokenizer_lib.Tokenizer:
  if progress:
    documents = documents_lib.show_progress(
      documents, "reading for the tokenizer", lambda d: (1, d.num_bytes)
    )
  return make_tokenizer(
    config, lambda: vocabulary_sample.train_on_documents(config, documents, log=log), log=log
  )


def make_tokenizer(
  config: ConfigDict, train: Callable, *, log: Callable
) -> tokenizer_lib.Tokenizer:
  """What tokenizer.path has, or else what train() returns."""
  options = config.tokenizer
  if options.path:
    tokenizer = tokenizer_lib.load(options.path)
    origin = f"loaded from {options.path}"
  else:
    tokenizer = train()
    origin = f"trained on {config.corpus.parts or config.corpus.source}"
  log(f"tokenizer: {tokenizer.kind}, {tokenizer.vocab_size:,} tokens, {origin}")
  return tokenizer


def prepare(
  config: ConfigDict,
  path,
  *,
  log: Callable = print,
  progress: bool = True,
  write: Callable[..., store.Corpus] | None = None,
) -> store.Corpus:
  """Prepares the corpus at `path`, or opens what was prepared there before.

  Args:
    config: of it, `corpus` and `tokenizer` count.
    path: a directory. It appears when all is done, in one rename; PATH.tmp and
      PATH.lock stand beside it meanwhile. Where another process prepares the
      same path, this one waits and opens the result.
    log: called with lines for the user; at the end, one for each kind of thing
      that was found and handled in the text.
    progress: whether to show on stderr how far it is.
    write: does the work, as (config, path, log=, progress=) -> corpus; by
      default processes on this machine. The other one is beam.py's.

  Raises:
    ConfigError: an option out of range; `path` can't be written.
    CorpusError: no or too little text; a corpus at `path` that was prepared
      with other options, or something else; a worker that was killed.
    StorageError: no space on the disk.
  """
  check_options(config)
  path = os.path.abspath(path)
  if _is_there(path):  # Perhaps on a disk that can only be read.
    return _reuse(config, path, log)
  with _lock(path, log):
    if _is_there(path):
      return _reuse(config, path, log)
    store.check_place(path)
    corpus = (write or _write)(config, path, log=log, progress=progress)
  for line in describe_corpus(corpus):
    log(line)
  return corpus


def _write(
  config: ConfigDict, path: str, *, log: Callable, progress: bool
) -> store.Corpus:
  """Prepares by processes on this machine."""
  report = Counter()
  parts = parts_lib.empty_counts(languages.parse_domains(config.corpus))
  read = document_reader(config, report, progress)
  tokenizer = _train_tokenizer(config, read(), log, progress)
  # The workers load it from where the corpus is written: no other can be there.
  tokenizer_path = os.path.join(store.work_folder(path), "tokenizer")
  return store.write_corpus(
    path,
    _encode_documents(config, tokenizer_path, read(), report, parts, progress),
    tokenizer=tokenizer,
    shard_tokens=config.corpus.shard_tokens,
    options=recorded_options(config, tokenizer, parts=bool(parts)),
    report=report,
    parts=parts,
  )


def document_reader(
  config: ConfigDict, report: Counter, progress: bool
) -> Callable[[], Iterable[documents_lib.Document]]:
  """A function that gives the documents to encode, each time it is called.

  A small source is read once. The report is of the latest reading.
  """
  kept = []

  def read():
    if kept:
      return iter(kept)
    report.clear()
    return documents_lib.cache_small(documents_lib.read_documents(config, report), kept)

  if not dedup.is_enabled(config.corpus):
    return read
  documents = read()
  if progress:
    documents = documents_lib.show_progress(
      documents, "looking for duplicates", lambda d: (1, d.num_bytes)
    )
  fate, characters = dedup.find_duplicates(documents, config.corpus)

  def read_unique():
    documents = read()
    dict.update(report, dedup.count_dropped(fate, characters))  # Not added.
    return itertools.compress(documents, fate == dedup.KEPT)

  return read_unique


def _encode_documents(
  config: ConfigDict,
  tokenizer_path: str,
  documents: Iterable[documents_lib.Document],
  report: Counter,
  parts: list[dict],
  progress: bool,
) -> Iterator[tuple[str, list[np.ndarray]]]:
  """(split, ids of each sentence) of the documents.

  Counts in `report` and, what goes into the corpus, in `parts`.
  """
  options = config.corpus
  encoded = workers.ordered_map(
    encode.make_encoder,
    (
      tokenizer_path,
      options.sentences,
      options.max_sentence_tokens,
    ),
    documents_lib.make_chunks(
      documents_lib.split_documents(documents, options.heldout_share)
    ),
    num_workers=workers.number(options),
  )
  if progress:
    encoded = documents_lib.show_progress(
      encoded, "preparing", lambda e: (len(e.documents), e.num_bytes)
    )
  yield from encode.unpack_documents(encoded, report, parts)


def check_options(config: ConfigDict):
  """Ranges of the options used here; sources and tokenizer check theirs."""
  options = config.corpus
  for name, low, high in (
    ("num_workers", 0, 1 << 12),
    ("max_sentence_tokens", 2, 1 << 20),
    ("shard_tokens", 1, store.shards.MAX_TOKENS - 1),
  ):
    if not low <= options[name] <= high:
      raise ConfigError(
        f"corpus.{name}={options[name]} must be within {low}..{high}."
      )
  if not 0 <= options.near_duplicates <= 1:
    raise ConfigError(
      f"corpus.near_duplicates={options.near_duplicates} is a similarity:"
      " expected 0 (keep them) to 1, as 0.8."
    )
  if not 0 <= options.heldout_share < 1:
    raise ConfigError(
      f"corpus.heldout_share={options.heldout_share} must be at least 0 and"
      " below 1, as 0.01."
    )


def recorded_options(config, tokenizer, *, parts: bool) -> dict:
  """What decides the corpus's content, to be compared at the next prepare.

  Options that came later are there where they count, so that a corpus which
  was prepared before they came is the same.
  """
  recorded = {f"corpus.{name}": config.corpus[name] for name in OPTIONS}
  for name, before in LATER_OPTIONS.items():
    if config.corpus[name] != before:
      recorded[f"corpus.{name}"] = config.corpus[name]
  if config.corpus.parts:
    recorded["corpus.parts"] = config.corpus.parts
    del recorded["corpus.source"], recorded["corpus.language"]
  if config.tokenizer.path:  # Wherever the file lies, its content counts.
    return {**recorded, _GIVEN: tokenizer.sha256}
  for name in vocabulary_sample.OPTIONS:
    recorded[f"tokenizer.{name}"] = config.tokenizer[name]
  for name, before in vocabulary_sample.LATER_OPTIONS.items():
    if config.tokenizer[name] != before:
      recorded[f"tokenizer.{name}"] = config.tokenizer[name]
  if parts:
    recorded["tokenizer.alpha"] = config.tokenizer.alpha
  return recorded


def _is_there(path: str) -> bool:
  return os.path.exists(os.path.join(path, "meta.json"))


def open_existing(config: ConfigDict, path, *, log: Callable) -> store.Corpus:
  """Opens the corpus that corpus.path names, whatever text it was made of.

  Raises:
    CorpusError: it was prepared with another tokenizer than the config's.
  """
  return _reuse(config, os.path.abspath(path), log, sections=("tokenizer",))


def _reuse(
  config: ConfigDict,
  path: str,
  log: Callable,
  sections: tuple[str, ...] = ("corpus", "tokenizer"),
) -> store.Corpus:
  """Opens what was prepared before, if these sections' options are the same."""
  corpus = store.open_corpus(path)
  tokenizer = None
  if config.tokenizer.path:
    tokenizer = tokenizer_lib.load(config.tokenizer.path)
    if tokenizer.sha256 == corpus.tokenizer.sha256:  # However it was made.
      sections = tuple(name for name in sections if name != "tokenizer")
  wanted = recorded_options(config, tokenizer, parts=bool(corpus.parts))
  there = corpus.meta["options"]
  different = [
    f"{name}={wanted.get(name)!r} (there {there.get(name)!r})"
    for name in sorted(wanted.keys() | there.keys())
    if name.startswith(sections) and wanted.get(name) != there.get(name)
  ]
  if _GIVEN in there and not config.tokenizer.path:
    # No option of a training says what was given, so the file is named.
    different = [d for d in different if not d.startswith("tokenizer.")]
    name = os.path.join(path, "tokenizer")
    different.append(f"tokenizer.path='' (there that of {name})")
  if different:
    raise CorpusError(
      f"{path} was prepared with other options: {', '.join(different)}. Give"
      " the same ones, set corpus.path to another directory, or remove this one"
      " to prepare it again."
    )
  source = there.get("corpus.parts") or there.get("corpus.source")
  log(
    f"corpus: {path}, prepared before from {source} (if the text has changed"
    " since, remove it)"
  )
  return corpus


@contextlib.contextmanager
def _lock(path: str, log: Callable):
  """One prepare at a time; the system frees the lock of a killed process."""
  try:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = _locked_file(f"{path}.lock", log)
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  with file:
    try:
      yield
    finally:
      os.unlink(file.name)


def _locked_file(name: str, log: Callable):
  if os.path.isfile(name) and os.path.getsize(name):
    raise CorpusError(
      f"{name}: prepare locks a file of this name, but this isn't its own,"
      " which is empty; use another path."
    )

  def on_wait() -> None:
    log(f"corpus: waiting for another process, which holds {name}")

  while True:
    file = output_files.lock(name, on_wait=on_wait)
    # Whoever had it has unlinked it, and perhaps someone made it anew.
    with contextlib.suppress(FileNotFoundError):
      if os.path.samestat(os.stat(name), os.fstat(file.fileno())):
        return file
    file.close()


def describe_corpus(corpus: store.Corpus) -> list[str]:
  """The corpus in lines: its size, its text, all that was found in it."""
  report = dict(corpus.meta["report"])
  splits = corpus.meta["splits"]
  lines = [f"corpus: {corpus.path}"]
  for split in store.shards.SPLITS:
    counts = splits[split]
    lines.append(
      f"  {split}: {counts['documents']:,} documents,"
      f" {counts['sentences']:,} sentences, {counts['tokens']:,} tokens"
    )
  lines += parts_lib.describe(corpus.parts)
  tokens = sum(counts["tokens"] for counts in splits.values())
  words, characters = report.pop("words"), report.pop("characters")
  characters -= report.get("characters of dropped documents", 0)
  unknown = report.pop("unknown tokens")
  lines.append(
    f"  text: {characters:,} characters, {words:,} words;"
    f" {characters / tokens:.3f} characters a token,"
    f" {tokens / max(words, 1):.3f} tokens a word,"
    f" {unknown / tokens:.3%} of the tokens unknown"
  )
  found = sorted((k, v) for k, v in report.items() if v)
  return lines + [f"  {name}: {count:,}" for name, count in found]
