"""Reads the JSON files of a Hugging Face directory, and checks their types."""

import pathlib
from typing import Any

from maskedlm.core.errors import InteropError
from maskedlm.core.parse_json import parse_json

# The fields of all files that are used; modeling/architecture.py has the sizes.
KINDS = {
  "architectures": list,
  "model_type": str,
  "pad_token_id": int,
  "num_labels": int,
  "id2label": dict,
  "problem_type": str,
  "classifier_pooling": str,
  "layer_types": list,
  "rope_parameters": dict,
  "global_attn_every_n_layers": int,
  "tokenizer_class": str,
  "model_input_names": list,
  "added_tokens_decoder": dict,
  "additional_special_tokens": list,
  "extra_special_tokens": list | dict,
  "pooling_mode": str | list,
  "default_prompt_name": str,
}


def read_object(path: pathlib.Path) -> dict[str, Any]:
  """Reads the JSON object in a file; returns {} if there is no file.

  Raises:
    InteropError: the file holds something else, or a field in KINDS has
      another type.
  """
  if not path.is_file():
    return {}
  try:
    value = parse_json(path.read_text("utf-8"))
    if not isinstance(value, dict):
      raise ValueError("not an object")
  except ValueError as error:
    raise InteropError(
      f"{path} is not JSON ({error}); fetch it again."
    ) from None
  for name, kind in KINDS.items():
    if value.get(name) is not None and not isinstance(value[name], kind):
      raise InteropError(
        f"{path}: {name}={value[name]!r:.40} has another type than in "
        "transformers: fetch it again."
      )
  if not all(isinstance(x, str) for x in value.get("architectures") or ()):
    raise InteropError(
      f"{path}: architectures={value['architectures']!r:.60}; expected the "
      "name of a class."
    )
  return value
