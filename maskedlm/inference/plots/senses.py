"""Places a word in context among the sense embeddings that it may have.

Jurafsky & Martin, Figure 11.9: the nearest one is its sense. The scatter is
drawn by scatter.py and html_page.py.
"""

import re

import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.inference.plots import figure
from maskedlm.inference.plots.scatter import Group, Point
from maskedlm.inference.plots.text_row import Mark, TextRow
from maskedlm.inference.vectors import projection, similarity, vectors
from maskedlm.inference.vectors.projection import Projection
from maskedlm.inference.vectors.standardise import (
  Standardiser,
  apply_standardiser,
)
from maskedlm.inference.word_senses import inputs, senses
from maskedlm.inference.word_senses.data import Sentence, TargetWord
from maskedlm.inference.word_senses.senses import Answer, Senses


def parse_target(text: str) -> tuple[Sentence, TargetWord | None]:
  """Returns the sentence and the marked word of "The *bank* rose", if any.

  Raises:
    DataError: see inputs.parse_marked_text; or several words are marked.
  """
  sentence = inputs.parse_marked_text(text)
  if len(sentence.targets) > 1:
    raise DataError(
      f"{len(sentence.targets)} words are marked in {text!r:.60}; expected one."
    )
  return sentence, next(iter(sentence.targets), None)


def row_of_senses(
  model: vectors.TextEncoder,
  learned: Senses,
  sentence: Sentence,
  options: vectors.VectorOptions,
  standardiser: Standardiser | None,
) -> TextRow:
  """Returns an unmarked sentence with the senses of its words above them.

  A sense is shown by the words around its first occurrence in training.
  """
  rank = senses.make_ranker(learned, standardiser)
  known = senses.target_known_words(learned, sentence)
  marks: list[Mark] = []
  for targets, values in senses.embed_targets(model, [known], options):
    for (_, target), x in zip(targets, values, strict=True):
      answer = rank(known, target, x)
      text = sense_words(learned, answer.senses[0])
      colour = figure.colour(len(marks))
      marks.append(Mark(target.word, target.word, text, colour))
  title = f"{len(marks)} of {len(sentence.words)} words have a sense"
  return TextRow(title, sentence.words, marks)


def sense_words(learned: Senses, sense: int) -> str:
  """Returns the first occurrence of a sense, with two words on either side.

  A sense that never occurred in training has its name alone.
  """
  if sense >= len(learned.examples):
    return learned.names[sense]
  before, word, after = _split_example(learned.examples[sense])
  return " ".join([*before.split()[-2:], word, *after.split()[:2]])


def place_senses(
  model: vectors.TextEncoder,
  learned: Senses,
  sentence: Sentence,
  target: TargetWord,
  options: vectors.VectorOptions,
  *,
  standardiser: Standardiser | None = None,
  top_k: int,
) -> tuple[list[Group], Projection, int]:
  """Returns the groups to draw, their projection, and how many senses exist.

  Each of the groups is one point: the word in its sentence, then its senses,
  nearest first, with their cosines. What is projected, by PCA, has length 1, so
  that near points have a high cosine.

  Args:
    sentence, target: from parse_target.
    options: from senses.word_vector_options.
    standardiser: see senses.make_ranker.
    top_k: the most senses to draw.

  Raises:
    ConfigError: the word has no sense in training, or no token.
  """
  embedded = senses.embed_targets(model, [sentence], options)
  (x,) = (x for _, values in embedded for x in values)
  answer = senses.make_ranker(learned, standardiser)(sentence, target, x)
  word = sentence.words[target.word]
  if not answer.scores:
    raise ConfigError(
      f"{word!r:.40} has no sense in the training data; expected a word that "
      "occurs there, or its lemma and part of speech: *banks|bank|NOUN*."
    )
  chosen = list(answer.senses[:top_k])
  drawn = np.concatenate([x[None], learned.vectors[chosen]])
  drawn = apply_standardiser(standardiser, drawn)
  projected = projection.pca(similarity.unit_length(drawn))
  groups = _make_groups(learned, sentence, target, answer, projected.points)
  return groups, projected, len(answer.senses)


def _make_groups(
  learned: Senses,
  sentence: Sentence,
  target: TargetWord,
  answer: Answer,
  points: np.ndarray,
) -> list[Group]:
  words, i = sentence.words, target.word
  before = " ".join([*words[:i], ""])
  after = " ".join(["", *words[i + 1 :]])
  x, y = points[0].tolist()
  placed = Point(x, y, before, words[i], after, "the text")
  groups = [Group("the word", [placed])]
  for sense, cosine, (x, y) in zip(
    answer.senses, answer.scores, points[1:].tolist(), strict=False
  ):
    label = f"{sense_words(learned, sense)}, cosine {cosine:z.3f}"
    before, word, after = _split_example(learned.examples[sense])
    placed = Point(x, y, before, word, after, "in training")
    groups.append(Group(label, [placed]))
  return groups


def _split_example(example: str) -> tuple[str, str, str]:
  """Returns (before, word, after) of senses.format_context."""
  match = re.fullmatch(r"(.*?)\*(\S.*?)\*(?!\S)(.*)", example, re.DOTALL)
  assert match is not None  # The word is between asterisks.
  return match[1], match[2], match[3]
