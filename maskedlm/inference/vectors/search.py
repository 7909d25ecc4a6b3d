"""Finds the nearest sentences to a query, by the cosine of their vectors.

It compares a query with every vector of a file that `maskedlm embed
--unit=sentence` wrote, or first with every code, if the file has codes. Queries
are embedded as the file was.
"""

import functools
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.inference import fusion
from maskedlm.inference.vectors import (
  codes,
  similarity,
  splade,
  standardise,
  vectors,
)
from maskedlm.runtime import output_files

BLOCK = 1 << 14  # Vectors that are compared at a time.
QUERIES = 1 << 10  # Queries that they are compared with.
CANDIDATES = 10  # Codes whose vectors are compared, for each sentence found.


class Index(NamedTuple):
  """The vectors of a file, and what they belong to."""

  # [n, C] float32, not in memory if there are codes; or sparse, [n, V].
  vectors: np.ndarray
  texts: np.ndarray  # [n] int64: the text of each vector.
  starts: np.ndarray  # [m + 1] int64: where each text begins in `bytes`.
  bytes: np.ndarray  # uint8: all texts, in UTF-8.
  lines: np.ndarray  # [m] int64: the line of each text.
  files: np.ndarray  # [m] int32: the file of each text, in about["files"].
  about: dict[str, Any]  # The options and the encoder that made the vectors.
  codes: np.ndarray | None = None  # [n, ...], of codes.encode.


class Hit(NamedTuple):
  """A sentence, and the cosine of its vector and the query's."""

  cosine: float
  text: str
  file: str
  line: int


class Scored(NamedTuple):
  """A sentence that is ranked by a score instead of its cosine."""

  score: float
  cosine: float
  text: str
  file: str
  line: int


def open_index(path: str | pathlib.Path, model: vectors.TextEncoder) -> Index:
  """Opens a file of vectors of sentences that a model made.

  Raises:
    ConfigError: there is no such file, it holds something else, or another
      encoder made it.
  """
  command = "`maskedlm embed --unit=sentence --out=FILE.npz`"
  if pathlib.Path(path).suffix.lower() != ".npz":
    raise ConfigError(f"{path}: expected the .npz file of {command}.")
  with output_files.open_npz(path, made_by=command.strip("`")) as file:
    about = parse_json(str(file["about"]))
    if about["encoder"] != vectors.fingerprint(model):
      raise ConfigError(
        f"{path} was made by another encoder, that of {about['checkpoint']}: "
        "give it as --checkpoint, or embed again."
      )
    array = functools.partial(output_files.array, file)
    lines = array("text_lines", "i8", -1)
    is_coded = bool(about.get("codes")) and os.path.isfile(path)
    if about["pool"] == splade.POOL:
      x = splade.from_columns(file, model.cfg.padded_vocab_size)
    else:
      x = codes.map_array(path, "vectors") if is_coded else file["vectors"]
    index = Index(
      vectors=x,
      texts=array("texts", "i8", x.shape[0]),
      starts=array("text_starts", "i8", len(lines) + 1),
      bytes=array("text_bytes", "u1", -1),
      lines=lines,
      files=array("text_files", "i4", len(lines)),
      about=about,
    )
    if is_coded:
      example = codes.encode(np.zeros((1, *x.shape[1:])), about["codes"])
      shape = len(x), *example.shape[1:]
      coded = output_files.array(file, "codes", example.dtype.str, *shape)
      index = index._replace(codes=coded)
    if about["combine"] == "stack" or x.ndim != 2:
      raise ConfigError(
        f"{path} has stacked layers: make it without --combine=stack."
      )
  if (unit := about["unit"]) != "sentence":
    raise ConfigError(
      f"{path} has vectors of a {unit} each; make it by {command}."
    )
  return index


def search(
  model: vectors.TextEncoder,
  index: Index,
  queries: Sequence[str],
  *,
  top: int = 5,
  candidates: int | None = None,
  words: Callable[[str], np.ndarray] | None = None,
) -> list[list[Any]]:
  """Returns the `top` nearest sentences to each query, nearest first, as Hits.

  Args:
    model: the one that made the index.
    candidates: how many sentences, the nearest by their codes, have their
      vectors compared: 0 for all; None for CANDIDATES times `top`, or all if
      there are no codes.
    words: bm25.index(all_texts(index)); the result is then the best sentences
      by words and vectors together, as Scored.

  Raises:
    ConfigError: the file of --standardise is gone, there are no codes for the
      candidates, or fewer candidates than `top`.
  """
  if candidates is not None and index.codes is None:
    raise ConfigError(
      f"candidates={candidates}: the file of vectors has no codes; expected "
      "one that `maskedlm embed --codes=int8` wrote."
    )
  if candidates and candidates < top:
    raise ConfigError(
      f"candidates={candidates} for top_k={top}: expected at least as many, or "
      "0 for all."
    )
  x = _embed_queries(model, index, queries)
  if words:
    pairs = zip(cosines(x, index.vectors), map(words, queries), strict=True)
    return [_best_by_both(index, *pair, top) for pair in pairs]
  if index.codes is None or candidates == 0:
    results = nearest(x, index.vectors, top=top)
  else:
    count = candidates or CANDIDATES * top
    results = rescored(x, index.vectors, index.codes, top=top, candidates=count)
  return [
    [_make_hit(index, *hit) for hit in zip(*arrays, strict=True)]
    for arrays in results
  ]


def _best_by_both(index: Index, by_vectors, by_words, top: int) -> list[Scored]:
  scores = fusion.fused([by_vectors, by_words])
  hits = [
    (i, _make_hit(index, i, by_vectors[i])) for i in best(scores, top).tolist()
  ]
  return [Scored(float(scores[i]), *hit) for i, hit in hits]


def all_texts(index: Index) -> list[str]:
  """Returns the sentence of each vector."""
  return [_make_hit(index, i, 0).text for i in range(len(index.texts))]


def _embed_queries(model, index: Index, queries: Sequence[str]) -> np.ndarray:
  """Returns the vectors [q, C] of queries, made as those of the index."""
  about = index.about
  names = vectors.VectorOptions._fields  # Older files have fewer.
  options = vectors.VectorOptions(**{n: about[n] for n in names if n in about})
  options = options._replace(layers=tuple(options.layers))
  sentences = model.sentences
  sentences = sentences._replace(length=about.get("length", sentences.length))
  model = model._replace(sentences=sentences)
  embedded = vectors.collect(vectors.embed(model, queries, options))
  path = about.get("standardised")
  fitted = standardise.load_standardiser(path) if path else None
  return standardise.apply_standardiser(fitted, embedded.values)


def rescored(
  queries: np.ndarray, x: np.ndarray, coded, *, top: int, candidates: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields the `nearest` of the candidates, which codes [n, ...] choose."""
  decode = functools.partial(codes.decode, width=x.shape[1])
  by_codes = nearest(queries, coded, top=candidates, decode=decode)
  for query, (rows, _) in zip(queries, by_codes, strict=True):
    rows = np.sort(rows)
    ((places, cosines),) = nearest(query[None], x[rows], top=top)
    yield rows[places], cosines


def best(scores: np.ndarray, count: int) -> np.ndarray:
  """Returns the indices of the `count` largest scores [n]; equals in order."""
  last = len(scores) - min(count, len(scores))
  least = np.partition(scores, last)[last]
  above = np.flatnonzero(scores > least)
  above = above[np.argsort(-scores[above], kind="stable")]
  equal = np.flatnonzero(scores == least)
  return np.append(above, equal[: count - len(above)])


def cosines(queries, x) -> Iterator[np.ndarray]:
  """Yields the cosines [n] of each query [q, C] with all of x [n, C]."""
  for begin in range(0, queries.shape[0], 64):
    yield from np.hstack([*_block_cosines(queries[begin : begin + 64], x)])


def nearest(
  queries, x, *, top: int, decode: Callable | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields (rows of x with the largest cosines, these cosines) for each query.

  Queries are [q, C], and decode(x) [n, C]; there are `top` rows, or n if these
  are fewer. Rows of equal cosine are in the order of x. A vector of zeros has
  the cosine 0 with every other. Sparse vectors are compared by their products.
  """
  n = x.shape[0]
  for begin in range(0, queries.shape[0], QUERIES):
    block = queries[begin : begin + QUERIES]
    best = np.full((block.shape[0], min(top, n)), -np.inf, block.dtype)
    rows = np.zeros(best.shape, np.int64)
    for i, values in enumerate(_block_cosines(block, x, decode)):
      _keep_best(best, rows, values, i * BLOCK)
    yield from zip(rows, best, strict=True)


def _block_cosines(queries, x, decode: Callable | None = None):
  """Yields the cosines [q, <= BLOCK] of queries and each block of x."""
  is_sparse = sparse.issparse(x)
  directions = queries if is_sparse else similarity.scaled(queries)
  for begin in range(0, x.shape[0], BLOCK):
    block = x[begin : begin + BLOCK]
    block = decode(block) if decode else block
    products = directions @ block.T
    if is_sparse:
      yield products.toarray()
    else:  # By products and lengths: the block is read, but not written again.
      lengths = np.sqrt(np.vecdot(block, block))
      yield products / np.where(lengths == 0, 1, lengths)


def _keep_best(best, rows, cosines, first: int) -> None:
  """Merges a block's cosines into the best so far, in place.

  Later rows come after earlier ones of equal cosine, so only cosines above the
  last of the best can be among them. In most blocks, they are few.
  """
  query, place = np.nonzero(cosines > best[:, -1:])
  for q in np.unique(query):
    new = place[slice(*np.searchsorted(query, [q, q + 1]))]
    values = np.concatenate([best[q], cosines[q, new]])
    order = np.argsort(-values, kind="stable")[: best.shape[1]]
    best[q], rows[q] = values[order], np.append(rows[q], first + new)[order]


def _make_hit(index: Index, i: int, cosine: float) -> Hit:
  t = index.texts[i]
  begin, end = index.starts[t : t + 2]
  text = index.bytes[begin:end].tobytes().decode("utf-8", "replace")
  file = index.about["files"][index.files[t]]
  return Hit(float(cosine), text, file, int(index.lines[t]))
