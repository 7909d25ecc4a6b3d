"""Makes pairs in WiC's format of a text with senses, such as SemCor.

  python benchmarks/wic_pairs.py --data semcor.tsv --out wic
  maskedlm vectors similarity --checkpoint runs/x --dev wic/dev.data.txt \
    --wic wic/test.data.txt --standardise fitted.npz

As in WiC (Pilehvar & Camacho-Collados 2019, section 2): a noun or verb in two
sentences, as many pairs of the same sense as of different ones, and no sentence
twice. Here each word has one pair of either kind, so that the word alone says
nothing; senses are not merged, and both sentences are of the corpus. dev and
test share no document.
"""

import argparse
import itertools
import pathlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from maskedlm.inference.word_senses import data

POS = {"NOUN": "N", "VERB": "V"}
MOST_PLACES = 50  # Of a word, among which its pairs are looked for.
MOST_WORDS = 40  # Of a sentence.
DEV_SHARE = 0.3  # Of the documents.


class Place(NamedTuple):
  """A word with a sense in its sentence."""

  sentence: str  # Words with a space between them.
  index: int  # The word's, among the parts between spaces.
  sense: str


def find_places(
  sentences: Iterable[data.Sentence],
) -> dict[tuple[str, str], list[Place]]:
  """Returns {(lemma, part of speech): its places}."""
  places: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
  for sentence in sentences:
    text = " ".join(sentence.words)
    if len(text.split(" ")) > MOST_WORDS or "\t" in text:
      continue
    for target in sentence.targets:
      word = sentence.words[target.word]
      if len(target.senses) == 1 and target.pos in POS and " " not in word:
        before = " ".join([*sentence.words[: target.word], ""])
        place = Place(text, before.count(" "), target.senses[0])
        places[target.lemma, target.pos].append(place)
  return places


def choose_pairs(
  places: dict[tuple[str, str], list[Place]], rng: np.random.Generator
) -> Iterator[tuple[tuple[str, str], Place, Place]]:
  """Yields (word, a, b): of each word a pair of one sense and one of two."""
  used: set[str] = set()
  for word in sorted(places):
    own = [places[word][i] for i in rng.permutation(len(places[word]))]
    found: list[tuple[Place, Place]] = []
    for same in (True, False):
      taken = used.union(each.sentence for pair in found for each in pair)
      pairs = itertools.combinations(
        [each for each in own[:MOST_PLACES] if each.sentence not in taken], 2
      )
      found += itertools.islice(
        (
          (a, b)
          for a, b in pairs
          if (a.sense == b.sense) == same and a.sentence != b.sentence
        ),
        1,
      )
    if len(found) == 2:
      used.update(each.sentence for pair in found for each in pair)
      yield from ((word, *pair) for pair in found)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--data", required=True, help="SemCor, or NAME.data.xml")
  parser.add_argument("--out", type=pathlib.Path, required=True)
  args = parser.parse_args()
  args.out.mkdir(parents=True, exist_ok=True)
  sentences = list(data.read_sentences(args.data))
  rng = np.random.default_rng(0)
  for name in ("dev", "test"):
    places = find_places(
      each
      for each in sentences
      if data.is_held_out(each.document, DEV_SHARE) == (name == "dev")
    )
    pairs = list(choose_pairs(places, rng))
    pairs = [pairs[i] for i in rng.permutation(len(pairs))]
    lines = [
      f"{lemma}\t{POS[pos]}\t{a.index}-{b.index}\t{a.sentence}\t{b.sentence}\n"
      for (lemma, pos), a, b in pairs
    ]
    keys = ["T\n" if a.sense == b.sense else "F\n" for _, a, b in pairs]
    (args.out / f"{name}.data.txt").write_text("".join(lines), "utf-8")
    (args.out / f"{name}.gold.txt").write_text("".join(keys), "utf-8")
    print(f"{name}: {len(pairs):,} pairs of {len(places):,} words")


if __name__ == "__main__":
  main()
