"""Measures how similar the vectors of each layer are, and why.

The measures of a layer are its anisotropy and the rogue dimensions that cause
it; and the anisotropy and the agreement with human similarity judgements after
these dimensions are removed or all dimensions are standardised (Timkey & van
Schijndel 2021; Jurafsky & Martin, section 11.3.2).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskedlm.core.errors import DataError
from maskedlm.data import hashing
from maskedlm.data.labelled.formats import glue, texts
from maskedlm.data.labelled.formats.texts import Example
from maskedlm.data.labelled.text_lines import Text
from maskedlm.finetune.common import label_metrics
from maskedlm.finetune.common.labels import Gold
from maskedlm.inference.vectors import (
  similarity,
  standardise,
  vectors,
  word_frequencies,
)
from maskedlm.inference.vectors.standardise import Moments, Standardiser

NUM_ROGUE = 3  # Dimensions of a layer that are listed and removed.
PAIRS_AT_ONCE = 256  # Held in memory.
GOLD = Gold("label", "a score")
Treatment = Callable[[np.ndarray], np.ndarray]  # [n, D] -> [n, D or less].


class VectorSample(NamedTuple):
  """Vectors of a corpus, in N + 1 layers."""

  x: np.ndarray  # [n, N + 1, D] float32: randomly drawn units.
  moments: Moments  # Those of all units, drawn or not.


class LayerIsotropy(NamedTuple):
  """The measures of a layer; keys are the names of `make_treatments`."""

  layer: int  # 0 = the embeddings.
  anisotropy: Mapping[str, float]  # By treatment.
  rogue: Sequence[tuple[int, float]]  # (dimension, share of anisotropy).
  spearman: Mapping[str, float]  # By treatment, within -1..1; {} without pairs.
  frequency: Mapping[str, float] = {}


def sample_vectors(
  model: vectors.TextEncoder,
  texts: Iterable[Text | str],
  *,
  unit: str = "word",
  count: int = 10_000,
  seed: int = 0,
  progress: Callable[[int], None] = lambda count: None,
) -> VectorSample:
  """Returns the vectors of `count` units, drawn uniformly from the texts.

  Args:
    texts: read once.
    unit: token | word | sentence; pooled by the mean.
    count: the number of units; all of them if there are fewer.
    progress: called with the number of units seen so far.

  Raises:
    DataError: there are fewer than two units.
  """
  options = all_layers(model, unit)
  moments, kept, keys, seen = None, [], [], 0
  for part in vectors.embed(model, texts, options):
    moments = standardise.update_moments(moments, part.values)
    index = np.arange(seen, seen + len(part.values))
    kept.append(part.values)
    keys.append(hashing.uniform(seed, "sample", index))
    seen += len(index)
    # The units with the smallest random keys are a uniform sample.
    x, key = np.concatenate(kept), np.concatenate(keys)
    least = np.sort(np.argsort(key, kind="stable")[:count])
    kept, keys = [x[least]], [key[least]]
    progress(seen)
  if moments is None or seen < 2:
    raise DataError(
      f"the input has {seen} {unit}s; expected two or more to compare."
    )
  return VectorSample(kept[0], moments)


def all_layers(model: vectors.TextEncoder, unit: str) -> vectors.VectorOptions:
  """Returns the options for vectors [n, N + 1, D] of every layer."""
  layers = tuple(range(model.cfg.num_layers + 1))
  return vectors.VectorOptions(unit=unit, layers=layers, combine="stack")


def make_treatments(
  drawn: VectorSample, layer: int, rogue: Sequence[int]
) -> dict[str, Treatment]:
  """Returns {name: function from a layer's vectors to treated ones}.

  Standardisation uses the moments in `drawn`; `rogue` are dimensions to drop.
  """
  fitted = standardise.make_standardiser(drawn.moments, {})
  of_layer = Standardiser(fitted.mean[layer], fitted.stddev[layer], {})
  return {
    "as is": lambda x: x,
    "without rogue": lambda x: np.delete(x, rogue, axis=-1),
    "standardised": lambda x: standardise.apply_standardiser(of_layer, x),
  }


def measure_layers(drawn: VectorSample) -> list[LayerIsotropy]:
  """Returns the measures of each layer, without correlations."""
  layers = []
  for n in range(drawn.x.shape[1]):
    x = drawn.x[:, n]
    rogue = similarity.rogue_dimensions(x, NUM_ROGUE)
    treatments = make_treatments(drawn, n, [i for i, _ in rogue])
    anisotropy = {
      name: similarity.anisotropy(f(x)) for name, f in treatments.items()
    }
    layers.append(LayerIsotropy(n, anisotropy, rogue, {}))
  return layers


def correlate_with_scores(
  model: vectors.TextEncoder,
  pairs: Sequence[Example],
  drawn: VectorSample,
  layers: Sequence[LayerIsotropy],
  *,
  counts: Mapping[str, int],
) -> list[LayerIsotropy]:
  """Returns the layers with Spearman's correlation of cosines and scores.

  `counts` are those of words in a corpus (word_frequencies.py), from which the
  frequency effect is computed.

  A sentence's vector is the mean of its tokens'. Sentence vectors are
  standardised with the mean and deviation of the token or word vectors in
  `drawn`, as an affine map may be applied before or after the mean.
  """
  treatments = [
    make_treatments(
      drawn, layer.layer, [dimension for dimension, _ in layer.rogue]
    )
    for layer in layers
  ]
  cosines: list[dict[str, list[np.ndarray]]] = [
    {name: [] for name in of_layer} for of_layer in treatments
  ]
  options = all_layers(model, "sentence")
  for begin in range(0, len(pairs), PAIRS_AT_ONCE):
    chunk = pairs[begin : begin + PAIRS_AT_ONCE]
    sentences = [text for p in chunk for text in (p.text, p.text_b or "")]
    x = vectors.collect(vectors.embed(model, sentences, options)).values
    for n, of_layer in enumerate(treatments):
      for name, f in of_layer.items():
        y = f(x[:, n])
        cosines[n][name].append(similarity.cosine(y[::2], y[1::2]))
  gold = GOLD.of(pairs)
  frequent = word_frequencies.log_frequencies(
    [f"{pair.text} {pair.text_b}" for pair in pairs], counts
  )
  correlated = []
  for layer, parts in zip(layers, cosines, strict=True):
    by_treatment = {name: np.concatenate(x) for name, x in parts.items()}
    correlated.append(
      layer._replace(
        spearman={
          name: label_metrics.evaluate_scores(gold, x.tolist())["spearman"]
          for name, x in by_treatment.items()
        },
        frequency={
          name: word_frequencies.frequency_effect(x, gold, frequent)
          for name, x in by_treatment.items()
        },
      )
    )
  return correlated


def read_pairs(path: str) -> list[Example]:
  """Reads the sentence pairs of STS-B and their scores, in GLUE's layout.

  Raises:
    DataError: the file has another format, or a score is not a number.
  """
  examples = texts.read_examples(str(path), glue.LAYOUTS["stsb"])
  GOLD.of(examples)  # All have one.
  return examples
