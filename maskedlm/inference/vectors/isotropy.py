"""How alike the vectors of each layer are, why, and what can be done about it.

Of every layer: the anisotropy, the rogue dimensions that it comes from, and
what the anisotropy and the agreement with human judgements of similarity are
when those dimensions are left out, or all are standardised. After Timkey & van
Schijndel 2021, and Jurafsky & Martin, section 11.3.2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data import hashing
from maskedlm.data.labelled.text_lines import Text
from maskedlm.finetune.classification import files, glue
from maskedlm.finetune.common import label_metrics
from maskedlm.inference.vectors import similarity, standardise, vectors
from maskedlm.inference.vectors.standardise import Fitted, Moments

ROGUE = 3  # Dimensions of a layer that are told, and left out.
PAIRS = 256  # That are held at once.
Treatment = Callable[[np.ndarray], np.ndarray]  # [n, D] -> [n, D or less].


class Sample(NamedTuple):
  """Vectors of a corpus, in N + 1 layers."""

  x: np.ndarray  # [n, N + 1, D]: of some units, drawn at random.
  moments: Moments  # Of all of them.


class Pair(NamedTuple):
  """Two sentences, and how alike people find them."""

  a: str
  b: str
  score: float


class Layer(NamedTuple):
  """What is said of a layer; a treatment's name is that in `treatments`."""

  layer: int  # 0 = the embeddings.
  anisotropy: Mapping[str, float]  # By treatment.
  rogue: Sequence[tuple[int, float]]  # (dimension, share of anisotropy).
  spearman: Mapping[str, float]  # By treatment, within -1..1; {} without pairs.


def sample(
  model: vectors.Model,
  texts: Iterable[Text | str],
  *,
  unit: str = "word",
  count: int = 10_000,
  seed: int = 0,
  progress: Callable[[int], None] = lambda count: None,
  batch_tokens: int = vectors.BATCH_TOKENS,
) -> Sample:
  """Draws `count` units of the texts, each as likely as any other.

  Args:
    model: an encoder.
    texts: read once, whatever their number.
    unit: token | word | sentence; pooled by mean.
    count: how many, if there are so many.
    seed: of the choice.
    progress: called with how many there were so far.
    batch_tokens: see vectors.embed.

  Raises:
    DataError: fewer than two units.
  """
  options = all_layers(model, unit)
  moments, kept, keys, seen = None, [], [], 0
  for made in vectors.embed(model, texts, options, batch_tokens=batch_tokens):
    moments = standardise.add(moments, made.values)
    index = np.arange(seen, seen + len(made.values))
    kept.append(made.values)
    keys.append(hashing.uniform(seed, "sample", index))
    seen += len(index)
    # The units of the least keys, so far, are a fair draw.
    x, key = np.concatenate(kept), np.concatenate(keys)
    least = np.sort(np.argsort(key, kind="stable")[:count])
    kept, keys = [x[least]], [key[least]]
    progress(seen)
  if seen < 2:
    raise DataError(
      f"the input has {seen} {unit}s; expected two or more, to be compared."
    )
  return Sample(kept[0], moments)


def all_layers(model: vectors.Model, unit: str) -> vectors.Options:
  """Vectors [n, N + 1, D] of every layer."""
  layers = tuple(range(model.cfg.num_layers + 1))
  return vectors.Options(unit=unit, layers=layers, combine="stack")


def treatments(
  drawn: Sample, layer: int, rogue: Sequence[int]
) -> dict[str, Treatment]:
  """What is tried on a layer's vectors, by name; what is fitted is to drawn."""
  fitted = standardise.finish(drawn.moments, {})
  of_layer = Fitted(fitted.mean[layer], fitted.stddev[layer], {})
  return {
    "as is": lambda x: x,
    "without rogue": lambda x: similarity.without(x, rogue),
    "standardised": lambda x: standardise.apply(of_layer, x),
  }


def measure(drawn: Sample) -> list[Layer]:
  """What there is to say of each layer, without pairs."""
  layers = []
  for n in range(drawn.x.shape[1]):
    x = drawn.x[:, n]
    rogue = similarity.rogue(x, ROGUE)
    tried = treatments(drawn, n, [dimension for dimension, _ in rogue])
    after = {name: similarity.anisotropy(f(x)) for name, f in tried.items()}
    layers.append(Layer(n, after, rogue, {}))
  return layers


def judge(
  model: vectors.Model,
  pairs: Sequence[Pair],
  drawn: Sample,
  layers: Sequence[Layer],
  *,
  batch_tokens: int = vectors.BATCH_TOKENS,
) -> list[Layer]:
  """The layers with Spearman's correlation of cosine and score.

  Of the vectors of sentences, which are the means of their tokens'. They are
  standardised with the mean and the deviation of drawn: of a linear map it is
  all one whether it comes before the mean or after.
  """
  tried = [
    treatments(drawn, layer.layer, [dimension for dimension, _ in layer.rogue])
    for layer in layers
  ]
  cosines = [{name: [] for name in of_layer} for of_layer in tried]
  options = all_layers(model, "sentence")
  for begin in range(0, len(pairs), PAIRS):
    texts = [t for p in pairs[begin : begin + PAIRS] for t in (p.a, p.b)]
    made = vectors.embed(model, texts, options, batch_tokens=batch_tokens)
    x = vectors.collect(made).values
    for n, of_layer in enumerate(tried):
      for name, f in of_layer.items():
        y = f(x[:, n])
        cosines[n][name].append(similarity.cosine(y[::2], y[1::2]))
  gold = [pair.score for pair in pairs]
  return [
    layer._replace(
      spearman={
        name: label_metrics.scores(gold, np.concatenate(found))["spearman"]
        for name, found in of_layer.items()
      }
    )
    for layer, of_layer in zip(layers, cosines, strict=True)
  ]


def read_pairs(path: str) -> list[Pair]:
  """The sentence pairs of STS-B, in GLUE's layout.

  Raises:
    DataError: not such a file; a score that is no number, with its line.
  """
  examples = files.read(str(path), glue.layout("stsb"))
  return [Pair(e.text, e.text_b, files.label_of(e)) for e in examples]
