"""Files of labelled spans: one BIO column, or several as layers.

LitBank's format (Bamman et al. 2019; also that of meizhiju/layered-bilstm-crf)
has a word per line, followed by a column for each layer of entities, inner ones
further right:

  the	B-FAC	O
  house	I-FAC	O
  of	I-FAC	O
  the	I-FAC	B-PER
  king	I-FAC	I-PER

A single layer is an ordinary CoNLL file; conll.py and bio.py read both. A
column that numbers the words (GermEval 2014) is no layer. In JSON and Parquet,
the tags are the only layer.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maskedlm.core.errors import DataError
from maskedlm.finetune.common import bio
from maskedlm.finetune.tagging import columns, conll, token_lists


class LabelledSentence(NamedTuple):
  """Words and their labelled spans."""

  words: tuple[str, ...]
  # Outer layers first; None if the file has no column of tags.
  spans: tuple[bio.Entity, ...] | None
  lines: tuple[int, ...]  # Line numbers of the words.


def read_layers(
  path: str,
  *,
  token_column: int = 0,
  file_scheme: str = "auto",
  repair_bio: bool = False,
) -> list[LabelledSentence]:
  """Reads a file in which every column except the words' is a layer of BIO.

  Raises:
    DataError: see read_flat; the file is CoNLL-U.
  """
  if token_lists.is_format(path):
    return read_flat(
      path,
      token_column=token_column,
      file_scheme=file_scheme,
      repair_bio=repair_bio,
    )
  found = columns.read_columns(path)
  if found.is_conllu:
    raise DataError(
      f"{path}: CoNLL-U, whose columns are no layers of entities; expected "
      "columns of BIO, or set --config.task.nested=False and task.tag_column."
    )
  for line in (line for sentence in found.sentences for line in sentence):
    if len(line.fields) != found.count:
      raise columns.ragged_error(found, line)
  layers = [
    _labelled(
      path,
      conll.select_columns(found, token_column=token_column, tag_column=column),
      file_scheme=file_scheme,
      repair_bio=repair_bio,
    )
    for column in _layer_columns(found, token_column)
  ]
  return [
    sentence_layers[0]._replace(
      spans=_joined([s.spans for s in sentence_layers])
    )
    for sentence_layers in zip(*layers, strict=True)
  ]


def read_flat(
  path: str,
  *,
  token_column: int = 0,
  tag_column: int = -1,
  file_scheme: str = "auto",
  repair_bio: bool = False,
) -> list[LabelledSentence]:
  """Reads the sentences of a file with at most one column of entity tags.

  Raises:
    DataError: see conll.read_sentences and bio.convert_tags.
  """
  sentences = conll.read_sentences(
    path, token_column=token_column, tag_column=tag_column, entities=True
  )
  return _labelled(
    path, sentences, file_scheme=file_scheme, repair_bio=repair_bio
  )


def _labelled(
  path: str,
  sentences: Sequence[conll.TaggedSentence],
  *,
  file_scheme: str,
  repair_bio: bool,
) -> list[LabelledSentence]:
  if any(sentence.tags is None for sentence in sentences):
    return [LabelledSentence(s.words, None, s.lines) for s in sentences]
  tags = bio.convert_tags(
    [(s.tags, s.lines) for s in sentences],
    path,
    file_scheme=file_scheme,
    repair_bio=repair_bio,
  )
  return [
    LabelledSentence(s.words, tuple(bio.find_entities(sentence_tags)), s.lines)
    for s, sentence_tags in zip(sentences, tags, strict=True)
  ]


def _layer_columns(found: columns.TokenColumns, token_column: int) -> list[int]:
  """Returns the columns of tags; without any, the last one, which is absent."""
  count = found.count

  def numbers(column: int) -> bool:
    return all(
      column < len(line.fields) and line.fields[column] in (str(i), str(i + 1))
      for sentence in found.sentences
      for i, line in enumerate(sentence)
    )

  chosen = [i for i in range(count) if i != token_column % count]
  return [i for i in chosen if not numbers(i)] or [-1]


def format_layers(
  sentences: Iterable[tuple[Sequence[str], Iterable[bio.Entity]]],
) -> str:
  """Returns (words, spans) as text, with as many layers as needed."""
  layered = [(words, _layers(spans)) for words, spans in sentences]
  depth = max([1, *(len(layers) for _, layers in layered)])
  return conll.format_columns(
    [
      [
        words,
        *(bio.entity_tags(layer, len(words)) for layer in layers),
        *[["O"] * len(words)] * (depth - len(layers)),
      ]
      for words, layers in layered
    ]
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


def _joined(
  layers: Sequence[tuple[bio.Entity, ...] | None],
) -> tuple[bio.Entity, ...] | None:
  """Returns the spans of all layers, each once."""
  if None in layers:
    return None
  return tuple(dict.fromkeys(span for layer in layers for span in layer))
