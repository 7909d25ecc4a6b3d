"""Collections to search, in the folders of BEIR (Thakur et al. 2021).

  corpus.jsonl     {"_id": "d1", "title": "Cats", "text": "They sleep."}
  queries.jsonl    {"_id": "q1", "text": "what do cats do?"}
  qrels/test.tsv   a header, then query-id, corpus-id and score: d1 answers q1
                   if the score is above 0, and the higher the better

beir:FOLDER is such a folder with test.tsv, beir:FOLDER:dev with dev.tsv.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.runtime import console, output_files

PREFIX = "beir:"


class Collection(NamedTuple):
  """Passages, queries, and which passages answer which queries."""

  passages: Mapping[str, str]  # id -> title and text.
  queries: Mapping[str, str]  # id -> text; those that qrels judge.
  # Query -> passage -> score. Each query has a score above 0.
  qrels: Mapping[str, Mapping[str, int]]


def read_collection(source: str) -> Collection:
  """Reads beir:FOLDER or beir:FOLDER:SPLIT.

  Queries without a score above 0 are left out, and counted.

  Raises:
    DataError: a file is missing or has other columns, an id or a pair comes
      twice, a score is no whole number, or the qrels name a query or a passage
      that the collection lacks.
  """
  name, _, split = source.removeprefix(PREFIX).partition(":")
  folder = pathlib.Path(name)
  qrels: dict[str, dict[str, int]] = {}
  qrels_path = folder / "qrels" / f"{split or 'test'}.tsv"
  passages = _read_texts(folder / "corpus.jsonl", "title")
  queries = _read_texts(folder / "queries.jsonl")
  for record in tables.read_records(str(qrels_path)):
    query, passage, text = (
      tables.get_field(record, column)
      for column in ("query-id", "corpus-id", "score")
    )
    files = {"queries.jsonl": (query, queries)}
    files["corpus.jsonl"] = passage, passages
    for file, (key, known) in files.items():
      if key not in known:
        raise DataError(
          f"{record.where}: {key!r:.60} is not an _id of {folder / file}; "
          "expected one that is there."
        )
    if passage in qrels.setdefault(query, {}):
      raise DataError(
        f"{record.where}: {query!r:.60} and {passage!r:.60} come twice; "
        "expected each pair once."
      )
    try:
      qrels[query][passage] = int(text)
    except ValueError:
      raise DataError(
        f"{record.where}: score is {text!r:.40}; expected a whole number."
      ) from None
  used = {q: scores for q, scores in qrels.items() if max(scores.values()) > 0}
  if len(used) < len(qrels):
    lost = counted(len(qrels) - len(used), "query")
    console.log(f"{qrels_path}: {lost} left out, without a score above 0")
  if not used:
    raise DataError(
      f"{qrels_path}: no query has a score above 0; expected one for a passage "
      "that answers it."
    )
  return Collection(passages, {q: queries[q] for q in used}, used)


def write_collection(
  folder: str | pathlib.Path, collection: Collection, split: str = "test"
) -> None:
  """Writes the files of a collection, with qrels/SPLIT.tsv, as a new folder.

  Raises:
    DataError: the folder is there, and not empty, or is a file.
  """
  path = pathlib.Path(folder)
  if path.is_file() or (path.is_dir() and any(path.iterdir())):
    raise DataError(f"{path} exists: give another, or remove it first.")
  rows = ["query-id\tcorpus-id\tscore"]
  for query, scores in collection.qrels.items():
    rows += [f"{query}\t{passage}\t{x}" for passage, x in scores.items()]
  with output_files.whole_folder(path) as new:
    for name, texts in (
      ("corpus", collection.passages),
      ("queries", collection.queries),
    ):
      objects = ({"_id": key, "text": text} for key, text in texts.items())
      lines = (json.dumps(x, ensure_ascii=False) + "\n" for x in objects)
      output_files.write_text(new / f"{name}.jsonl", "".join(lines))
    output_files.write_text(
      new / "qrels" / f"{split}.tsv", "\n".join([*rows, ""])
    )


def _read_texts(path: pathlib.Path, title: str = "") -> dict[str, str]:
  """Returns {_id: text}, each after its title, if it has one."""
  texts: dict[str, str] = {}
  for record in tables.read_records(str(path)):
    key = tables.get_field(record, "_id")
    if key in texts:
      raise DataError(
        f"{record.where}: the _id {key!r:.60} comes twice; expected each once."
      )
    text = tables.get_field(record, "text")
    head = tables.as_text(record.fields.get(title) or "")
    texts[key] = f"{head} {text}".strip()
  return texts
