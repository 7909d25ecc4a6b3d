"""Sentences of words with tags: token columns, CoNLL-U, CoNLL-2012 and JSON.

  columns            CoNLL-2003 and its many variants: the columns that are
                     asked for, in lines that have them
  CoNLL-U            FORM, and UPOS, XPOS or the column asked for (conllu.py)
  CoNLL-2012         the words, and their entities or parts of speech, unless
                     columns are asked for (conll2012.py)
  JSON, Parquet      {"tokens": ["Ann", "went"], "ner_tags": ["B-PER", "O"]}

In JSON, which Hugging Face's datasets have, a tag is a text, or a number from 0
on where the names of the classes are missing. OntoNotes is read, too. What
entity tags mean is in bio.py.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from maskedlm.core.counts import counted
from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bad_rows, bio, columns, fields, read
from maskedlm.data.labelled.columns import Block, Columns
from maskedlm.data.labelled.formats import conll2012, conllu

CONLLU_TAGS = {"upos": 3, "xpos": 4}
TOKEN_COLUMN, TAG_COLUMN = 0, -1  # The defaults; CoNLL-U has its own.
_HEADERS = (
  {"word", "words", "token", "tokens", "form"},
  {"tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "pos"}
  | {"misc", "ne-coarse-lit", "ne-fine-lit"},  # HIPE's.
)
_ENTITIES = ("ner_tags", "tags", "labels", "ner", "named_entities")
_NAMES = {
  "upos": ("pos_tags", "upos", "tags", "labels", "pos"),
  "xpos": ("xpos", "xpos_tags"),
}


class Example(NamedTuple):
  """A sentence and its tags."""

  words: tuple[str, ...]
  tags: tuple[str, ...] | None = None  # None if the file has none.
  text: str | None = None  # None: the words joined by spaces.
  offsets: tuple[tuple[int, int], ...] = ()  # Characters of the words in text.
  lines: tuple[int, ...] = ()  # Line numbers of the words.
  where: str = ""  # FILE:LINE of the first word.

  @property
  def file(self) -> str:
    """The name of the file."""
    return self.where.rpartition(":")[0]


def read_file(
  source: str,
  *,
  token_column: int = TOKEN_COLUMN,
  tag_column: int = TAG_COLUMN,
  conllu_tag: str = "upos",
  entities: bool = False,
) -> list[Example]:
  """Returns the sentences of a file of any of the formats.

  Args:
    token_column, tag_column: from 0, or from the end: -1 is the last. A file
      with a single column has words without tags. In CoNLL-U, 0 and -1 are FORM
      and conllu_tag.
    conllu_tag: upos or xpos.

  Raises:
    DataError: the file is missing, can't be read as text or has no word; a line
      lacks a column, or has an empty word or no tag, but others have one; an
      option doesn't apply to the format.
  """
  is_default = (token_column, tag_column) == (TOKEN_COLUMN, TAG_COLUMN)
  if read.has_objects(source):
    if not is_default:
      raise DataError(
        f"{source}: its fields have names, so task.token_column={token_column} "
        f"and task.tag_column={tag_column} have no effect: leave them out, or "
        "beside a checkpoint set --config.task.token_column=0 "
        "--config.task.tag_column=-1."
      )
    form = _format(_ENTITIES if entities else _NAMES[conllu_tag])
    rows = read.read_objects(source, form)
    return _checked_tags([_parse_row(row) for row in rows])
  file = columns.read_columns(source)
  if is_default and conll2012.is_format(file):
    read_2012 = functools.partial(_parse_2012, entities=entities)
    return [*bad_rows.map_rows(read_2012, conll2012.read_sentences(file))]
  by_name = conllu_tag != "upos" and tag_column == TAG_COLUMN
  if by_name and not file.is_conllu and file.count > 1:
    raise DataError(
      f"{source}: not CoNLL-U, so task.conllu_tag={conllu_tag} has no effect: "
      "set --config.task.tag_column to the tag's column, or "
      "--config.task.conllu_tag=upos for the last one."
    )
  return select_columns(file, token_column, tag_column, conllu_tag)


def read_entities(
  examples: Sequence[Example],
  *,
  file_scheme: str,
  repair_bio: bool,
  scheme: str = "bio",
) -> list[Example]:
  """Returns a file's examples with the tags of their entities in a scheme.

  Those without tags are returned as they are; arguments and errors as for
  bio.tag_converter.
  """
  tags = [x.tags for x in examples if x.tags is not None]
  if not examples or len(tags) < len(examples):
    return list(examples)
  convert = bio.tag_converter(
    tags,
    examples[0].file,
    file_scheme=file_scheme,
    scheme=scheme,
    repair_bio=repair_bio,
  )

  def read(example: Example) -> Example:
    converted = convert(example.tags or (), example.lines)
    return example._replace(tags=tuple(converted))

  return [*bad_rows.map_rows(read, examples)]


def select_columns(
  file: Columns, token_column: int, tag_column: int, conllu_tag: str = "upos"
) -> list[Example]:
  """Returns the words and tags of a file; arguments as for read_file.

  Raises:
    DataError: as for read_file.
  """
  blocks = file.blocks
  if file.is_conllu:
    words = functools.partial(conllu.syntactic_words, file.path)
    blocks = [*bad_rows.map_rows(words, blocks)]
    if token_column == TOKEN_COLUMN:
      token_column = conllu.FORM
    if tag_column == TAG_COLUMN:
      tag_column = CONLLU_TAGS[conllu_tag]
  for name, column in (("token", token_column), ("tag", tag_column)):
    if not -file.count <= column < file.count:
      first = (blocks or file.blocks)[0]
      raise DataError(
        f"{file.path}:{first.numbers[0]}: {name}_column={column}, but the "
        f"line has {counted(file.count, 'column')}: "
        f"{' '.join(first.rows[0])[:60]!r}; set "
        f"--config.task.{name}_column."
      )
  if file.count > 1 and not (token_column - tag_column) % file.count:
    raise DataError(
      f"{file.path}: token_column={token_column} and tag_column={tag_column} "
      f"are the same one of {file.count} columns; set "
      "--config.task.tag_column."
    )
  read = functools.partial(_parse_block, file, token_column, tag_column)
  examples = [*bad_rows.map_rows(read, blocks)]
  if examples:
    _check_words(file, examples, token_column)
  return _checked_tags(examples)


def format_conllu(
  sentences: Iterable[tuple[Sequence[str], Sequence[str]]],
  *,
  conllu_tag: str = "upos",
) -> str:
  """Returns (words, tags) as CoNLL-U text, with _ in the unknown columns.

  Each word becomes one line: ranges and empty nodes are not restored.
  """
  text = []
  for words, tags in sentences:
    table = [["_"] * len(words)] * columns.CONLLU_COLUMNS
    table[0] = [str(i) for i in range(1, len(words) + 1)]
    table[conllu.FORM], table[CONLLU_TAGS[conllu_tag]] = [*words], [*tags]
    plain = columns.format_columns([[words]]).split("\n")[: len(words)]
    text += [f"# text = {' '.join(plain)}\n", columns.format_columns([table])]
  return "".join(text)


def _format(names: tuple[str, ...]) -> fields.Format:
  """Returns the format of rows whose tags have one of these names."""
  return fields.Format(
    {
      "words": fields.words("tokens", "words"),
      "tags": fields.items(
        *names,
        of=_tag,
        expected="a list of tags, for every word or for none",
        optional=True,
        same_length="words",
      ),
    },
    such_as='{"tokens": ["Ann", "went"], "ner_tags": ["B-PER", "O"]}',
    filled="words",
    documents=True,
  )


def _tag(value: Any) -> str:
  tag = fields.key_of(value)
  if not tag or (isinstance(value, int) and value < 0):
    raise ValueError(f"the tag {value!r} is none")
  return tag


def _parse_row(row: read.Row) -> Example:
  words, tags = row.values["words"], row.values["tags"]
  return Example(words, tags, lines=(row.line,) * len(words), where=row.where)


def _parse_2012(sentence: conll2012.Sentence, entities: bool) -> Example:
  words = sentence.column(conll2012.WORD)
  tags = sentence.column(conll2012.TAG)
  if entities:
    spans = sentence.spans(conll2012.ENTITY)
    tags = tuple(bio.entity_tags(spans, len(words)))
  numbers = sentence.block.numbers
  return Example(words, tags, lines=numbers, where=sentence.where)


def _parse_block(
  file: Columns, token_column: int, tag_column: int, block: Block
) -> Example:
  words = tuple(row[token_column] for row in block.rows)
  tags = tuple(row[tag_column].strip() for row in block.rows)
  if "" in tags:
    raise DataError(
      f"{file.path}:{block.numbers[tags.index('')]}: the tag is empty; "
      "expected one on each line, and a blank line after each sentence."
    )
  where = f"{file.path}:{block.numbers[0]}"
  example = Example(words, tags, lines=block.numbers, where=where)
  return example if file.count > 1 else example._replace(tags=None)


def _check_words(
  file: Columns, examples: Sequence[Example], column: int
) -> None:
  """Checks that a column of words is not one of numbers, or a file's name."""
  first = examples[0]
  names = (first.words[0], (first.tags or ("",))[0])
  if all(x.lower() in y for x, y in zip(names, _HEADERS, strict=True)):
    raise DataError(
      f"{first.where}: {names[0]!r} and {names[1]!r} name the columns; "
      "expected the first word and its tag: delete the line."
    )
  if file.count < 3 or max(len(x.words) for x in examples) < 2:
    return
  words = {word for x in examples for word in x.words}
  if all(_are_consecutive(x.words) for x in examples):
    fault = "numbers the words"
  elif len(words) == 1 and "/" in min(words):
    fault = f"is always {min(words)!r}"
  else:
    return
  raise DataError(
    f"{first.where}: column {column} {fault}; set "
    "--config.task.token_column to the column of the words, from 0."
  )


def _are_consecutive(words: Sequence[str]) -> bool:
  return all(re.fullmatch("[0-9]+", word) for word in words) and all(
    int(b) == int(a) + 1 for a, b in itertools.pairwise(words)
  )


def _checked_tags(examples: list[Example]) -> list[Example]:
  """Returns the sentences, without tags if all are _ (not annotated)."""
  if all(x.tags is None or set(x.tags) == {"_"} for x in examples):
    return [x._replace(tags=None) for x in examples]

  def checked(example: Example) -> Example:
    if example.tags is None or "_" in example.tags:
      place = 0 if example.tags is None else example.tags.index("_")
      raise DataError(
        f"{example.file}:{example.lines[place]}: the word has no tag (_), but "
        "others do; expected one for every word or for none."
      )
    return example

  return [*bad_rows.map_rows(checked, examples)]
