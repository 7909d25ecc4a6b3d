"""Retrieval: the passages that answer a query, by one vector of each text.

One encoder reads both; a text's vector is the mean of its tokens', or [CLS]'s,
of length 1 (Reimers & Gurevych 2019, arXiv:1908.10084). It learns to tell a
query's passage from all the others of the batch, and from hard negatives where
there are some (Karpukhin et al. 2020, arXiv:2004.04906, section 3.2):

  -log softmax_j(cos(q_i, p_j) / temperature)[i]

B examples, C texts of each: the query and K passages, the first of them right.
Files are passages.py's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maskedlm.core.errors import ConfigError, DataError, check_known
from maskedlm.core.task import Batch, Key, Params
from maskedlm.data.tokenizers.tokenizer import Tokenizer
from maskedlm.finetune.common import multi_sequence
from maskedlm.finetune.common.text_pairs import pair_row
from maskedlm.finetune.contract import Application, Outputs, Prediction, Rows
from maskedlm.finetune.retrieval import files as passages
from maskedlm.finetune.retrieval.files import Example
from maskedlm.modeling import losses, masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import ROW_POOLS

EXAMPLES = ("Who wrote it?\tThe author was Jane.\tIt rained for a week.",)
READING = ("query", "passage", "header")
# In passage_ids where an example has fewer passages than others, in query_ids
# where it has no query: its passages are searched, and that is all.
NONE = -1
CUTOFFS = (1, 2, 5, 10, 20, 50, 100)  # Of the table ranks.tsv.
BLOCK = 256  # Queries that are compared with all passages at once.


class Options(NamedTuple):
  """config.task of this kind."""

  query: str = ""  # Column of the query; "" = a usual one (passages.py).
  passage: str = ""  # Of the passage that answers it; the same.
  header: tuple = ()  # All columns' names, for files without that line.
  query_prefix: str = ""  # Written before each query, as "query: " for E5.
  passage_prefix: str = ""  # And before each passage.
  pool: str = "mean"  # What stands for a text: mean (of its tokens) | cls.
  temperature: float = 0.05  # Cosines are divided by it.


def read(source: str, options: Options) -> list[Example]:
  """The examples of a file: see passages.read."""
  return passages.read_examples(
    source,
    query=(options.query,) if options.query else passages.QUERY_COLUMNS,
    passage=(options.passage,) if options.passage else passages.PASSAGE_COLUMNS,
    header=tuple(options.header),
  )


def parse(line: str, options: Options) -> Example:
  """A line of predict's input: see passages.parse."""
  del options
  return passages.parse_line(line)


def group(example: Example) -> str:
  """Queries of one passage stay on one side of a split: no leaks."""
  return example.passages[0]


def describe(examples: Sequence[Example], options: Options) -> dict[str, Any]:
  """Nothing: there are no labels.

  Raises:
    DataError: an example without a query.
  """
  del options
  for example in examples:
    if not example.query:
      raise DataError(
        f"{example.where}: the query is empty; expected a text. (Passages that "
        "nobody asks for may be in what is scored.)"
      )
  return {}


def sentences(options: Options) -> dict[str, Any]:
  """How `embed` and exports make a text's vector: as it was trained."""
  # By the names that encode_query and encode_document of
  # sentence-transformers know them by.
  prompts = {"query": options.query_prefix, "document": options.passage_prefix}
  prompts = {name: text for name, text in prompts.items() if text}
  return {"pool": options.pool, "normalize": True, "prompts": prompts}


def make(
  tokenizer: Tokenizer,
  cfg: EncoderConfig,
  about: Mapping[str, Any],
  options: Options,
  *,
  length: int,
) -> Application:
  """See application.py.

  Raises:
    ConfigError: an unknown pool, a temperature that is not above 0.
  """
  del about
  check_known("task", options, {"pool": ROW_POOLS})
  if not options.temperature > 0:
    raise ConfigError(
      f"task.temperature={options.temperature}: expected more than 0."
    )

  def vectors(params: Params, batch: Batch, key: Key, train: bool):
    """Float32 [B, C, D], each of length 1."""
    B, C, _ = batch["input_ids"].shape
    rows = multi_sequence.flatten_sequences(batch)
    hidden = masked_lm.encode(cfg, params, rows, key, train)
    x = ROW_POOLS[options.pool](cfg, hidden, rows["segment_ids"])
    x = x.astype(jnp.float32).reshape(B, C, -1)
    square = jnp.sum(x * x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.maximum(square, 1e-12))

  def loss(params: Params, batch: Batch, key: Key, train: bool):
    found = scores(vectors(params, batch, key, train), batch)
    B, K = batch["passage_ids"].shape
    nll, correct = losses.loss_and_correct(
      found / options.temperature, jnp.arange(B) * K
    )
    weights = batch["example_weights"] * (batch["query_ids"] != NONE)
    return (
      {"retrieval": losses.weighted_sum(nll, weights)},
      {"in_batch_accuracy": losses.weighted_sum(correct, weights)},
    )

  return Application(
    rows=lambda examples: make_rows(
      examples,
      tokenizer,
      length=length,
      query_prefix=options.query_prefix,
      passage_prefix=options.passage_prefix,
    ),
    init=lambda key: {},  # No head: the encoder alone is trained.
    loss=loss,
    outputs=lambda params, batch: {
      "vectors": vectors(params, batch, None, False)
    },
    decode=decode,
    score=score,
    best="mrr@10",
    gold=_gold,
  )


def scores(x, batch: Batch):
  """The cosines [B, B * K] of each query with every passage of the batch.

  Query i's own passage is at i * K. What is no wrong answer to it is -1e9: the
  same passage again, another that the data has for the same query, none at all.

  Args:
    x: [B, C, D] float32 of length 1, of the queries and their K = C - 1
      passages.
    batch: query_ids [B], passage_ids [B, K], example_weights [B].
  """
  ids, queries = batch["passage_ids"], batch["query_ids"]
  B, K = ids.shape
  # A matmul of bfloat16, as TPUs take for float32, is 0.004 / temperature off.
  cosines = jnp.einsum("BD,NKD->BNK", x[:, 0], x[:, 1:], precision="highest")
  is_own = jnp.eye(B, dtype=bool)[..., None] & (jnp.arange(K) == 0)
  is_there = (ids != NONE) & (batch["example_weights"] > 0)[:, None]
  is_right = ids == ids[:, :1, None]
  same_query = (queries == queries[:, None])[..., None] & (jnp.arange(K) == 0)
  is_wrong = is_there & ~is_right & ~same_query
  return jnp.where(is_own | is_wrong, cosines, -1e9).reshape(B, B * K)


def make_rows(
  examples: Sequence[Example],
  tokenizer: Tokenizer,
  *,
  length: int,
  query_prefix: str = "",
  passage_prefix: str = "",
) -> Rows:
  """A row of C sequences for each example (sequences.py): [CLS] text [SEP].

  One with fewer passages than another has empty ones, of the id NONE. Ids are
  of this call: equal texts have equal ones.
  """
  K = max(len(example.passages) for example in examples)
  ids: dict[str, int] = {}
  passage_ids = np.full((len(examples), K), NONE, np.int32)
  for row, example in zip(passage_ids, examples, strict=True):
    for k, text in enumerate(example.passages):
      row[k] = ids.setdefault(text, len(ids))
  queries = {"": NONE}
  query_ids = [queries.setdefault(e.query, len(queries) - 1) for e in examples]

  def encode(prefix: str, texts: Sequence[str]):
    """(input_ids, token_type_ids, whether tokens were lost) of each."""
    return [
      pair_row(tokenizer, of_text, None, length)
      for of_text in tokenizer.encode_batch([prefix + text for text in texts])
    ]

  # Each text once, and last, at NONE, what stands for none.
  of_passages = encode(passage_prefix, [*ids, ""])
  of_queries = encode(query_prefix, [*list(queries)[1:], ""])
  rows = [
    [of_queries[query], *(of_passages[k] for k in passage)]
    for query, passage in zip(query_ids, passage_ids, strict=True)
  ]
  tokens, lengths = multi_sequence.stack_sequences(
    [[made[:2] for made in row] for row in rows], tokenizer.special.pad
  )
  return Rows(
    tokens=tokens,
    values={
      "sequence_lengths": lengths,
      "query_ids": np.array(query_ids, np.int32),
      "passage_ids": passage_ids,
    },
    example=np.arange(len(examples)),
    truncated=sum(any(made[2] for made in row) for row in rows),
    notes=_notes(examples, len(queries) - 1, len(ids)),
  )


def _notes(
  examples: Sequence[Example], queries: int, passages: int
) -> tuple[str, ...]:
  """How hard it is to find the right one: what a rank is among."""
  if not all(example.is_gold for example in examples):
    return ()
  return (f"{queries:,} different queries, {passages:,} different passages",)


def decode(
  examples: Sequence[Example], rows: Rows, outputs: Outputs, tuned
) -> list[Prediction]:
  """The best passage and its cosine, and those of the example's own.

  Of examples from a file the best is of all passages of the file, and rank is
  its own one's among them, from 1: other passages that the file has for the
  same query left out, of equal ones the last. Without a query it is None.
  """
  del tuned
  if not examples:
    return []
  x = np.stack(outputs["vectors"])  # [n, C, D]
  queries, passages = x[:, 0], x[:, 1:]
  own = [
    of_one[: len(example.passages)]
    for example, of_one in zip(
      examples, np.einsum("nd,nkd->nk", queries, passages), strict=True
    )
  ]
  if not all(example.is_gold for example in examples):
    return [
      _prediction(example.passages, cosines, cosines)
      for example, cosines in zip(examples, own, strict=True)
    ]
  ids, query_ids = (rows.values[n] for n in ("passage_ids", "query_ids"))
  found, places = np.unique(ids, return_index=True)
  n, k = np.divmod(places[found != NONE], ids.shape[1])  # Each passage once.
  pool = passages[n, k]
  texts = [examples[i].passages[j] for i, j in zip(n, k, strict=True)]
  made = []
  for begin in range(0, len(x), BLOCK):
    for i, cosines in enumerate(queries[begin : begin + BLOCK] @ pool.T, begin):
      if query_ids[i] == NONE:
        made.append({"rank": None, "passage": "", "cosine": None})
        continue
      right = ids[query_ids == query_ids[i], 0]
      wrong = np.delete(cosines, right)
      rank = 1 + int(np.sum(wrong >= cosines[ids[i, 0]]))
      made.append({"rank": rank, **_prediction(texts, cosines, own[i])})
  return made


def _prediction(
  texts: Sequence[str], cosines: np.ndarray, own: np.ndarray
) -> Prediction:
  """The best of the texts; own: the cosines of the example's passages."""
  best = int(np.argmax(cosines))
  return {
    "passage": texts[best],
    "cosine": float(cosines[best]),
    "cosines": own.tolist(),
  }


def score(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, float]:
  """The mean of 1 / rank (0 beyond 10), and the shares of ranks up to k."""
  _gold(examples)
  ranks = _ranks(predictions)
  return {
    "mrr@10": float(np.mean(np.where(ranks <= 10, 1 / ranks, 0))),
    "recall@1": float(np.mean(ranks <= 1)),
    "recall@10": float(np.mean(ranks <= 10)),
  }


def _ranks(predictions: Sequence[Prediction]) -> np.ndarray:
  """Of the examples that have a query."""
  return np.array([p["rank"] for p in predictions if p["rank"]])


def _gold(examples: Sequence[Example]) -> None:
  """DataError for an example of which the right passage is not known.

  And if none has a query.
  """
  for example in examples:
    if not example.is_gold:
      raise DataError(
        f"{example.query[:40]!r}: which passage answers it is not known."
      )
  if not any(example.query for example in examples):
    raise DataError(
      f"{examples[0].where}: neither this nor any other query is there; "
      "expected one at least."
    )


def show(prediction: Prediction) -> str:
  """The cosine of the best passage, and its text."""
  if prediction["cosine"] is None:
    return "(no query)"
  return (
    f"{prediction['cosine']:.3f}\t{' '.join(prediction['passage'].split())}"
  )


def report(
  examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, str]:
  """ranks.tsv: the share of queries whose passage is among the first k."""
  del examples
  ranks = _ranks(predictions)
  lines = [f"{k}\t{np.mean(ranks <= k):.4f}" for k in CUTOFFS]
  return {"ranks.tsv": "\n".join(["k\trecall", *lines, ""])}
