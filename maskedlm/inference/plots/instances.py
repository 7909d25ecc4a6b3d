"""Collects and labels the instances of a word for `maskedlm plot instances`.

Points are coloured by sense, file or word. scatter.py draws them as a picture,
html_page.py as a page that shows each point's sentence.
"""

import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.inference.plots.scatter import Group, Point

SENSES = (".tsv", ".data.xml")  # Suffixes of files with senses.
MOST_GROUPS = 20  # Smaller groups are merged into the last one.
MOST_WORDS = 4  # The most in a title.


def find_instances(
  paths: Sequence[str], words: Sequence[str], field: str
) -> Iterator:
  """Yields labelled Instances in files of texts or of word senses.

  The label is the sense, if there is one; else the file, if there are several;
  else the word. `field` is the field with the text in JSON Lines.
  """
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import data, word_instances

  names = dict(zip(paths, _stems(paths), strict=True))
  for path in paths:
    if path.endswith(SENSES):
      instances = word_instances.find_labelled_instances(
        data.read_sentences(path), words
      )
      several = len(words) > 1
      for instance in instances:
        prefix = f"{instance.word}: " if several else ""
        yield instance._replace(label=prefix + instance.label)
    else:
      texts = text_lines.read_texts([path], field=field)
      for instance in word_instances.find_instances(texts, words):
        label = names[path] if len(paths) > 1 else instance.word
        yield instance._replace(label=label)


def find_texts(paths: Sequence[str]) -> Iterator:
  """Yields whole texts as Instances, without a word, labelled.

  The label is that of a table's row; a file of lines is a label by its name.
  """
  from maskedlm.data.labelled import tables, text_lines
  from maskedlm.data.labelled.formats import texts
  from maskedlm.inference.word_senses.word_instances import Instance

  layout = texts.FileLayout(text=("text", "sentence", "sequence"))
  for path, name in zip(paths, _stems(paths), strict=True):
    if not tables.is_table(path):
      for text in text_lines.read_texts([path]):
        yield Instance(text, 0, 0, "", name)
      continue
    for example in texts.read_examples(path, layout):
      number = example.where.rpartition(":")[2]  # None in Parquet.
      line = int(number) if number.isdigit() else 0
      text = text_lines.Text(example.text, file=path, line=line)
      yield Instance(text, 0, 0, "", example.label or name)


def group_by_label(instances: Sequence, points) -> list[Group]:
  """Returns n instances with points [n, 2] by label, largest group first."""
  by_label: dict[str, list[Point]] = {}
  for instance, (x, y) in zip(instances, points.tolist(), strict=True):
    text = instance.text
    point = Point(
      x,
      y,
      before=text.text[: instance.begin],
      word=text.text[instance.begin : instance.end],
      after=text.text[instance.end :],
      where=f"{pathlib.Path(text.file).name}:{text.line}",
    )
    by_label.setdefault(instance.label, []).append(point)
  ordered = sorted(by_label.items(), key=lambda item: -len(item[1]))
  groups = [Group(label, members) for label, members in ordered]
  if len(groups) <= MOST_GROUPS:
    return groups
  rest = groups[MOST_GROUPS - 1 :]
  rest_points = list(itertools.chain(*(group.points for group in rest)))
  return [*groups[: MOST_GROUPS - 1], Group(f"{len(rest)} others", rest_points)]


def format_words(words: Sequence[str]) -> str:
  """Returns the words in quotes; of many, the first MOST_WORDS."""
  few = words[:MOST_WORDS] if len(words) > MOST_WORDS + 1 else words
  quoted = ", ".join(f"“{word}”" for word in few)
  rest = len(words) - len(few)
  return f"{quoted} and {rest} others" if rest else quoted


def check_count(instances: Sequence, words, paths: Sequence[str]) -> None:
  """Raises ConfigError if there are fewer than two instances."""
  if not instances:
    raise ConfigError(not_found_message(words, paths))
  if len(instances) == 1:
    text = instances[0].text
    raise ConfigError(
      f"{format_words(words)} occurs once, {text.file}:{text.line}; expected "
      "at least two instances to compare."
    )


def not_found_message(words: Sequence[str], paths: Sequence[str]) -> str:
  """Returns the error message for words without an instance."""
  files = ", ".join(paths)
  if any(path.endswith(SENSES) for path in paths):
    return f"{format_words(words)}: no occurrence with a sense in {files}."
  return (
    f"{format_words(words)}: no whole word in {files}; list other forms, "
    "such as plurals, as separate words."
  )


def _stems(paths: Sequence[str]) -> list[str]:
  """Returns short names of files, such as "de" for de.txt, unless ambiguous."""
  stems = [pathlib.Path(path).stem for path in paths]
  count = Counter(stems)
  return [
    stem if count[stem] == 1 else path
    for stem, path in zip(stems, paths, strict=True)
  ]


def format_layers(layers: Sequence[int], combine: str) -> str:
  """Returns a description of the layers and how they are combined."""
  numbers = ", ".join(map(str, layers))
  if len(layers) == 1:
    return f"layer {numbers}"
  return f"{combine} of layers {numbers}"
