"""The page's questions and answers: JSON to JSON.

Each function of ANSWERS takes the models and the fields of a form; what is
wrong with a field is a ValueError that the page shows. On the public API
(api.py): nothing here knows of HTTP.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune import predict
from maskedlm.inference import fill_mask
from maskedlm.inference import model as api
from maskedlm.inference.vectors import similarity

CHARACTERS = 2_000  # Of a text, at most.
TOKENS = 64  # Of an attention map, at most: more can't be read.
CANDIDATES = 8  # Of a mask.

Fields = Mapping[str, Any]


class Models(NamedTuple):
  """What the page is of."""

  encoder: api.Model
  tuned: tuple[tuple[str, predict.Model], ...]  # (path, fine-tuned model).


def about(models: Models) -> dict[str, Any]:
  """What the page needs to know before anything is asked."""
  model = models.encoder
  mask = model.tokenizer.tokens(model.tokenizer.special.mask)
  return {
    "checkpoint": model.path,
    "mask": mask,
    "layers": model.cfg.num_layers,
    "heads": model.cfg.num_heads,
    "width": model.cfg.width,
    "positions": model.cfg.max_positions,
    "characters": CHARACTERS,
    "masked": [text.replace("[MASK]", mask) for text in fill_mask.EXAMPLES],
    "tuned": [
      {"path": path, "kind": kind_of(tuned), "example": example(tuned)}
      for path, tuned in models.tuned
    ],
  }


def fill(models: Models, fields: Fields) -> dict[str, Any]:
  """{"text"} -> the text's pieces around its masks, and their candidates."""
  model, text = models.encoder, text_of(fields, "text")
  masks = model.fill_mask(text, top=CANDIDATES)
  encoding = model.tokenize(text, specials=True)
  spans = encoding.offsets[encoding.ids == model.tokenizer.special.mask]
  begins = [0, *spans[:, 1].tolist()]
  ends = [*spans[:, 0].tolist(), len(text)]
  return {
    "pieces": [text[a:b] for a, b in zip(begins, ends, strict=True)],
    "masks": [
      [{"word": word, "probability": p} for word, p in words] for words in masks
    ],
  }


def compare(models: Models, fields: Fields) -> dict[str, Any]:
  """{"first", "second", "word", "other"} -> a cosine for each layer.

  word is one of the first text, other of the second ("": the same). Beside
  each layer's cosine stands what is usual in it: the mean over the pairs of
  different words, one of each text.
  """
  texts = [text_of(fields, name) for name in ("first", "second")]
  word = text_of(fields, "word")
  wanted = [word, text_of(fields, "other", default="") or word]
  layers = tuple(range(models.encoder.cfg.num_layers + 1))
  made = models.encoder.vectors(texts, layers=layers, combine="stack")
  forms, vectors, places = [], [], []
  for i, text in enumerate(texts):
    own = made.texts == i
    words = [text[a:b] for a, b in made.offsets[own]]
    places.append(find(words, wanted[i], text))
    forms.append(np.array([form.casefold() for form in words]))
    vectors.append(similarity.unit_length(made.values[own]))  # [n, N + 1, D]
  cosines = np.einsum("aND,bND->Nab", *vectors)
  different = forms[0][:, None] != forms[1]
  return {
    "words": wanted,
    "layers": [
      {
        "cosine": float(layer[places[0], places[1]]),
        "usual": float(layer[different].mean()) if different.any() else None,
      }
      for layer in cosines
    ],
  }


def attend(models: Models, fields: Fields) -> dict[str, Any]:
  """{"text", "layer" from 1} -> tokens [l] and the weights [H, l, l]."""
  model, text = models.encoder, text_of(fields, "text")
  count = len(model.tokenize(text, specials=True).ids) + 2
  if count > TOKENS:
    raise ConfigError(
      f"the text has {count} tokens, a map that can be read {TOKENS} at most: "
      "shorten it."
    )
  layer = number_of(fields, "layer", 1, model.cfg.num_layers)
  made = model.attend(text)
  weights = np.round(np.float64(made.weights[layer - 1]), 4)
  return {"tokens": list(made.tokens), "weights": weights.tolist()}


def label(models: Models, fields: Fields) -> dict[str, Any]:
  """{"text", "model" from 0} -> what the fine-tuned model says of the text.

  A line break separates what a line of `maskedlm predict` has tabs between;
  "texts" are these parts, which a prediction may have numbers of.
  """
  text = text_of(fields, "text")
  if not models.tuned:
    raise ConfigError(
      "there is no fine-tuned model: start `maskedlm demo` with --finetuned."
    )
  place = number_of(fields, "model", 0, len(models.tuned) - 1)
  model = models.tuned[place][1]
  parts = [line.strip() for line in text.splitlines() if line.strip()]
  example = model.kind.parse("\t".join(parts), model.options)
  return {"prediction": predict.predict(model, [example])[0], "texts": parts}


ANSWERS = {"fill": fill, "compare": compare, "attend": attend, "label": label}


def text_of(fields: Fields, name: str, *, default: str | None = None) -> str:
  """A field that is text.

  Raises:
    ConfigError: it is empty or missing, if there is no default; it is none,
      or too long.
  """
  value = fields.get(name, "")
  if not isinstance(value, str):
    raise ConfigError(f"{name}={value!r:.40}: expected text.")
  if len(value) > CHARACTERS:
    raise ConfigError(
      f"the text has {len(value):,} characters; expected {CHARACTERS:,} at "
      "most: shorten it."
    )
  # JSON can spell half of a surrogate pair, which is no character.
  value = value.encode("utf-8", "replace").decode("utf-8")
  if value.strip():
    return value.strip()
  if default is None:
    raise ConfigError(f"the field “{name}” is empty: type something first.")
  return default


def number_of(fields: Fields, name: str, low: int, high: int) -> int:
  """A field that is a number from low to high; else a ConfigError."""
  value = fields.get(name)
  if type(value) is not int or not low <= value <= high:
    raise ConfigError(
      f"{name}={value!r:.40}: expected a number from {low} to {high}."
    )
  return value


def find(words: list[str], wanted: str, text: str) -> int:
  """The place of the first of the words that is wanted, whatever its case.

  Raises:
    ConfigError: there is none.
  """
  for i, word in enumerate(words):
    if word.casefold() == wanted.casefold():
      return i
  raise ConfigError(
    f"{wanted!r:.60} is no word of {text!r:.60}; its words: "
    f"{', '.join(words[:30]) or 'none'}."
  )


def kind_of(model: predict.Model) -> str:
  """classification, tagging, ..."""
  return model.kind.__name__.rpartition(".")[2]


def example(model: predict.Model) -> str:
  """An example that the model can read, in lines; "" if its kind has none."""
  for line in getattr(model.kind, "EXAMPLES", ()):
    try:
      model.app.rows([model.kind.parse(line, model.options)])
    except DataError:
      continue
    return line.replace("\t", "\n")
  return ""
