"""Input and output of the parser: words between spaces in, trees out."""

import re
from collections.abc import Mapping, Sequence

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import tables
from maskedlm.data.labelled.formats import trees
from maskedlm.data.labelled.formats.trees import Example
from maskedlm.data.labelled.sentences import parse_words
from maskedlm.finetune.contract import Prediction

# How a tree begins, on a line: (S (NP or ( (S.
_TREE = re.compile(r"\([A-Z0-9=|-]* *\([A-Z][A-Z0-9=|$-]* [^ ]")


def parse_line(line: str) -> Example:
  """Parses words between spaces, or {"tokens": [words]}, {"text": ...} in JSON.

  Raises:
    DataError: there are no words, or a tree; the JSON has neither field.
  """
  if not tables.is_object(line) and _TREE.match(line):
    raise DataError(
      f"input {line[:60]!r} is a tree; expected words between spaces; give "
      'files of trees as --data, or such a text as {"text": "..."}.'
    )
  return Example(words=parse_words(line))


def tree_prediction(
  words: Sequence[str],
  tags: Sequence[str],
  certain: Sequence[float],
  chains: Mapping[tuple[int, int], str],
  probabilities: Mapping[tuple[int, int], float],
  *,
  root: str,
) -> Prediction:
  """Returns the prediction for a sentence, JSON-able.

  Args:
    words, tags: those of the sentence.
    certain: the probabilities of the tags.
    chains: labelled spans, joined as by trees.join_chains.
    probabilities: those of the chains.
    root: the label around the tree.

  Returns:
    tokens, tags, probabilities (of the tags), brackets (outer ones first), each
    with label, text, words (the first, and the one after the last) and score
    (the probability of all labels of these words), and tree.
  """
  brackets = trees.split_chains(chains)
  return {
    "tokens": list(words),
    "tags": list(tags),
    "probabilities": [round(float(p), 4) for p in certain],
    "brackets": [
      {
        "label": label,
        "text": " ".join(words[begin:end]),
        "words": [begin, end],
        "score": round(float(probabilities[begin, end]), 4),
      }
      for label, begin, end in brackets
    ],
    "tree": trees.format_tree(words, tags, brackets, root),
  }
