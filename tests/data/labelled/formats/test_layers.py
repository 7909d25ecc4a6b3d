"""Layers of BIO columns: reading, writing, errors."""

import random

import pytest

from maskedlm.data.labelled.bio import Entity
from maskedlm.data.labelled.formats import layers

LAYERS = """\
the\tB-FAC\tO\tO\t
house\tI-FAC\tO\tO\t
of\tI-FAC\tO\tO\t
the\tI-FAC\tB-PER\tO\t
king\tI-FAC\tI-PER\tO\t
of\tI-FAC\tI-PER\tO\t
Rome\tI-FAC\tI-PER\tB-GPE\t
fell\tO\tO\tO\t

he\tO\tO\tO\t
"""


def test_layers_are_spans_outer_first(file):
  king, he = layers.read_layers(file(LAYERS))
  assert " ".join(king.words) == "the house of the king of Rome fell"
  assert king.spans == (
    Entity("FAC", 0, 7),
    Entity("PER", 3, 7),
    Entity("GPE", 6, 7),
  )
  assert king.lines == (1, 2, 3, 4, 5, 6, 7, 8)
  assert he[:3] == (("he",), (), None)
  assert (he.lines, he.document) == ((10,), "f.tsv")


def test_a_layer_alone_is_a_flat_file_and_no_layer_has_no_spans(file):
  flat = file("a O\nb B-X\n\nc I-X\n".replace("I-X", "B-Y"))
  spans = [(Entity("X", 1, 2),), (Entity("Y", 0, 1),)]
  assert [s.spans for s in layers.read_flat(flat)] == spans
  assert [s.spans for s in layers.read_layers(flat)] == spans
  bare = file("a\nb\n")
  assert [s.spans for s in layers.read_flat(bare)] == [None]
  assert [s.spans for s in layers.read_layers(bare)] == [None]


def test_columns_are_chosen(file):
  path = file("1\ta\tB-X\tO\n2\tb\tO\tB-Y\n")
  (flat,) = layers.read_flat(path, token_column=1, tag_column=2)
  assert flat.words == ("a", "b") and flat.spans == (Entity("X", 0, 1),)
  path = file("B-X\ta\tO\nO\tb\tB-Y\n")
  (sentence,) = layers.read_layers(path, token_column=1)
  assert sentence.spans == (Entity("X", 0, 1), Entity("Y", 1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_again(file, seed):
  rng = random.Random(seed)
  sentences = []
  for _ in range(7):
    n = rng.randrange(1, 12)
    spans = set()
    for _ in range(rng.randrange(9)):
      begin = rng.randrange(n)
      spans.add(Entity(rng.choice("XY"), begin, rng.randrange(begin, n) + 1))
    sentences.append((["w"] * n, spans))
  again = layers.read_layers(file(layers.format_layers(sentences)))
  assert [set(s.spans) for s in again] == [spans for _, spans in sentences]
  assert [len(s.words) for s in again] == [len(words) for words, _ in sentences]
  flat = layers.format_layers([(["a"], [])])
  assert flat == "a\tO\n\n"


def test_litbank(data_dir):
  folder = data_dir / "ner_nested" / "litbank"
  path = next(folder.glob("*pride_and_prejudice*.tsv"), None)
  if path is None:
    pytest.skip("no LitBank in the data")
  sentences = layers.read_layers(str(path))
  text = [
    (" ".join(s.words[e.begin : e.end]), e.type)
    for s in sentences
    for e in s.spans
  ]
  assert text[0] == ("a single man in possession of a good fortune", "PER")
  assert text[1] == ("a wife", "PER")
  assert len(sentences) == 111
