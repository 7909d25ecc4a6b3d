"""Answers the demo page's requests: JSON in, JSON out.

Each function in ANSWERS takes the models and the fields of a form. An invalid
field raises a ConfigError or DataError, which the page shows. The functions use
the public API (inference/model.py) and are independent of HTTP.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maskedlm.core.errors import ConfigError, DataError
from maskedlm.finetune import predict
from maskedlm.inference.model import Model, load
from maskedlm.inference.vectors import similarity, vectors
from maskedlm.inference.vectors.standardise import (
  Standardiser,
  apply_standardiser,
  open_layer_standardisers,
)

CHARACTERS = 2_000  # The most in a text.
TOKENS = 64  # The most in a readable attention map.
CANDIDATES = 8  # For each mask.
# They need syntax, agreement and meaning.
EXAMPLES = (
  "The function returns a [MASK] of the input.",
  "If the file does not [MASK], an error is raised.",
  "Return True if all elements are [MASK].",
)

Fields = Mapping[str, Any]


class Models(NamedTuple):
  """The models that the page uses."""

  encoder: Model
  tuned: tuple[tuple[str, predict.FineTunedModel], ...]  # (path, model).
  standardisers: tuple[tuple[int, Standardiser], ...] = ()  # (layer, its own).


def open_models(
  checkpoint: str, finetuned: Sequence[str], standardise: str
) -> Models:
  """Opens the page's models; a fine-tuned `checkpoint` is one that labels, too.

  Raises:
    CheckpointError, ConfigError: one of them can't be used.
  """
  encoder = load(checkpoint)
  fitted = {}
  if standardise:
    fitted = open_layer_standardisers(
      standardise, vectors.make_text_encoder(encoder.opened)
    )
  tuned = [(path, predict.open_model(path)) for path in finetuned]
  if "kind" in encoder.meta["task"] and checkpoint not in finetuned:
    tuned.append((checkpoint, predict.make_model(encoder.opened, checkpoint)))
  return Models(encoder, tuple(tuned), tuple(fitted.items()))


def describe_models(models: Models) -> dict[str, Any]:
  """Returns the facts about the models that the page shows when it opens."""
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
    "masked": [text.replace("[MASK]", mask) for text in EXAMPLES],
    "tuned": [
      {"path": path, "kind": tuned.task.name, "example": example_of(tuned)}
      for path, tuned in models.tuned
    ],
  }


def answer_fill(models: Models, fields: Fields) -> dict[str, Any]:
  """Maps {"text"} to {"pieces", "masks"}: the text around masks, candidates.

  Raises:
    ConfigError: the field is invalid; see Model.fill_mask.
  """
  model, text = models.encoder, text_field(fields, "text")
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


def answer_compare(models: Models, fields: Fields) -> dict[str, Any]:
  """Maps {"first", "second", "word", "other"} to cosines by layer.

  "layers" has {"layer", "cosine", "usual"} for each layer, "standardised" for
  each that has a Standardiser. "cosine" compares "word" in the first text with
  "other" ("" = the same word) in the second. "usual" is the mean over pairs of
  different words, one from each text.

  Raises:
    ConfigError: a field is invalid, or a text lacks its word.
  """
  texts = [text_field(fields, name) for name in ("first", "second")]
  word = text_field(fields, "word")
  wanted = [word, text_field(fields, "other", default="") or word]
  layers = tuple(range(models.encoder.cfg.num_layers + 1))
  embedded = models.encoder.vectors(texts, layers=layers, combine="stack")
  forms, x, places = [], [], []
  for i, text in enumerate(texts):
    in_text = embedded.texts == i
    words = [text[a:b] for a, b in embedded.offsets[in_text]]
    places.append(find_word(words, wanted[i], text))
    forms.append(np.array([form.casefold() for form in words]))
    x.append(embedded.values[in_text])  # [n, N + 1, D].
  different = forms[0][:, None] != forms[1]

  def compare(layer: int, a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    cosines = similarity.cosine(a[:, None], b)  # [n of a, n of b].
    return {
      "layer": layer,
      "cosine": float(cosines[*places]),
      "usual": float(cosines[different].mean()) if different.any() else None,
    }

  return {
    "words": wanted,
    "layers": [compare(i, *(y[:, i] for y in x)) for i in layers],
    "standardised": [
      compare(i, *(apply_standardiser(fitted, y[:, i]) for y in x))
      for i, fitted in models.standardisers
    ],
  }


def answer_attend(models: Models, fields: Fields) -> dict[str, Any]:
  """Maps {"text", "layer" from 1} to {"tokens": [l], "weights": [H, l, l]}.

  Raises:
    ConfigError: a field is invalid, or the text has more than TOKENS tokens.
  """
  model, text = models.encoder, text_field(fields, "text")
  count = len(model.tokenize(text, specials=True).ids) + 2
  if count > TOKENS:
    raise ConfigError(
      f"the text has {count} tokens; expected at most {TOKENS} for a readable "
      "map: shorten it."
    )
  layer = number_field(fields, "layer", 1, model.cfg.num_layers)
  attention = model.attend(text)
  weights = np.round(np.float64(attention.weights[layer - 1]), 4)
  return {"tokens": list(attention.tokens), "weights": weights.tolist()}


def answer_label(models: Models, fields: Fields) -> dict[str, Any]:
  """Maps {"text", "model" from 0} to {"prediction", "texts", "cut"}.

  Line breaks stand for the tabs in a line of `maskedlm predict`'s input.
  "texts" has the lines, as a prediction may refer to them by number. "cut" says
  whether the text was longer than a row; "" if not.

  Raises:
    ConfigError: a field is invalid, or no fine-tuned model is open.
    DataError: the task can't parse the text.
  """
  text = text_field(fields, "text")
  if not models.tuned:
    raise ConfigError(
      "no fine-tuned model is open: start `maskedlm demo` with --finetuned."
    )
  place = number_field(fields, "model", 0, len(models.tuned) - 1)
  model = models.tuned[place][1]
  lines = re.split(r"\r\n|\r|\n", text)  # As in a file; U+2028 is text.
  parts = [line.strip() for line in lines if line.strip()]
  example = model.task.parse_line("\t".join(parts))
  cut: list[int] = []
  (prediction,) = predict.predict(model, [example], cut=cut)
  note = (
    f"The text has {cut[0]} tokens: the model read {model.length} of them."
    if cut
    else ""
  )
  return {"prediction": prediction, "texts": parts, "cut": note}


ANSWERS = {
  "fill": answer_fill,
  "compare": answer_compare,
  "attend": answer_attend,
  "label": answer_label,
}


def text_field(fields: Fields, name: str, *, default: str | None = None) -> str:
  """Returns a text field, stripped.

  Raises:
    ConfigError: it is not text, too long, or empty without a default.
  """
  value = fields.get(name, "")
  if not isinstance(value, str):
    raise ConfigError(f"{name}={value!r:.40}: expected text.")
  if len(value) > CHARACTERS:
    raise ConfigError(
      f"the text has {len(value):,} characters; expected at most "
      f"{CHARACTERS:,}: shorten it."
    )
  # JSON may contain half of a surrogate pair, which is not a character.
  value = value.encode("utf-8", "replace").decode("utf-8")
  if value.strip():
    return value.strip()
  if default is None:
    raise ConfigError(f"the field “{name}” is empty: type something first.")
  return default


def number_field(fields: Fields, name: str, low: int, high: int) -> int:
  """Returns an integer field from low to high; raises ConfigError otherwise."""
  value = fields.get(name)
  if type(value) is not int or not low <= value <= high:
    raise ConfigError(
      f"{name}={value!r:.40}: expected a number from {low} to {high}."
    )
  return value


def find_word(words: list[str], wanted: str, text: str) -> int:
  """Returns the index of the first word equal to `wanted`, ignoring case.

  Raises:
    ConfigError: there is none.
  """
  for i, word in enumerate(words):
    if word.casefold() == wanted.casefold():
      return i
  raise ConfigError(
    f"{wanted!r:.60} is not a word of {text!r:.60}; its words: "
    f"{', '.join(words[:30]) or 'none'}."
  )


def example_of(model: predict.FineTunedModel) -> str:
  """Returns a demo example that the model accepts, in lines; "" if none."""
  for line in model.task.demo_lines:
    try:
      model.app.make_rows([model.task.parse_line(line)])
    except DataError:
      continue
    return line.replace("\t", "\n")
  return ""
