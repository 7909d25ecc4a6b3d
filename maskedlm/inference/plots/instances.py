"""`maskedlm plot instances`: where a word's instances lie, and what they say.

Points with a colour for each sense, file or word: a picture (scatter.py), and
a page whose points tell their sentences (page.py).
"""

import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.inference.plots.scatter import Group, Point

SENSES = (".tsv", ".data.xml")  # What files with senses are named.
MOST_GROUPS = 20  # The smallest beyond them share one.
MOST_WORDS = 4  # That a title names.


def find(paths: Sequence[str], words: Sequence[str], field: str) -> Iterator:
  """The instances in files of texts or of senses, with their labels.

  A label is the sense; else, of several files, the file; else the word.
  """
  from maskedlm.data.labelled import text_lines
  from maskedlm.inference.word_senses import data, word_instances

  names = dict(zip(paths, _stems(paths), strict=True))
  for path in paths:
    if path.endswith(SENSES):
      found = word_instances.of_senses(data.read(path), words)
      several = len(words) > 1
      for each in found:
        label = f"{each.word}: {each.label}" if several else each.label
        yield each._replace(label=label)
    else:
      texts = text_lines.read([path], field=field)
      for each in word_instances.find(texts, words):
        label = names[path] if len(paths) > 1 else each.word
        yield each._replace(label=label)


def group(found: Sequence, points) -> list[Group]:
  """Instances with their points [n, 2], by label; the largest group first."""
  by_label: dict[str, list[Point]] = {}
  for each, (x, y) in zip(found, points.tolist(), strict=True):
    text = each.text
    point = Point(
      x,
      y,
      before=text.text[: each.begin],
      word=text.text[each.begin : each.end],
      after=text.text[each.end :],
      where=f"{pathlib.Path(text.file).name}:{text.line}",
    )
    by_label.setdefault(each.label, []).append(point)
  ordered = sorted(by_label.items(), key=lambda item: -len(item[1]))
  groups = [Group(label, of) for label, of in ordered]
  if len(groups) <= MOST_GROUPS:
    return groups
  rest = groups[MOST_GROUPS - 1 :]
  others = list(itertools.chain(*(each.points for each in rest)))
  return [*groups[: MOST_GROUPS - 1], Group(f"{len(rest)} others", others)]


def words(words: Sequence[str]) -> str:
  """The words in quotes; of many, the first ones."""
  few = words[:MOST_WORDS] if len(words) > MOST_WORDS + 1 else words
  quoted = ", ".join(f"“{word}”" for word in few)
  rest = len(words) - len(few)
  return f"{quoted} and {rest} others" if rest else quoted


def check_count(found: Sequence, words, paths: Sequence[str]) -> None:
  """That there is something to be compared."""
  if not found:
    raise ConfigError(nowhere(words, paths))
  if len(found) == 1:
    text = found[0].text
    raise ConfigError(
      f"{words(words)} occurs once, {text.file}:{text.line}; expected two "
      "instances or more, to be compared."
    )


def nowhere(words: Sequence[str], paths: Sequence[str]) -> str:
  """What is to be told of words without an instance."""
  files = ", ".join(paths)
  if any(path.endswith(SENSES) for path in paths):
    return f"{words(words)}: not a word with a sense in {files}."
  return (
    f"{words(words)}: not a whole word of {files}; give other forms, such as "
    "plurals, as words of their own."
  )


def _stems(paths: Sequence[str]) -> list[str]:
  """Short names of files: de of de.txt, if no other is called so."""
  stems = [pathlib.Path(path).stem for path in paths]
  count = Counter(stems)
  return [
    stem if count[stem] == 1 else path
    for stem, path in zip(stems, paths, strict=True)
  ]


def layers(layers: Sequence[int], combine: str) -> str:
  numbers = ", ".join(map(str, layers))
  if len(layers) == 1:
    return f"layer {numbers}"
  return f"{combine} of layers {numbers}"
