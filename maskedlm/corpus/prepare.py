"""From text to a corpus on disk: tokenizer -> worker processes -> shards.

The one function to know is `prepare`. It reads the documents of `sources`,
decides by a hash of each which side it is on, has workers split and tokenise
them, and streams the result to `store.write_corpus`. What it writes depends on
the text and the options only, not on the number of workers. Read bottom-up.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from maskedlm.config import ConfigError
from maskedlm.corpus import documents as documents_lib
from maskedlm.corpus import sources, store, workers
from maskedlm.corpus import tokenizer as tokenizer_lib
from maskedlm.corpus.errors import CorpusError

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
TOKENIZER_OPTIONS = ("kind", "vocab_size", "lowercase", "sample_bytes")


class Encoded(NamedTuple):
  """What a worker makes of a chunk: arrays, since they are fast to send."""

  tokens: np.ndarray  # [n]: the ids of all sentences.
  lengths: np.ndarray  # [s]: tokens of each sentence.
  documents: list[tuple[str, int]]  # Split and number of sentences of each.
  num_bytes: int  # Of text.
  report: Counter


# In the workers


def make_encoder(
  tokenizer_path: str, mode: str, language: str, max_tokens: int
) -> Callable[[list], Encoded]:
  """chunk -> Encoded, with the tokenizer loaded in this process."""
  tokenizer = tokenizer_lib.load(tokenizer_path)
  dtype = store.shards.token_dtype(tokenizer.vocab_size)

  def encode(chunk):
    report = Counter()
    sentences, ends = [], []
    for _, document in chunk:
      sentences += sources.split_sentences(
        document.lines, mode=mode, language=language, report=report
      )
      ends.append(len(sentences))
    ids = tokenizer.encode_batch(sentences)
    report["words"] += sum(len(sentence.split()) for sentence in sentences)
    report["sentences without tokens"] += sum(not len(i) for i in ids)
    report["sentences cut at max_sentence_tokens"] += sum(
      len(i) > max_tokens for i in ids
    )
    documents, lengths = [], []
    for (split, _), begin, end in zip(chunk, [0, *ends], ends, strict=False):
      before = len(lengths)
      for sentence in ids[begin:end]:
        lengths += cut(len(sentence), max_tokens)
      documents.append((split, len(lengths) - before))
    tokens = np.concatenate([np.empty(0, np.int32), *ids]).astype(dtype)
    unknown = np.count_nonzero(tokens == tokenizer.special.unk)
    report["unknown tokens"] += int(unknown)
    return Encoded(
      tokens,
      np.array(lengths, np.int64),
      documents,
      sum(document.num_bytes for _, document in chunk),
      report,
    )

  return encode


def cut(length: int, max_length: int) -> list[int]:
  """Lengths of the fewest and most equal pieces: 7 by at most 3 -> 3, 2, 2."""
  pieces = -(-length // max_length)
  return [(length + i) // pieces for i in reversed(range(pieces))]


# Putting it together


def train_tokenizer(
  config: ConfigDict, path, *, log: Callable = print, progress: bool = True
) -> tokenizer_lib.Tokenizer:
  """Trains the tokenizer on the source's text, or loads tokenizer.path.

  Training reads the whole source, leaves out what will be held out, and takes
  every k-th sentence, as many as sample_bytes has room for. The result is
  saved to the directory `path`.
  """
  _check(config)
  documents = documents_lib.read(config, Counter())
  return _train_tokenizer(config, path, documents, log, progress)


def _train_tokenizer(
  config: ConfigDict,
  path,
  documents: Iterable[documents_lib.Document],
  log: Callable,
  progress: bool,
) -> tokenizer_lib.Tokenizer:
  options = config.tokenizer
  if options.path:
    tokenizer = tokenizer_lib.load(options.path)
    origin = f"loaded from {options.path}"
  else:
    if progress:
      documents = documents_lib.watch(
        documents, "reading for the tokenizer", lambda d: (1, d.num_bytes)
      )
    tokenizer = tokenizer_lib.train(
      _training_sentences(config, documents),
      **{name: options[name] for name in TOKENIZER_OPTIONS},
    )
    origin = f"trained on {config.corpus.source}"
  tokenizer.save(path)
  log(f"tokenizer: {tokenizer.kind}, {tokenizer.vocab_size:,} tokens, {origin}")
  return tokenizer


def _training_sentences(
  config: ConfigDict, documents: Iterable[documents_lib.Document]
) -> Iterator[str]:
  options = config.corpus
  for split, document in documents_lib.split(documents, options.heldout_share):
    if split == "train":
      yield from sources.split_sentences(
        document.lines,
        mode=options.sentences,
        language=options.language,
        report=Counter(),  # The workers split again, and count.
      )


def prepare(
  config: ConfigDict, path, *, log: Callable = print, progress: bool = True
) -> store.Corpus:
  """Prepares the corpus at `path`, or opens what was prepared there before.

  Args:
    config: of it, `corpus` and `tokenizer` count.
    path: a directory. It appears when all is done, in one rename; PATH.tmp,
      PATH.tokenizer and PATH.lock stand beside it meanwhile. Where another
      process prepares the same path, this one waits and opens the result.
    log: called with lines for the user; at the end, one for each kind of thing
      that was found and handled in the text.
    progress: whether to show on stderr how far it is.

  Raises:
    ConfigError: an option out of range.
    CorpusError: no or too little text; a corpus at `path` that was prepared
      with other options; a worker that was killed; no space on the disk.
  """
  _check(config)
  path = os.path.abspath(path)
  if _is_there(path):  # Perhaps on a disk that can only be read.
    return _reuse(config, path, log)
  with _lock(path, log):
    if _is_there(path):
      return _reuse(config, path, log)
    report, kept = Counter(), []
    documents = documents_lib.keep(documents_lib.read(config, report), kept)
    try:
      tokenizer = _train_tokenizer(
        config, f"{path}.tokenizer", documents, log, progress
      )
      if not kept:
        report.clear()
        documents = documents_lib.read(config, report)
      corpus = store.write_corpus(
        path,
        _encode_documents(
          config, f"{path}.tokenizer", kept or documents, report, progress
        ),
        tokenizer=tokenizer,
        shard_tokens=config.corpus.shard_tokens,
        options=_recorded_options(config, tokenizer),
        report=report,
      )
    finally:
      shutil.rmtree(f"{path}.tokenizer", ignore_errors=True)
  for line in describe(corpus):
    log(line)
  return corpus


def _encode_documents(
  config: ConfigDict,
  tokenizer_path: str,
  documents: Iterable[documents_lib.Document],
  report: Counter,
  progress: bool,
) -> Iterator[tuple[str, list[np.ndarray]]]:
  """(split, ids of each sentence) of the documents; counts in `report`."""
  options = config.corpus
  encoded = workers.ordered_map(
    make_encoder,
    (
      tokenizer_path,
      options.sentences,
      options.language,
      options.max_sentence_tokens,
    ),
    documents_lib.chunked(
      documents_lib.split(documents, options.heldout_share)
    ),
    num_workers=options.num_workers or workers.num_cores(),
  )
  if progress:
    encoded = documents_lib.watch(
      encoded, "preparing", lambda e: (len(e.documents), e.num_bytes)
    )
  for chunk in encoded:
    report.update(chunk.report)
    bounds = store.shards.offsets(chunk.lengths)
    sentences = [chunk.tokens[a:b] for a, b in itertools.pairwise(bounds)]
    begin = 0
    for split, count in chunk.documents:
      if count:
        yield split, sentences[begin : begin + count]
      else:
        report["documents without tokens"] += 1
      begin += count


def _check(config: ConfigDict):
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
  if not 0 <= options.heldout_share < 1:
    raise ConfigError(
      f"corpus.heldout_share={options.heldout_share} must be at least 0 and"
      " below 1, as 0.01."
    )


def _recorded_options(config, tokenizer) -> dict:
  """What decides the corpus's content, to be compared at the next prepare."""
  recorded = {f"corpus.{name}": config.corpus[name] for name in OPTIONS}
  if config.tokenizer.path:  # Wherever the file lies, its content counts.
    return {**recorded, "tokenizer.path (its SHA-256)": tokenizer.sha256}
  for name in TOKENIZER_OPTIONS:
    recorded[f"tokenizer.{name}"] = config.tokenizer[name]
  return recorded


def _is_there(path: str) -> bool:
  return os.path.isdir(path) and bool(os.listdir(path))


def open_given(config: ConfigDict, path, *, log: Callable) -> store.Corpus:
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
  wanted = _recorded_options(config, tokenizer)
  there = corpus.meta["options"]
  different = [
    f"{name}={wanted.get(name)!r} (there {there.get(name)!r})"
    for name in sorted(wanted.keys() | there.keys())
    if name.startswith(sections) and wanted.get(name) != there.get(name)
  ]
  if different:
    raise CorpusError(
      f"{path} was prepared with other options: {', '.join(different)}. Give"
      " the same ones, set corpus.path to another directory, or remove this one"
      " to prepare it again."
    )
  log(
    f"corpus: {path}, prepared before from {there.get('corpus.source')} (if the"
    " text has changed since, remove it)"
  )
  return corpus


@contextlib.contextmanager
def _lock(path: str, log: Callable):
  """One prepare at a time; the system frees the lock of a killed process."""
  try:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = _locked_file(f"{path}.lock", log)
  except OSError as error:
    raise CorpusError(
      f"{path}: nothing can be prepared there ({error}); use another path."
    ) from error
  with file:
    try:
      yield
    finally:
      os.unlink(file.name)


def _locked_file(name: str, log: Callable):
  while True:
    file = open(name, "w")  # noqa: SIM115
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      log(f"corpus: waiting for another process, which holds {name}")
      fcntl.flock(file, fcntl.LOCK_EX)
    # Whoever had it has unlinked it, and perhaps someone made it anew.
    with contextlib.suppress(FileNotFoundError):
      if os.path.samestat(os.stat(name), os.fstat(file.fileno())):
        return file
    file.close()


def describe(corpus: store.Corpus) -> list[str]:
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
  tokens = sum(counts["tokens"] for counts in splits.values())
  words, characters = report.pop("words"), report.pop("characters")
  unknown = report.pop("unknown tokens")
  lines.append(
    f"  text: {characters:,} characters, {words:,} words;"
    f" {characters / tokens:.3f} characters a token,"
    f" {tokens / max(words, 1):.3f} tokens a word,"
    f" {unknown / tokens:.3%} of the tokens unknown"
  )
  found = sorted((k, v) for k, v in report.items() if v)
  return lines + [f"  {name}: {count:,}" for name, count in found]
