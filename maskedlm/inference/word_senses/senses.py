"""Disambiguates words by the nearest sense embedding.

Jurafsky & Martin, 11.3.1, after Melamud et al. (2016), Peters et al. (2018)
and Loureiro & Jorge (2019): the embedding of a sense is the mean of the
vectors of the words labelled with it (eq. 11.8); a word in context gets the
sense of its lemma whose embedding has the highest cosine with its vector (eq.
11.9). Read top-down: vectors of targets -> training -> ranking -> the file.
"""

import itertools
import json
import pathlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.core.parse_json import parse_json
from maskedlm.data.labelled.text_lines import Text, text_of_words
from maskedlm.inference.vectors import similarity, vectors
from maskedlm.inference.vectors.standardise import (
  Standardiser,
  apply_standardiser,
)
from maskedlm.inference.word_senses.data import Sentence, TargetWord
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files

NUM_LAST_LAYERS = 4  # Summed by default, if the encoder has that many.
_AROUND = 6  # Words of context on either side in an example.

Entry = tuple[str, str]  # (lemma, part of speech).


class Senses(NamedTuple):
  """Sense embeddings from `train_senses`: s senses, v of them with a vector."""

  names: tuple[str, ...]  # [s]; senses with a vector come first.
  vectors: np.ndarray  # [v, C] float32: equation 11.8.
  examples: tuple[str, ...]  # [v]: the first occurrence of each.
  # Entry -> {index in names: count}, the most frequent first, ties by first
  # occurrence. A count of 0 means the first sense of an entry that never
  # occurred.
  candidates: Mapping[Entry, Mapping[int, int]]
  forms: Mapping[str, tuple[Entry, ...]]  # Lower-case words -> their entries.
  about: Mapping[str, Any]  # layers, combine, encoder, ...; callers add more.


class Answer(NamedTuple):
  """The candidate senses of a target, ranked."""

  senses: tuple[int, ...]  # Indices in Senses.names, best first; () = unknown.
  scores: tuple[float, ...]  # Cosines; () if no candidate has a vector.
  most_frequent: int  # The most frequent sense in training, or -1.


def word_vector_options(
  cfg: EncoderConfig, layers: tuple[int, ...] = (), combine: str = "sum"
) -> vectors.VectorOptions:
  """Returns options for word vectors; by default sums the last four layers."""
  count = min(NUM_LAST_LAYERS, max(cfg.num_layers, 1))
  last = tuple(range(-1, -1 - count, -1))
  return vectors.VectorOptions("word", "mean", layers or last, combine)


def embed_targets(
  model: vectors.TextEncoder,
  sentences: Iterable[Sentence],
  options: vectors.VectorOptions,
) -> Iterator[tuple[list[tuple[Sentence, TargetWord]], np.ndarray]]:
  """Yields n targets at a time, in order, with their vectors [n, C] float32."""
  # For each word without a vector so far, its (sentence, target) or None.
  waiting: deque[tuple[Sentence, TargetWord] | None] = deque()

  def texts() -> Iterator[Text]:
    for sentence in sentences:
      if sentence.targets:
        of_word = {t.word: (sentence, t) for t in sentence.targets}
        waiting.extend(of_word.get(i) for i in range(len(sentence.words)))
        yield text_of_words(sentence.words)

  # Every given word is a unit: words and vectors correspond.
  for part in vectors.embed(model, texts(), options):
    words = [waiting.popleft() for _ in range(len(part.values))]
    targets = [word for word in words if word]
    if targets:
      yield targets, part.values[[word is not None for word in words]]


def train_senses(
  model: vectors.TextEncoder,
  sentences: Iterable[Sentence],
  options: vectors.VectorOptions,
  *,
  first_senses: Mapping[Entry, str] | None,
  progress: Callable[[int], None],
) -> Senses:
  """Returns sense embeddings (equation 11.8).

  A target counts for each of its senses, of which it must have some. Memory
  grows only with the number of senses. The options are word_vector_options's;
  first_senses are the answers for entries that never occur; `progress` gets the
  number of targets so far.

  Raises:
    ConfigError: there is no target; see vectors.resolve_layers.
  """
  place: dict[str, int] = {}  # Index of a sense.
  sums: list[np.ndarray] = []
  counts: Counter = Counter()
  examples: list[str] = []
  candidates: defaultdict[Entry, Counter] = defaultdict(Counter)
  forms: defaultdict[str, dict[Entry, None]] = defaultdict(dict)
  total = 0
  for targets, values in embed_targets(model, sentences, options):
    for (sentence, target), x in zip(targets, values, strict=True):
      entry = target.lemma, target.pos
      forms[sentence.words[target.word].lower()][entry] = None
      for sense in target.senses:
        i = place.setdefault(sense, len(place))
        if i == len(sums):
          sums.append(np.zeros_like(x, np.float64))
          examples.append(format_context(sentence, target))
        sums[i] += x
        counts[i] += 1
        candidates[entry][i] += 1
    total += len(targets)
    progress(total)
  if not total:
    raise ConfigError(
      "there is no word with a sense to train on: are all documents held out?"
    )
  means = [x / counts[i] for i, x in enumerate(sums)]
  ordered = {entry: dict(c.most_common()) for entry, c in candidates.items()}
  for entry, sense in (first_senses or {}).items():
    if entry not in ordered:
      ordered[entry] = {place.setdefault(sense, len(place)): 0}
  about = {
    "layers": list(vectors.resolve_layers(options, model.cfg)),
    "combine": options.combine,
    "encoder": vectors.fingerprint(model),
    "targets": total,
  }
  return Senses(
    names=tuple(place),
    vectors=np.array(means, np.float32),
    examples=tuple(examples),
    candidates=ordered,
    forms={form: tuple(entries) for form, entries in forms.items()},
    about=about,
  )


def format_context(sentence: Sentence, target: TargetWord) -> str:
  """Returns a target, between asterisks, with the words around it."""
  words, i = sentence.words, target.word
  begin, end = max(i - _AROUND, 0), i + _AROUND + 1
  before = ["..."] * (begin > 0) + list(words[begin:i])
  after = list(words[i + 1 : end]) + ["..."] * (end < len(words))
  return " ".join([*before, f"*{words[i].strip()}*", *after])


def make_ranker(
  senses: Senses, standardiser: Standardiser | None = None
) -> Callable[[Sentence, TargetWord, np.ndarray], Answer]:
  """Returns a function from a target and its vector [C] to the Answer.

  It ranks by cosine (equation 11.9); ties go to the more frequent sense. If no
  candidate has a vector, the answer is the first sense, if known. With a
  standardiser, the cosine is that of standardised vectors (equation 11.12); the
  mean of standardised vectors is the standardised mean.
  """

  def to_directions(x: np.ndarray) -> np.ndarray:
    return similarity.unit_length(apply_standardiser(standardiser, x))

  directions = to_directions(senses.vectors)

  def rank(sentence: Sentence, target: TargetWord, x: np.ndarray) -> Answer:
    candidates = find_candidates(senses, target, sentence.words[target.word])
    if not candidates:
      return Answer((), (), -1)
    frequent = candidates[0]
    with_vector = [i for i in candidates if i < len(directions)]
    if not with_vector:
      return Answer(tuple(candidates), (), frequent)
    cosines = np.einsum("sC,C->s", directions[with_vector], to_directions(x))
    order = np.argsort(-cosines, kind="stable")
    ranked = tuple(with_vector[i] for i in order)
    return Answer(ranked, tuple(cosines[order].tolist()), frequent)

  return rank


def find_candidates(senses: Senses, target: TargetWord, form: str) -> list[int]:
  """Returns the candidates of a target, most frequent first; [] if unknown.

  They are the senses of its lemma and part of speech; of its lemma, if only the
  part of speech is unknown; or of its form in training, if the lemma is.
  """
  table = senses.candidates
  if target.lemma and target.pos:
    entries = [(target.lemma, target.pos)]
  elif target.lemma:
    entries = [entry for entry in table if entry[0] == target.lemma]
  else:
    entries = list(senses.forms.get(form.lower(), ()))
    entries = entries or [e for e in table if e[0].lower() == form.lower()]
    entries = [e for e in entries if target.pos in ("", e[1])]
  counts: Counter = Counter()
  for entry in entries:
    counts.update(table.get(entry, {}))
  return [i for i, _ in counts.most_common()]


def target_known_words(senses: Senses, sentence: Sentence) -> Sentence:
  """Returns the sentence; if no word is marked, all that have a sense are.

  As lemma and part of speech are unknown, candidates are those of the form.
  """
  if sentence.targets:
    return sentence
  targets = (TargetWord(f"t{i:03d}", i, "", "", ()) for i in itertools.count())
  known = tuple(
    target
    for target, word in zip(targets, sentence.words, strict=False)
    if find_candidates(senses, target, word)
  )
  return sentence._replace(targets=known)


def check_encoder(
  senses: Senses, model: vectors.TextEncoder, *, path: str
) -> None:
  """Checks that the senses in the file `path` come from this encoder.

  Raises:
    ConfigError: they come from another one.
  """
  encoder, other = vectors.fingerprint(model), senses.about["encoder"]
  if encoder != other:
    raise ConfigError(
      f"{path} has senses of another encoder ({other[:12]}, of "
      f"{senses.about.get('checkpoint', 'unknown')}; this is {encoder[:12]}): "
      "set --checkpoint to that one, or run `maskedlm word-senses train` with "
      "this one."
    )


def save_senses(path: str | pathlib.Path, senses: Senses) -> None:
  """Writes an .npz atomically: `vectors`, and everything else as JSON.

  Raises:
    ConfigError, StorageError: the file can't be written.
  """
  fields = {
    "names": senses.names,
    "examples": senses.examples,
    "candidates": [
      [*entry, list(counts), list(counts.values())]
      for entry, counts in senses.candidates.items()
    ],
    "forms": senses.forms,
    "about": dict(senses.about),
  }
  content = json.dumps(fields, ensure_ascii=False).encode()
  stored = np.frombuffer(content, np.uint8)
  output_files.save_npz(path, vectors=senses.vectors, senses=stored)


def load_senses(path: str | pathlib.Path) -> Senses:
  """Loads a file written by `save_senses`.

  Raises:
    ConfigError: the file doesn't exist or has another format.
  """
  with output_files.open_npz(
    path, made_by="maskedlm word-senses train"
  ) as file:
    stored = parse_json(file["senses"].tobytes())
    examples = tuple(stored["examples"])
    return Senses(
      names=tuple(stored["names"]),
      vectors=output_files.array(file, "vectors", "f4", len(examples), -1),
      examples=examples,
      candidates={
        (lemma, pos): dict(zip(places, counts, strict=True))
        for lemma, pos, places, counts in stored["candidates"]
      },
      forms={
        form: tuple(map(tuple, entries))
        for form, entries in stored["forms"].items()
      },
      about=stored["about"],
    )
