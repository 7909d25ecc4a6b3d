"""Vectors against the encoder run by hand, one row at a time."""

import itertools

import numpy as np
import pytest

from helpers import finetune_runs, vector_encoder
from maskedlm.data.labelled import text_lines
from maskedlm.data.labelled.text_lines import Text
from maskedlm.inference.vectors import vectors
from maskedlm.inference.vectors.vectors import VectorOptions, collect, embed

LONG = " ".join(finetune_runs.TEXTS[:7])
WORDS = " ".join(["the cat on a dog in . house is and"] * 6)
TEXTS = [
  "the cat",
  LONG,
  " ",
  "The man's house, said the U.S. company...",
  "dog",
  finetune_runs.TEXTS[3],
]
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def found(model, texts=TEXTS, **options):
  layers = options.pop("layers", (-1,))
  return collect(embed(model, texts, VectorOptions(layers=layers, **options)))


def tokens(model, text):
  return model.tokenizer.encode(text).ids


def of_text(vectors, i):
  return vectors.values[vectors.texts == i]


def test_tokens_equal_the_encoders_outputs(model):
  made = found(model)
  assert made.values.dtype == np.float32
  # " " has no token, so it has no vector.
  assert np.unique(made.texts).tolist() == [0, 1, 2, 3, 4]
  for i, text in enumerate(["the cat", None, *TEXTS[3:]]):
    if text:
      ids = tokens(model, text)
      expected = vector_encoder.by_hand(model, ids)[-1, 1:-1]
      np.testing.assert_allclose(of_text(made, i), expected, **CLOSE)
      assert made.ids[made.texts == i].tolist() == ids.tolist()
      mine = [
        s for s, t in zip(made.sources, made.texts, strict=True) if t == i
      ]
      assert mine == [Text(text)] * len(ids)
      offsets = model.tokenizer.encode(text).offsets
      assert made.offsets[made.texts == i].tolist() == offsets.tolist()


def test_vectors_do_not_depend_on_other_texts(model):
  for unit in ("token", "word", "sentence"):
    together = found(model, unit=unit)
    alone = [found(model, [t], unit=unit) for t in TEXTS if t.strip()]
    if unit == "sentence":  # " " is [CLS] [SEP].
      alone.insert(2, found(model, [" "], unit=unit))
    expected = np.concatenate([made.values for made in alone])
    np.testing.assert_allclose(together.values, expected, **CLOSE)


def test_combined_layers(model):
  layers = (-3, -1, 1)
  text = TEXTS[3]
  x = vector_encoder.by_hand(model, tokens(model, text))[list(layers), 1:-1]
  k, n, D = x.shape
  for combine, expected in {
    "mean": x.mean(0),
    "sum": x.sum(0),
    "concat": x.transpose(1, 0, 2).reshape(n, k * D),
    "stack": x.transpose(1, 0, 2),
  }.items():
    made = found(model, [text], layers=layers, combine=combine)
    np.testing.assert_allclose(made.values, expected, **CLOSE)


def test_words_are_pooled_tokens(model):
  text = TEXTS[3]
  ids = tokens(model, text)
  x = vector_encoder.by_hand(model, ids)[-1, 1:-1]
  made = found(model, [text], unit="word")
  forms = [text[begin:end] for begin, end in made.offsets]
  assert forms == "The man's house , said the U.S company ...".replace(
    "U.S company", "U.S . company"
  ).split(" ")
  offsets = model.tokenizer.encode(text).offsets
  largest = found(model, [text], unit="word", pool="max")
  for word, (begin, end) in enumerate(made.offsets):
    mine = x[(offsets[:, 0] >= begin) & (offsets[:, 1] <= end)]
    np.testing.assert_allclose(made.values[word], mine.mean(0), **CLOSE)
    np.testing.assert_allclose(largest.values[word], mine.max(0), **CLOSE)
  assert np.all(made.ids == -1)


def test_given_words(model):
  words = ["The", "man", "", "house"]
  text = text_lines.text_of_words(words)
  made = found(model, [text], unit="word")
  assert [text.text[b:e] for b, e in made.offsets] == words
  unk = model.tokenizer.special.unk
  ids = [tokens(model, w) if w else [unk] for w in words]
  x = vector_encoder.by_hand(model, np.concatenate(ids))[-1, 1:-1]
  begin = 0
  for i, own in enumerate(ids):
    expected = x[begin : begin + len(own)].mean(0)
    np.testing.assert_allclose(made.values[i], expected, **CLOSE)
    begin += len(own)


def test_sentences(model):
  text = TEXTS[5]
  x = vector_encoder.by_hand(model, tokens(model, text))[-1]
  for pool, expected in {
    "mean": x.mean(0),  # As sentence-transformers, including [CLS] and [SEP].
    "max": x.max(0),
    "cls": x[0],
  }.items():
    made = found(model, [text], unit="sentence", pool=pool)
    np.testing.assert_allclose(made.values, expected[None], **CLOSE)
  assert made.offsets.tolist() == [[0, len(text)]]


def test_long_texts_are_read_in_windows(model):
  ids, capacity = tokens(model, WORDS), vector_encoder.POSITIONS - 2
  assert len(ids) == 60 and len(set(ids)) == 10  # One token a word.
  # 46 of 60 fit: windows begin at 0 and, as late as possible, at 14. Both have
  # tokens 14 to 45; at the middle one, 30, both have equal context.
  first, last = (
    vector_encoder.by_hand(model, ids[b:][:capacity])[-1] for b in (0, 14)
  )
  made = found(model, [WORDS])
  assert made.ids.tolist() == ids.tolist()
  np.testing.assert_allclose(made.values[:30], first[1:31], **CLOSE)
  np.testing.assert_allclose(made.values[30:], last[17:-1], **CLOSE)
  (mean,) = found(model, [WORDS], unit="sentence").values
  each = [first[:1], made.values, last[-1:]]  # Including [CLS] and [SEP].
  np.testing.assert_allclose(mean, np.concatenate(each).mean(0), **CLOSE)
  (most,) = found(model, [WORDS], unit="sentence", pool="max").values
  np.testing.assert_allclose(most, np.concatenate(each).max(0), **CLOSE)
  # [CLS] of a window is weighted by its tokens: [CLS] and 30, 30 and [SEP].
  (cls,) = found(model, [WORDS], unit="sentence", pool="cls").values
  np.testing.assert_allclose(cls, (first[0] + last[0]) / 2, **CLOSE)


def test_a_word_longer_than_a_row_is_pooled_over_rows(model):
  text = "the " + "ab" * 49 + " cat"
  each = found(model, [text])
  words = found(model, [text], unit="word")
  assert len(words.values) == 3 and len(each.values) > vector_encoder.POSITIONS
  for pool, reduce in {"mean": np.mean, "max": np.max}.items():
    made = found(model, [text], unit="word", pool=pool)
    expected = reduce(each.values[1:-1], axis=0)
    np.testing.assert_allclose(made.values[1], expected, **CLOSE)


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_results_do_not_depend_on_the_batch_size(model, unit):
  options = VectorOptions(unit=unit)
  texts = TEXTS * 4
  once = collect(embed(model, texts, options))
  pieces = list(embed(model._replace(batch_tokens=2), texts, options))
  assert len(pieces) >= (3 if unit == "sentence" else 6)
  pieces = collect(pieces)
  np.testing.assert_allclose(once.values, pieces.values, **CLOSE)
  assert once.sources == pieces.sources
  for name in ("texts", "offsets", "ids"):
    assert getattr(once, name).tolist() == getattr(pieces, name).tolist()


def test_input_is_read_as_needed(model):
  read = []

  def texts():
    for i in itertools.count():
      read.append(i)
      yield "the cat sat on the mat"

  made = embed(model._replace(batch_tokens=64), texts())
  for _ in range(3):
    next(made)
  assert len(read) < 3 * 64 * 64 // 8


def test_a_causal_encoder_uses_the_last_token_for_cls(tmp_path):
  model = vectors.open_text_encoder(
    vector_encoder.make(tmp_path / "causal", causal=True)
  )
  x = vector_encoder.by_hand(model, tokens(model, "the cat"))[-1]
  made = found(model, ["the cat"], unit="sentence", pool="cls")
  np.testing.assert_allclose(made.values, x[-1:], **CLOSE)


def test_equal_to_transformers_and_sentence_transformers(workdir, tmp_path):
  torch = pytest.importorskip("torch")
  transformers = pytest.importorskip("transformers")
  from maskedlm.interop.huggingface import exporter

  out = tmp_path / "hf"
  exporter.export_huggingface(workdir, out, part="encoder", log=print)
  theirs = transformers.AutoModel.from_pretrained(out).eval()
  tokenizer = transformers.AutoTokenizer.from_pretrained(out)
  texts = ["the cat sat .", finetune_runs.TEXTS[3], "dog"]
  batch = tokenizer(texts, padding=True, return_tensors="pt")
  with torch.no_grad():
    hidden = theirs(**batch, output_hidden_states=True).hidden_states
  mask = batch["attention_mask"][..., None]
  model = vectors.open_text_encoder(workdir)
  for layer, x in enumerate(hidden):
    mean = (x * mask).sum(1) / mask.sum(1)  # sentence-transformers' Pooling.
    made = found(model, texts, unit="sentence", layers=(layer,))
    np.testing.assert_allclose(made.values, mean.numpy(), atol=1e-4, rtol=1e-4)
