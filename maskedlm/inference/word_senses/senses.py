"""Word senses by the nearest neighbour among sense embeddings.

Jurafsky & Martin, 11.3.1, after Melamud et al. (2016), Peters et al. (2018)
and Loureiro & Jorge (2019): the embedding of a sense is the mean of the
vectors of the words labelled with it (eq. 11.8); a word in context gets that of
its lemma's senses whose embedding has the highest cosine with it (eq. 11.9).
Read top-down: vectors of targets -> training -> ranking -> the file.
"""

import json
import pathlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError
from maskedlm.data.labelled.text_lines import Text, of_words
from maskedlm.inference.vectors import similarity, vectors
from maskedlm.inference.word_senses.data import Sentence, Target
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.runtime import output_files

LAST = 4  # Layers whose sum is a word's vector, if the encoder has as many.
_AROUND = 6  # Words of an example on either side.

Entry = tuple[str, str]  # (lemma, part of speech).


class Senses(NamedTuple):
  """What `train` has learned, of s senses; v of them have a vector."""

  names: tuple[str, ...]  # [s]; those with a vector come first.
  vectors: np.ndarray  # [v, C] float32: equation 11.8.
  examples: tuple[str, ...]  # [v]: of each, where it was seen first.
  # The senses of each, as places in names, with how often they were seen; the
  # most frequent first, of equals the one that came first. A sense that was
  # never seen (count 0) is the first sense of an entry that wasn't either.
  candidates: Mapping[Entry, Mapping[int, int]]
  forms: Mapping[str, tuple[Entry, ...]]  # Lower-case words -> what they were.
  about: Mapping[str, Any]  # layers, combine, encoder, and what a caller adds.


class Answer(NamedTuple):
  """The senses a target may have, the best first."""

  senses: tuple[int, ...]  # Places in Senses.names; () = nothing is known.
  scores: tuple[float, ...]  # Cosines; () = no vector, so the first sense.
  most_frequent: int  # The most frequent sense in training, or -1.


def options(
  cfg: EncoderConfig, layers: tuple[int, ...] = (), combine: str = "sum"
) -> vectors.Options:
  """Which vectors: of words; by default the sum of the last four layers."""
  last = tuple(range(-1, -1 - min(LAST, cfg.num_layers), -1))
  return vectors.Options("word", "mean", layers or last, combine)


def embed(
  model: vectors.Model,
  sentences: Iterable[Sentence],
  options: vectors.Options,
  *,
  batch_tokens: int = vectors.BATCH_TOKENS,
) -> Iterator[tuple[list[tuple[Sentence, Target]], np.ndarray]]:
  """Some n targets at a time, in order, and their vectors [n, C]."""
  # For each word that was read, and has no vector yet: what it is.
  waiting: deque[tuple[Sentence, Target] | None] = deque()

  def texts() -> Iterator[Text]:
    for sentence in sentences:
      if sentence.targets:
        of_word = {t.word: (sentence, t) for t in sentence.targets}
        waiting.extend(of_word.get(i) for i in range(len(sentence.words)))
        yield of_words(sentence.words)

  # Every given word is a unit, so words and vectors go in step.
  for made in vectors.embed(model, texts(), options, batch_tokens=batch_tokens):
    words = [waiting.popleft() for _ in range(len(made.values))]
    which = [i for i, word in enumerate(words) if word]
    if which:
      yield [words[i] for i in which], made.values[which]


def train(
  model: vectors.Model,
  sentences: Iterable[Sentence],
  options: vectors.Options,
  *,
  first_senses: Mapping[Entry, str] | None = None,
  batch_tokens: int = vectors.BATCH_TOKENS,
  progress: Callable[[int], None] = lambda count: None,
) -> Senses:
  """Sense embeddings, equation 11.8; memory grows with the senses alone.

  A target of several senses counts for each of them.

  Args:
    model: whose vectors.
    sentences: with the senses of their targets.
    options: from `options`.
    first_senses: what to answer for entries that were never seen.
    batch_tokens: see vectors.embed.
    progress: is told the number of targets so far.

  Raises:
    ConfigError: no target at all; see vectors.find_layers.
  """
  place: dict[str, int] = {}  # Of a sense.
  sums: list[np.ndarray] = []
  counts, examples = Counter(), []
  candidates: defaultdict[Entry, Counter] = defaultdict(Counter)
  forms: defaultdict[str, dict[Entry, None]] = defaultdict(dict)
  total = 0
  for targets, values in embed(
    model, sentences, options, batch_tokens=batch_tokens
  ):
    for (sentence, target), x in zip(targets, np.float64(values), strict=True):
      entry = target.lemma, target.pos
      forms[sentence.words[target.word].lower()][entry] = None
      for sense in target.senses:
        i = place.setdefault(sense, len(place))
        if i == len(sums):
          sums.append(np.zeros_like(x))
          examples.append(show(sentence, target))
        sums[i] += x
        counts[i] += 1
        candidates[entry][i] += 1
    total += len(targets)
    progress(total)
  if not total:
    raise ConfigError(
      "there is no word with a sense to learn from: are all documents held out?"
    )
  means = [x / counts[i] for i, x in enumerate(sums)]
  ordered = {entry: dict(c.most_common()) for entry, c in candidates.items()}
  for entry, sense in (first_senses or {}).items():
    if entry not in ordered:
      ordered[entry] = {place.setdefault(sense, len(place)): 0}
  about = {
    "layers": list(vectors.find_layers(options, model.cfg)),
    "combine": options.combine,
    "encoder": vectors.fingerprint(model),
    "targets": total,
  }
  return Senses(
    names=tuple(place),
    vectors=np.float32(means),
    examples=tuple(examples),
    candidates=ordered,
    forms={form: tuple(entries) for form, entries in forms.items()},
    about=about,
  )


def show(sentence: Sentence, target: Target) -> str:
  """A few words around a target, which stands between asterisks."""
  words, i = sentence.words, target.word
  begin, end = max(i - _AROUND, 0), i + _AROUND + 1
  before = ["..."] * (begin > 0) + list(words[begin:i])
  after = list(words[i + 1 : end]) + ["..."] * (end < len(words))
  return " ".join([*before, f"*{words[i]}*", *after])


def ranker(
  senses: Senses,
) -> Callable[[Sentence, Target, np.ndarray], Answer]:
  """The function from a target and its vector [C] to the answer, eq. 11.9.

  Of equal cosines the more frequent sense comes first. Where no candidate has a
  vector, the answer is the first sense, if it is known.
  """
  directions = similarity.unit_length(senses.vectors)

  def rank(sentence: Sentence, target: Target, x: np.ndarray) -> Answer:
    found = find(senses, target, sentence.words[target.word])
    if not found:
      return Answer((), (), -1)
    seen = [i for i in found if i < len(directions)]
    if not seen:
      return Answer(tuple(found), (), found[0])
    cosines = np.einsum("sC,C->s", directions[seen], similarity.unit_length(x))
    order = np.argsort(-cosines, kind="stable")
    return Answer(
      tuple(seen[i] for i in order), tuple(cosines[order].tolist()), found[0]
    )

  return rank


def find(senses: Senses, target: Target, form: str) -> list[int]:
  """The candidates of a target, the most frequent first; [] if unknown.

  They are those of its lemma and part of speech. Without the part of speech
  they are those of the lemma; without both, of what the word was in training.
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
  counts = Counter()
  for entry in entries:
    counts.update(table.get(entry, {}))
  return [i for i, _ in counts.most_common()]


def check(senses: Senses, model: vectors.Model, *, path: str) -> None:
  """That the senses of the file `path` are of this encoder.

  Raises:
    ConfigError: they are another's.
  """
  own, theirs = vectors.fingerprint(model), senses.about["encoder"]
  if own != theirs:
    raise ConfigError(
      f"{path} has the senses of another encoder ({theirs[:12]}, of "
      f"{senses.about.get('checkpoint', 'unknown')}; this is {own[:12]}): give "
      "that one by --checkpoint, or run `maskedlm wsd train` with this one."
    )


def save(path: str | pathlib.Path, senses: Senses) -> None:
  """Writes an .npz: `vectors`, and all else as JSON; all of it or nothing."""
  about = {
    "names": senses.names,
    "examples": senses.examples,
    "candidates": [
      [*entry, list(counts), list(counts.values())]
      for entry, counts in senses.candidates.items()
    ],
    "forms": senses.forms,
    "about": dict(senses.about),
  }
  stored = json.dumps(about, ensure_ascii=False).encode()
  stored = np.frombuffer(stored, np.uint8)
  output_files.save_npz(path, vectors=senses.vectors, senses=stored)


def load(path: str | pathlib.Path) -> Senses:
  """Reads what `save` wrote.

  Raises:
    ConfigError: no such file, or another kind of file.
  """
  with output_files.open_npz(path, made_by="maskedlm wsd train") as file:
    stored = json.loads(file["senses"].tobytes())
    return Senses(
      names=tuple(stored["names"]),
      vectors=file["vectors"],
      examples=tuple(stored["examples"]),
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
