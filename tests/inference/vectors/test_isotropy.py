"""Measures of layers against plain loops over the same vectors."""

import itertools
import json

import numpy as np
import pytest

from helpers import finetune_runs
from maskedlm.data.labelled.formats.texts import Example
from maskedlm.inference.vectors import (
  isotropy,
  similarity,
  standardise,
  vectors,
)

PAIRS = [
  Example("the cat sat", "the dog sat", 4.0),
  Example("a good film", "a bad end", 2.5),
  Example("where is the book", "it is on the table", 3.0),
  Example("new york", "", 0.5),
]


COUNTS = {"the": 5, "cat": 2, "good": 1}


@pytest.fixture(scope="module")
def drawn(model):
  return isotropy.sample_vectors(
    model, finetune_runs.TEXTS, unit="token", count=50
  )


def every_vector(model, unit):
  options = isotropy.all_layers(model, unit)
  return vectors.collect(
    vectors.embed(model, finetune_runs.TEXTS, options)
  ).values


def test_a_uniform_reproducible_sample(model, drawn):
  x = every_vector(model, "token")
  assert drawn.x.shape == (50, 3, 24) and len(x) > 200
  again = isotropy.sample_vectors(
    model._replace(batch_tokens=2),
    finetune_runs.TEXTS,
    unit="token",
    count=50,
  )
  np.testing.assert_allclose(again.x, drawn.x, atol=1e-5)
  other = isotropy.sample_vectors(
    model, finetune_runs.TEXTS, unit="token", count=50, seed=1
  )
  assert np.abs(other.x - drawn.x).max() > 0.1
  # The order is the corpus's, and each vector is one of the corpus.
  nearest = np.abs(x[None, :, 2] - drawn.x[:, None, 2]).max(-1).min(1)
  assert nearest.max() < 1e-5
  few = isotropy.sample_vectors(
    model, finetune_runs.TEXTS[:1], unit="token", count=1000
  )
  assert len(few.x) == few.moments.count < 100


def test_moments_cover_the_whole_corpus(model, drawn):
  x = every_vector(model, "token")
  fitted = standardise.make_standardiser(drawn.moments, {})
  assert drawn.moments.count == len(x)
  np.testing.assert_allclose(fitted.mean, x.mean(0), atol=1e-5)
  np.testing.assert_allclose(fitted.stddev, x.std(0), atol=1e-5)


def test_each_layer(model, drawn):
  x = np.float64(every_vector(model, "token"))
  mean, stddev = x.mean(0), x.std(0)
  layers = isotropy.measure_layers(drawn)
  assert [layer.layer for layer in layers] == [0, 1, 2]
  for n, layer in enumerate(layers):
    own = np.float64(drawn.x[:, n])
    rogue = [dimension for dimension, _ in layer.rogue]
    kept = [i for i in range(24) if i not in rogue]
    after = {
      "as is": own,
      "without rogue": own[:, kept],
      "standardised": (own - mean[n]) / stddev[n],
    }
    for name, values in after.items():
      pairs = itertools.combinations(values, 2)
      cosines = [u @ v / np.sqrt((u @ u) * (v @ v)) for u, v in pairs]
      assert layer.anisotropy[name] == pytest.approx(np.mean(cosines), abs=1e-4)
    assert layer.rogue == similarity.rogue_dimensions(own, 3)
    assert layer.spearman == {}


def correlated(model, drawn, layers):
  made = isotropy.correlate_with_scores(
    model, PAIRS, drawn, layers, counts=COUNTS
  )
  # Of four pairs it may be NaN; it is tested in test_word_frequencies.py.
  assert all(set(layer.frequency) == set(layer.spearman) for layer in made)
  return [layer._replace(frequency={}) for layer in made]


def test_spearman_of_pairs(model, drawn, monkeypatch):
  layers = isotropy.measure_layers(drawn)
  once = correlated(model, drawn, layers)
  monkeypatch.setattr(isotropy, "PAIRS_AT_ONCE", 3)
  assert correlated(model, drawn, layers) == once
  gold = np.argsort(np.argsort([pair.label for pair in PAIRS]))
  fitted = standardise.make_standardiser(drawn.moments, {})
  for layer in once:
    options = vectors.VectorOptions(unit="sentence", layers=(layer.layer,))
    a, b = (
      vectors.collect(vectors.embed(model, texts, options)).values
      for texts in ([p.text for p in PAIRS], [p.text_b for p in PAIRS])
    )
    dims = [dimension for dimension, _ in layer.rogue]
    mean, stddev = fitted.mean[layer.layer], fitted.stddev[layer.layer]
    for name, change in {
      "as is": lambda x: x,
      "without rogue": lambda x, dims=dims: np.delete(x, dims, 1),
      "standardised": lambda x, m=mean, s=stddev: (x - m) / s,
    }.items():
      cosines = similarity.cosine(change(a), change(b))
      ranks = np.argsort(np.argsort(cosines))
      expected = np.corrcoef(gold, ranks)[0, 1]
      assert layer.spearman[name] == pytest.approx(expected)


HEADER = "index\tsentence1\tsentence2\tscore\n"


def test_read_pairs(tmp_path):
  path = tmp_path / "dev.tsv"
  path.write_text(HEADER + '0\tA "b.\tC d.\t3.800\n1\tE\tF\t0\n')
  found = [x[:3] for x in isotropy.read_pairs(path)]
  assert found == [('A "b.', "C d.", 3.8), ("E", "F", 0.0)]


def test_the_verb(workdir, tmp_path, verb):
  text, sts = tmp_path / "text.txt", tmp_path / "dev.tsv"
  text.write_text("\n".join(finetune_runs.TEXTS))
  rows = [
    f"{i}\t{p.text}\t{p.text_b or '-'}\t{p.label}" for i, p in enumerate(PAIRS)
  ]
  sts.write_text(HEADER + "\n".join(rows) + "\n")
  table = tmp_path / "table.json"
  command = ["isotropy", f"--checkpoint={workdir}", f"--input={text}"]
  more = [f"--sts={sts}", f"--out={table}", "--sample=40"]
  lines = verb(*command, *more).out.splitlines()
  words = sum(len(text.split()) for text in finetune_runs.TEXTS)
  first = f"40 of {words} words of 12 texts; Spearman of 4 pairs of {sts}"
  assert lines[0] == first
  layers = json.loads(table.read_text())
  effect, lines = lines[6:], lines[:5]
  assert set(layers[2]["frequency"]) == set(layers[2]["spearman"])
  assert effect[-1].split()[0] == "2" and len(effect) == 5
  assert len(lines) == 2 + 3 == 2 + len(layers)
  values = [*layers[2]["anisotropy"].values(), *layers[2]["spearman"].values()]
  assert lines[-1].split()[:7] == ["2", *(f"{x:z.3f}" for x in values)]
  dimension, share = layers[2]["rogue"][0]
  assert f"  {dimension} ({share:.1%}), " in lines[-1]
  assert json.loads(verb(*command, *more, "--json").out) == layers
