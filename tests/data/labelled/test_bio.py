"""BIO tags: which are well-formed, and which entities they mean."""

import itertools
import random
import warnings

import pytest
from seqeval.metrics import sequence_labeling
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2, IOBES

from maskedlm.core.errors import DataError
from maskedlm.data.labelled import bio
from maskedlm.data.labelled.bio import Entity


def tags(text):
  return text.split()


def check(*texts, first_line=1, **options):
  """Converts the tags of sentences separated by blank lines."""
  sentences, line = [], first_line
  for text in texts:
    of_words = tags(text)
    sentences.append((of_words, range(line, line + len(of_words))))
    line += len(of_words) + 1
  convert = bio.tag_converter([x for x, _ in sentences], "f.conll", **options)
  return [convert(*sentence) for sentence in sentences]


def test_entities_by_hand():
  assert bio.find_entities(tags("B-PER I-PER O B-LOC B-LOC I-PER")) == [
    Entity("PER", 0, 2),
    Entity("LOC", 3, 4),
    Entity("LOC", 4, 5),
    Entity("PER", 5, 6),  # Ill-formed, read as conlleval does.
  ]
  assert bio.find_entities(tags("S-A B-A E-A B-A I-A E-A S-B B-B E-B")) == [
    Entity("A", 0, 1),
    Entity("A", 1, 3),
    Entity("A", 3, 6),
    Entity("B", 6, 7),
    Entity("B", 7, 9),
  ]
  assert bio.find_entities([]) == []
  # Types may contain dashes, or be missing.
  assert bio.find_entities(tags("B-creative-work I-creative-work B I")) == [
    Entity("creative-work", 0, 2),
    Entity("", 2, 4),
  ]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_tags_and_entities_are_inverse(scheme):
  rng = random.Random(5)
  for _ in range(200):
    length, found, place = rng.randrange(1, 13), [], 0
    while place < length:
      end = rng.randrange(place + 1, length + 1)
      if rng.random() < 0.6:
        found.append(Entity(rng.choice(["A", "B-c", ""]), place, end))
      place = end
    made = bio.entity_tags(found, length, scheme)
    assert bio.find_entities(made) == found
    assert bio.find_strict_entities(made, scheme) == found
    assert check(" ".join(made), file_scheme=scheme, scheme=scheme) == [made]


def test_ill_formed_tags_are_refused_with_line_and_remedy():
  with pytest.raises(DataError) as error:
    check("O B-PER I-PER", "O I-LOC O", "B-LOC B-LOC")
  message = str(error.value)
  assert message.startswith("f.conll:6: I-LOC after O is ill-formed BIO")
  assert "expected B-LOC" in message and "task.repair_bio=True" in message
  with pytest.raises(
    DataError, match=r"f.conll:1: I-PER at the start of a sen"
  ):
    check("I-PER", "B-LOC O")
  with pytest.raises(DataError, match=r"f.conll:2: I-LOC after B-PER"):
    check("B-PER I-LOC")
  with pytest.raises(
    DataError, match=r"f.conll:3: the end of the sentence after"
  ):
    check("S-PER O B-PER", "O")
  with pytest.raises(
    DataError, match=r"f.conll:2: B-A after O is ill-formed IO"
  ):
    check("O B-A I-A", file_scheme="iob1")


def test_repaired_tags_are_well_formed_and_mean_the_same():
  alphabet = ["O", "B-A", "I-A", "B-B", "I-B", "E-A", "S-B"]
  for scheme, count in (("bio", 5), ("bioes", 7)):
    for chosen in itertools.product(alphabet[:count], repeat=4):
      fixed = bio.repair_tags(chosen, scheme)
      assert bio.find_entities(fixed) == bio.find_entities(chosen)
      steps = itertools.pairwise([None, *fixed, None])
      assert all(bio.may_follow(s, t, scheme) for s, t in steps)
  assert check("I-PER I-PER O I-LOC B-LOC", repair_bio=True) == [
    tags("B-PER I-PER O B-LOC B-LOC")
  ]


def test_schemes_are_detected_and_converted():
  # IOB1: every B follows an entity of its type, and there is one.
  assert check("I-A I-A B-A O I-B", "O I-A") == [
    tags("B-A I-A B-A O B-B"),
    tags("O B-A"),
  ]
  assert check("S-A O B-B E-B", "B-A I-A E-A") == [
    tags("B-A O B-B I-B"),
    tags("B-A I-A I-A"),
  ]
  assert check("B-A I-A B-A O", scheme="bioes") == [tags("B-A E-A S-A O")]
  # Without a single B, IOB1 looks like a broken file.
  with pytest.raises(DataError, match="file_scheme"):
    check("I-A I-A O I-B")
  assert check("I-A I-A O I-B", file_scheme="iob1") == [tags("B-A I-A O B-B")]
  # A sentence with an unknown tag, which may be left out, decides nothing.
  convert = bio.tag_converter([tags("I-A B-A"), tags("B-A X|B-Y")], "f.conll")
  assert convert(tags("I-A B-A"), (1, 2)) == tags("B-A B-A")
  with pytest.raises(DataError, match=r"f.conll:5: .X.B-Y. .several tags"):
    convert(tags("B-A X|B-Y"), (4, 5))


def test_all_tags_come_sorted_after_o():
  assert bio.all_tags({"b", "a-c"}, "bio") == [
    "O",
    *tags("B-a-c B-b I-a-c I-b"),
  ]
  assert bio.all_tags({"x"}, "bioes") == ["O", *tags("B-x E-x I-x S-x")]


def random_tags(rng, prefixes, length):
  return [
    "O" if rng.random() < 0.3 else f"{rng.choice(prefixes)}-{rng.choice('AB')}"
    for _ in range(length)
  ]


@pytest.mark.parametrize("prefixes", ["BI", "BIES"])
def test_entities_equal_seqevals(prefixes):
  rng = random.Random(11)
  for _ in range(500):
    sentence = random_tags(rng, prefixes, rng.randrange(1, 12))
    theirs = sequence_labeling.get_entities(sentence)
    assert bio.find_entities(sentence) == [
      Entity(entity_type, begin, end + 1) for entity_type, begin, end in theirs
    ]


@pytest.mark.parametrize(
  ("prefixes", "scheme", "theirs"),
  [("BI", "bio", IOB2), ("BIES", "bioes", IOBES)],
)
def test_strict_entities_equal_seqevals(prefixes, scheme, theirs):
  rng = random.Random(12)
  for _ in range(150):
    lengths = [rng.randrange(1, 9) for _ in range(7)]
    gold = [random_tags(rng, prefixes, n) for n in lengths]
    found = [
      [t if rng.random() < 0.7 else rng.choice(["O", "B-A"]) for t in sentence]
      for sentence in gold
    ]
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      _, _, _, truth = precision_recall_fscore_support(
        gold, gold, average="micro", scheme=theirs
      )
      precision, recall, _, _ = precision_recall_fscore_support(
        gold, found, average="micro", scheme=theirs
      )
    a = [set(bio.find_strict_entities(t, scheme)) for t in gold]
    b = [set(bio.find_strict_entities(t, scheme)) for t in found]
    correct = sum(len(x & y) for x, y in zip(a, b, strict=True))
    count = sum(map(len, a))
    assert truth == count
    if count and sum(map(len, b)):
      assert correct / count == pytest.approx(recall)
      assert correct / sum(map(len, b)) == pytest.approx(precision)
