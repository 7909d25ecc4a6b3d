"""Finds the class of transformers that a directory belongs to.

config.json may name none, or one with custom code. Then it is the class for
pretraining that has the heads in the file.
"""

from collections.abc import Callable, Mapping
from typing import Any

from maskedlm.core.errors import InteropError
from maskedlm.interop.huggingface.match_tensors import PRETRAINED, Find
from maskedlm.interop.huggingface.parameter_names import Architecture
from maskedlm.interop.labels import TASKS


def with_class(
  config: Mapping[str, Any],
  architecture: Architecture,
  find: Find,
  *,
  where,
  log: Callable[[str], None],
) -> dict[str, Any]:
  """Returns config.json with a known class in `architectures`.

  If it names none, or one with custom code, that is the class of the heads for
  pretraining in the file, and a line is logged; `where` is the directory.

  Raises:
    InteropError: the file has a fine-tuned head whose class config.json
      doesn't name. Several classes may have heads of the same names.
  """
  stated = (config.get("architectures") or [""])[0]
  ending = _class_ending(stated, architecture)
  present = [
    e for e in architecture.heads if _is_present(e, architecture, find)
  ]
  tuned = [f"{architecture.class_prefix}{e}" for e in TASKS if e in present]
  if tuned and ending not in TASKS and ending not in {*present} - {"Model"}:
    raise InteropError(
      f"{where}/config.json names {stated or 'no class'}, but the file has the "
      f"head of {' or '.join(tuned)}: write its class to "
      '"architectures", or import the encoder alone: `maskedlm import --from '
      "hf NAME --part encoder --out DIR`."
    )
  if ending not in (*TASKS, *PRETRAINED, "Model"):
    ending = next((e for e in PRETRAINED if e in present), "Model")
    log(
      f"{where}/config.json names {stated or 'no class'}; by its tensors, the "
      f"model is {architecture.class_prefix}{ending}"
    )
  return {**config, "architectures": [architecture.class_prefix + ending]}


def _class_ending(name: str, architecture: Architecture) -> str:
  """Returns the suffix of a class name, also of another architecture's class.

  XLM-R's classes occur with RoBERTa's model_type, for example.
  """
  ending = name.removeprefix(architecture.class_prefix)
  known = (e for e in architecture.heads if e != "Model" and name.endswith(e))
  return ending if ending in architecture.heads else next(known, ending)


def _is_present(ending: str, architecture: Architecture, find: Find) -> bool:
  """Returns whether all heads of a class are in the file."""
  names = map(str, architecture.heads[ending].values())
  return all(find(f"{name}.weight") or find(name) for name in names)
