"""Files of labelled spans: one BIO column, or several as layers.

LitBank's format (Bamman et al. 2019; also that of meizhiju/layered-bilstm-crf)
has a word per line, followed by a column for each layer of entities, inner ones
further right:

  the	B-FAC	O
  house	I-FAC	O
  of	I-FAC	O
  the	I-FAC	B-PER
  king	I-FAC	I-PER

A single layer is an ordinary file of tags (tags.py). A column that numbers the
words (GermEval 2014) is no layer. In JSON and Parquet, the tags are the only
layer.
"""

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio, columns, read
from maskedlm.data.labelled.formats import tags


class Example(NamedTuple):
  """A sentence and its labelled spans."""

  words: tuple[str, ...]
  # Each once, outer layers first; None if the file has no column of tags.
  spans: tuple[bio.Entity, ...] | None = None
  text: str | None = None  # None: the words joined by spaces.
  offsets: tuple[tuple[int, int], ...] = ()  # Characters of the words in text.
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  document: str = ""  # The file's name.
  where: str = ""  # FILE:LINE of the first word.


def read_layers(
  source: str,
  *,
  token_column: int = 0,
  file_scheme: str = "auto",
  repair_bio: bool = False,
) -> list[Example]:
  """Returns the sentences of a file in which all other columns are layers.

  Raises:
    DataError: as for tags.read_file and bio.tag_converter; the file is CoNLL-U.
  """
  if read.has_objects(source):
    sentences = tags.read_file(source, token_column=token_column, entities=True)
    return _with_spans(sentences, file_scheme, repair_bio)
  file = columns.read_columns(source)
  if file.is_conllu:
    raise DataError(
      f"{source}: CoNLL-U, whose columns are no layers of entities; expected "
      "columns of BIO, or set --config.task.nested=False and task.tag_column."
    )
  layers = []
  for column in _layer_columns(file, token_column):
    tagged = tags.select_columns(file, token_column, column)
    layer = {x.where: x for x in _with_spans(tagged, file_scheme, repair_bio)}
    layers.append(layer)
    # What is left out of a layer is left out of all.
    places = {x.lines for x in layer.values()}
    file.blocks[:] = [x for x in file.blocks if x.numbers in places]
  examples = []
  for where in layers[-1]:
    sentence = [layer[where] for layer in layers]
    spans = None
    known = [x.spans for x in sentence if x.spans is not None]
    if len(known) == len(layers):
      spans = tuple(dict.fromkeys(itertools.chain.from_iterable(known)))
    examples.append(sentence[0]._replace(spans=spans))
  return examples


def read_flat(
  source: str,
  *,
  token_column: int = 0,
  tag_column: int = -1,
  file_scheme: str = "auto",
  repair_bio: bool = False,
) -> list[Example]:
  """Returns the sentences of a file with at most one column of entity tags."""
  sentences = tags.read_file(
    source, token_column=token_column, tag_column=tag_column, entities=True
  )
  return _with_spans(sentences, file_scheme, repair_bio)


def _with_spans(
  sentences: Sequence[tags.Example], file_scheme: str, repair_bio: bool
) -> list[Example]:
  sentences = tags.read_entities(
    sentences, file_scheme=file_scheme, repair_bio=repair_bio
  )
  return [
    Example(
      x.words,
      None if x.tags is None else tuple(bio.find_entities(x.tags)),
      lines=x.lines,
      document=os.path.basename(x.file),
      where=x.where,
    )
    for x in sentences
  ]


def _layer_columns(file: columns.Columns, token_column: int) -> list[int]:
  """Returns the columns of tags; without any, the last one, which is absent."""
  count = file.count

  def numbers(column: int) -> bool:
    return all(
      row[column] in (str(i), str(i + 1))
      for block in file.blocks
      for i, row in enumerate(block.rows)
    )

  chosen = [i for i in range(count) if i != token_column % count]
  return [i for i in chosen if not numbers(i)] or [-1]


def format_layers(
  sentences: Iterable[tuple[Sequence[str], Iterable[bio.Entity]]],
) -> str:
  """Returns (words, spans) as text, with as many layers as needed."""
  layered = [(words, _layers(spans)) for words, spans in sentences]
  depth = max([1, *(len(layers) for _, layers in layered)])
  return columns.format_columns(
    [
      words,
      *(bio.entity_tags(layer, len(words)) for layer in layers),
      *[["O"] * len(words)] * (depth - len(layers)),
    ]
    for words, layers in layered
  )


def _layers(spans: Iterable[bio.Entity]) -> list[list[bio.Entity]]:
  """Puts each span, widest first, in the first layer that has room for it."""
  layers: list[list[bio.Entity]] = []
  for span in sorted(spans, key=lambda s: (s.begin - s.end, s.begin)):
    for layer in layers:
      if all(s.end <= span.begin or span.end <= s.begin for s in layer):
        layer.append(span)
        break
    else:
      layers.append([span])
  return layers
