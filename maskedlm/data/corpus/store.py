"""Opens, writes and verifies a corpus: tokens, sentence and document starts.

`maskedlm prepare` writes it with `write_corpus`; data/batches/ reads the
memory-mapped arrays with `open_corpus` and concat.take. The format is described
byte by byte in docs/reference/corpus-format.md.
"""

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError, CorpusError
from maskedlm.data.corpus import integrity, manifest, shards
from maskedlm.data.corpus.concat import Concat, concatenate, take
from maskedlm.data.tokenizers.tokenizer import Tokenizer, open_tokenizer
from maskedlm.runtime import output_files, storage_errors

_COLUMNS = ("documents", "sentences", "tokens")  # A domain is a range of each.
_WORK = "maskedlm-unfinished"  # The only entry of a PATH.tmp made by prepare.


class Split(NamedTuple):
  """A split of the corpus: T tokens in S sentences in Dn documents."""

  tokens: Concat  # [T]
  sentences: Concat  # [S + 1]: each sentence's first token, and T.
  documents: Concat  # [Dn + 1]: each document's first sentence, and S.


class Corpus(NamedTuple):
  """An open corpus; only the token counts are in memory."""

  path: str
  meta: dict
  fingerprint: str  # SHA-256 of all that determines the arrays.
  train: Split
  heldout: Split
  token_counts: np.ndarray  # [V] int64, in the train split.
  tokenizer: Tokenizer
  # Each domain's counts by split (domain_splits.py).
  domains: tuple[Mapping, ...] = ()


def unigram_entropy(corpus: Corpus) -> float:
  """Returns the entropy of the train split's tokens, -sum p ln p, in nats."""
  counts = corpus.token_counts[corpus.token_counts > 0]
  p = counts / counts.sum()
  return float(-np.sum(p * np.log(p)))


def domain_bounds(corpus: Corpus, split: str) -> list[np.ndarray]:
  """Returns the domains' starts and the total, [domains + 1] per _COLUMNS."""
  return [
    shards.offsets([domain[split][column] for domain in corpus.domains])
    for column in _COLUMNS
  ]


def check_batches(batch_at: Callable, corpus: Corpus) -> Callable:
  """Returns batch_at, which raises CorpusError if the corpus is damaged.

  A model would take an id that is not in the vocabulary for another one.
  """

  def checked(split, step):
    with integrity.reading_rows(corpus.path, corpus.meta):
      batch = batch_at(split, step)
    highest = batch["input_ids"].max(initial=0)
    size = corpus.tokenizer.vocab_size
    if highest >= size:
      raise CorpusError(
        f"{corpus.path}: a row has id {highest}, but the vocabulary has {size};"
        f" `maskedlm prepare --verify {corpus.path}` names the file."
      )
    return batch

  return checked


# Opening


def open_corpus(path, tokens: Mapping[str, Any] | None = None) -> Corpus:
  """Opens a finished corpus and maps its arrays.

  Sizes and headers are checked here, and the content of meta.json, the
  tokenizer and the token counts; that of the shards only by `verify_corpus`.

  Args:
    tokens: split -> its tokens [T] (streamed.Tokens), if their files are
      elsewhere.

  Raises:
    CorpusError: the corpus is missing, unfinished or of another version, or a
      file is missing or damaged.
    ConfigError, StorageError, PermissionError: a file can't be read.
  """
  path = os.path.abspath(path)
  meta = integrity.read_meta(path)
  elsewhere = {*manifest.token_files(meta["splits"])} if tokens else ()
  integrity.check_files(path, meta, elsewhere=elsewhere)
  tokenizer = _open_tokenizer(path)
  if meta["version"] == 1:
    # Runs that began with such a corpus go on with the same masks.
    tokenizer = tokenizer._replace(starts_word=tokenizer.follows_space)
  with integrity.reading(path):
    try:
      train, heldout = (
        _open_split(path, meta, name, tokens and [tokens[name]])
        for name in shards.SPLITS
      )
      token_counts = np.array(shards.load_array(path, "token_counts"))
    except OSError as error:
      if error.errno != errno.EMFILE:
        raise
      raise CorpusError(
        f"{path}: the corpus has {len(meta['files'])} files, more than this"
        " process may open; raise the limit (`ulimit -n`), or prepare the"
        " corpus with a larger corpus.shard_tokens."
      ) from error
  return Corpus(
    path=path,
    meta=meta,
    fingerprint=meta["fingerprint"],
    train=train,
    heldout=heldout,
    token_counts=token_counts,
    tokenizer=tokenizer,
    domains=tuple(meta.get("parts", ())),
  )


def _open_tokenizer(path: str) -> Tokenizer:
  return open_tokenizer(os.path.join(path, "tokenizer"))


def _open_split(path: str, meta: Mapping, split: str, tokens) -> Split:
  counts = meta["splits"][split]["shards"]

  def arrays_of(column):
    names = [shards.shard_name(split, i) for i in range(len(counts))]
    return [shards.load_array(path, f"{name}.{column}") for name in names]

  # A split without documents has no shard, but it has a dtype.
  dtype = np.dtype(meta["token_dtype"])
  tokens = tokens or arrays_of("tokens") or [np.empty(0, dtype)]
  end = np.zeros(1, shards.START_DTYPE)  # The last element: its base, T or S.
  sentences, documents = (
    concatenate(
      [*arrays_of(column), end], shards.offsets([x[of] for x in counts])
    )
    for column, of in (("sentences", "tokens"), ("documents", "sentences"))
  )
  tokens = concatenate(tokens, np.zeros(len(tokens), dtype))
  return Split(tokens, sentences, documents)


# Writing


def work_folder(path) -> str:
  """Returns the folder in which write_corpus assembles PATH."""
  return os.path.join(f"{os.path.abspath(path)}.tmp", _WORK)


def check_destination(path) -> None:
  """Raises CorpusError if write_corpus would overwrite something else."""
  path = os.path.abspath(path)
  if output_files.is_here(path):
    raise CorpusError(
      f"{path} is the current folder, or contains it, and would be replaced:"
      " give the name of a new folder."
    )
  if path.endswith(".tmp"):
    raise CorpusError(
      f"{path}: a name that ends in .tmp denotes an unfinished corpus; use"
      " another path."
    )
  if not _holds_only(path, ()):
    raise CorpusError(
      f"{path}: already exists; move it away, or use another path."
    )
  if os.path.islink(f"{path}.tmp") or not _holds_only(f"{path}.tmp", (_WORK,)):
    raise CorpusError(
      f"{path}.tmp: the working folder of prepare is a link, or has files of"
      " other programs or an older version; move them away, or use another"
      " path."
    )


def _holds_only(path: str, names: Sequence[str]) -> bool:
  """Returns whether path is absent, or a folder with no other entries."""
  if not os.path.lexists(path):
    return True
  return os.path.isdir(path) and {*os.listdir(path)} <= {*names}


def write_corpus(
  path,
  documents: Iterable[tuple[str, list[np.ndarray]]],
  *,
  tokenizer: Tokenizer,
  shard_tokens: int,
  options: Mapping[str, Any],
  report: Counter,
  domains: Sequence[Mapping] = (),
) -> Corpus:
  """Writes documents as a corpus and opens it.

  Documents keep their order within a split. Everything is written to a folder
  in PATH.tmp, which becomes PATH in one rename at the end: an interrupted
  write leaves no PATH, and the PATH.tmp of a killed write is removed first.

  Args:
    path: the corpus's folder, absent or empty.
    documents: pairs (split, token ids of each sentence).
    tokenizer: saved with the corpus.
    shard_tokens: a shard is closed before the document that would take it
      beyond this number.
    options, report, domains: stored in meta.json as they are (domains, see
      domain_splits.py, only if there are any). report and domains are read
      after the last document, so they may be updated until then.

  Raises:
    CorpusError: see check_destination; or there is nothing to train on.
    ConfigError, StorageError: PATH can't be written, or the disk is full.
  """
  path = os.path.abspath(path)
  check_destination(path)
  work = work_folder(path)
  shutil.rmtree(f"{path}.tmp", ignore_errors=True)
  try:
    os.makedirs(work)
    tokenizer.save(os.path.join(work, "tokenizer"))
    V = tokenizer.vocab_size
    splits = shards.write_shards(
      work, documents, vocab_size=V, shard_tokens=shard_tokens
    )
    counts = shards.count_tokens(work, len(splits["train"]["shards"]), V)
    manifest.finish_corpus(
      path,
      work,
      splits=splits,
      counts=counts,
      files={},
      hashes={},
      tokenizer=tokenizer,
      options=options,
      report=report,
      domains=domains,
    )
  except OSError as error:
    raise storage_errors.unwritable(path, error) from error
  finally:
    shutil.rmtree(f"{path}.tmp", ignore_errors=True)
  return open_corpus(path)


# Verifying


def verify_corpus(path) -> list:
  """Returns a line for every problem of a corpus, all of which is read."""
  path = os.path.abspath(path)
  try:
    meta = integrity.read_meta(path)
  except (CorpusError, ConfigError) as error:
    return [str(error)]
  problems = []
  for name, file in meta["files"].items():
    try:
      problem = integrity.find_problem(path, name, file, whole=True)
    except OSError as error:
      problem = f"{path}: {name} can't be read ({error.strerror})."
    if problem:
      problems.append(problem)
  if problems:
    return problems
  try:
    return list(_wrong_content(path, meta))
  except ValueError as error:
    return [f"{path}: not readable: {error}"]


def _wrong_content(path: str, meta: Mapping) -> Iterator[str]:
  """Yields the problems of a corpus whose checksums are right."""
  if meta["fingerprint"] != manifest.fingerprint(meta):
    yield f"{path}: meta.json: the fingerprint is not that of the files."
  tokenizer = _open_tokenizer(path)
  if meta["tokenizer"]["sha256"] != tokenizer.sha256:
    yield f"{path}: tokenizer: not the one recorded in meta.json."
  splits, vocab_size = meta["splits"], meta["vocab_size"]
  special = {i for i in tokenizer.special_ids.tolist() if i < vocab_size}
  special -= {tokenizer.special.unk}
  is_whole = True
  for split in shards.SPLITS:
    for index, counts in enumerate(splits[split]["shards"]):
      name = shards.shard_name(split, index)
      for problem in shards.shard_problems(
        path, name, counts=counts, vocab_size=vocab_size, special_ids=special
      ):
        is_whole = False
        yield f"{path}: {name}.{problem}"
  if not is_whole:
    return
  counts = shards.count_tokens(path, len(splits["train"]["shards"]), vocab_size)
  if not np.array_equal(counts, shards.load_array(path, "token_counts")):
    yield f"{path}: token_counts.npy: not the counts of the train tokens."
  if manifest.HASHES in meta["files"] and not _has_hashes(path, splits):
    yield f"{path}: {manifest.HASHES}: not the hashes of the tokens."
  if "parts" in meta:
    yield from _wrong_domains(open_corpus(path))


def _has_hashes(path: str, splits: Mapping) -> bool:
  names = manifest.token_files(splits)
  hashes = (shards.block_hashes(os.path.join(path, name)) for name in names)
  with open(os.path.join(path, manifest.HASHES), "rb") as file:
    same = all(file.read(len(digests)) == digests for digests in hashes)
    return same and not file.read(1)


def _wrong_domains(corpus: Corpus) -> Iterator[str]:
  for name in shards.SPLITS:
    split, bounds = getattr(corpus, name), domain_bounds(corpus, name)
    documents, sentences, tokens = bounds
    if (
      [b[-1] for b in bounds]
      != [corpus.meta["splits"][name][c] for c in _COLUMNS]
      or not np.array_equal(take(split.documents, documents), sentences)
      or not np.array_equal(take(split.sentences, sentences), tokens)
    ):
      yield f"{corpus.path}: meta.json: parts: not those of the {name} files."
