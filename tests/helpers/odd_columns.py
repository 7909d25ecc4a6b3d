"""Files of token columns in the forms of the world, made from rules.

`good_files` have known entities; `broken_files` are each a good one with one
fault, which a reader must refuse or report.
"""

import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

# (words, entities as (type, begin, end)); the second begins with a word "#".
SENTENCES = (
  ("Eve Stone ran to New York .", (("PER", 0, 2), ("LOC", 4, 6))),
  ("# Eve", (("PER", 1, 2),)),
  ("ran", ()),
  ("a #tag , Köln \u2028 Eve", (("LOC", 3, 4), ("PER", 5, 6))),
)
# The prefixes of an entity's only word, its first, inner and last one.
SCHEMES = {"bio": "BBII", "bioes": "SBIE", "bilou": "UBIL", "bmes": "SBME"}
FORMS = {
  "dash": "{0}-{1}".format,
  "underscore": "{0}_{1}".format,
  "lower": lambda prefix, type_: f"{prefix.lower()}-{type_}",
  "type first": "{1}-{0}".format,
}
# name -> (columns of a line, token_column, tag_column)
LAYOUTS = {
  "two": (lambda i, w, t: [w, t], 0, -1),
  "conll": (lambda i, w, t: [w, "NN", "_", t], 0, -1),
  "first": (lambda i, w, t: [t, "x", w], 2, 0),
  "numbered": (lambda i, w, t: [str(i), w, t, "O"], 1, 2),
  "conllu": (
    lambda i, w, t: [str(i), w, "_", "X", "_", "_", "0", "_", "_", t],
    1,
    9,
  ),
}
COMMENTS = (
  "",
  "# id a-1\tdomain=en",
  "# sent_id = 3",
  "#\tx [2009]",
  "# newdoc",
)
ENDS = (
  ("\n", "\n"),
  ("\r\n", "\r\n"),
  ("\n", ""),
  ("\n", "\n \n\t\n-DOCSTART-\n"),
)


class OddFile(NamedTuple):
  """A file and what reads it."""

  name: str
  content: bytes
  options: dict[str, Any]  # token_column, tag_column, file_scheme.


def entity_tags(index: int, scheme: str, form) -> list[str]:
  """Returns the tags of a sentence in a scheme and a form."""
  text, entities = SENTENCES[index]
  tags = ["O"] * len(text.split(" "))
  one, first, inner, last = SCHEMES[scheme]
  for type_, begin, end in entities:
    n = end - begin
    prefixes = one if n == 1 else first + inner * (n - 2) + last
    tags[begin:end] = [form(prefix, type_) for prefix in prefixes]
  return tags


def _text(layout, separator, comment, ends, scheme, form) -> str:
  columns, _, _ = LAYOUTS[layout]
  end, last = ends
  lines = []
  for index, (text, _) in enumerate(SENTENCES):
    lines += [comment] if comment else []
    tags = entity_tags(index, scheme, FORMS[form])
    for i, pair in enumerate(zip(text.split(" "), tags, strict=True), 1):
      lines.append(separator.join(columns(i, *pair)))
    lines.append("")
  return end.join(lines[:-1]) + last


def good_files() -> Iterator[OddFile]:
  """Yields some 300 files with the entities of SENTENCES."""
  choices = itertools.product(
    LAYOUTS, ("\t", " ", "  ", " \t"), COMMENTS, ENDS, SCHEMES, FORMS
  )
  for number, (layout, separator, *rest) in enumerate(choices):
    if number % 19:  # Prime, so all choices meet all others.
      continue
    if layout == "conllu" and separator != "\t":
      continue
    _, token, tag = LAYOUTS[layout]
    content = _text(layout, separator, *rest).encode()
    if number % 3 == 0:
      content = b"\xef\xbb\xbf" + content
    options = {"token_column": token, "tag_column": tag}
    if rest[2] not in ("bio", "bioes") or rest[3] != "dash":
      options["file_scheme"] = "any"
    yield OddFile(f"good{number}.conll", content, options)
    if number % 5 == 0:
      packed = gzip.compress(content, mtime=0)
      yield OddFile(f"good{number}.conll.gz", packed, options)
  for number, (words, tags) in enumerate(
    itertools.product(("tokens", "words"), ("ner_tags", "tags", "labels"))
  ):
    rows = [
      {
        words: text.split(" "),
        "id": i,
        tags: entity_tags(i, "bio", FORMS["dash"]),
      }
      for i, (text, _) in enumerate(SENTENCES)
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    for suffix in (".jsonl", ".conll"):
      yield OddFile(f"rows{number}{suffix}", content, {})
    listed = json.dumps(rows, indent=2 * (number % 2) or None).encode()
    yield OddFile(f"rows{number}.json", listed, {})
    packed = gzip.compress(content, mtime=0)
    yield OddFile(f"rows{number}.jsonl.gz", packed, {})


def broken_files() -> Iterator[OddFile]:
  """Yields some 100 files with a fault that no reader may pass over."""
  faults = {
    "no tag": lambda line, sep: line.rpartition(sep)[0] or line[:1],
    "more": lambda line, sep: f"{line}{sep}more{sep}and",
    "strange tag": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}(PER*",
    "several": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}B-A|B-B",
    "no type": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}B-",
    "unknown": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}_",
    "number": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}7",
    "inner": lambda line, sep: f"{line.rpartition(sep)[0]}{sep}I-OTHER",
    "commas": lambda line, sep: ",".join(line.split(sep)),
    "comment": lambda line, sep: f"# a comment of many words\n{line}",
  }
  for (fault, change), separator, layout, place in itertools.product(
    faults.items(), ("\t", " "), ("two", "conll"), (2, 3, -2)
  ):
    text = _text(layout, separator, "", ENDS[0], "bio", "dash")
    lines = text.splitlines() if "\u2028" not in text else text.split("\n")
    lines = lines[:-1]
    lines[place] = change(lines[place], separator)
    name = f"{fault} {layout} {place} {ord(separator)}.conll"
    yield OddFile(name, "\n".join(lines).encode(), {})
  text = _text("two", "\t", "", ENDS[0], "bio", "dash")
  for name, content in {
    "utf-16": text.encode("utf-16"),
    "utf-16-le": text.encode("utf-16-le"),
    "cp1252": text.replace("\u2028", "x").encode("cp1252"),
    "zip": b"PK\x03\x04" + bytes(range(256)),
    "parquet": b"PAR1" + bytes(range(256)),
    "cut gzip": gzip.compress(text.encode(), mtime=0)[:-9],
    "empty": b"",
    "blank": b"\n \n\t\n",
    "documents": b"-DOCSTART- O\n\n-DOCSTART- O\n",
    "comments": b"# a comment here\n",
    "csv": text.replace("\t", ",").encode(),
    "no tokens": b'{"text": "a"}',
    "lengths": b'{"tokens": ["a", "b"], "tags": ["O"]}',
    "numbers": b'{"tokens": ["a", "b"], "tags": [0, 1]}',
    "header": b"word\ttag\n",
    "words are numbers": b"1\tEve\tB-PER\n2\tran\tO\n",
  }.items():
    suffix = ".csv" if name == "csv" else ".txt"
    yield OddFile(f"{name}{suffix}", content, {})
