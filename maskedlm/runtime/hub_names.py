"""Names of models on the Hugging Face Hub: hf:NAME[@REVISION][#COMMIT].

A branch moves, so a name is looked up once (interop/huggingface/hub.py): it
gets its commit, whose import lies in the user's cache from then on. Whatever
opens a checkpoint finds it here, without a network.
"""

import os
import pathlib
import re
from typing import NamedTuple

from maskedlm.core.errors import ConfigError
from maskedlm.runtime import output_files

PREFIX = "hf:"
NAME = re.compile(
  r"hf:(\w[\w.-]*(?:/\w[\w.-]*)?)(?:@([^@#\s]+))?(?:#([0-9a-f]{40}))?"
)


class HubName(NamedTuple):
  """A model's name, in its parts."""

  model: str  # Such as "google-bert/bert-base-uncased".
  revision: str  # A branch, a tag or a commit; "" = the main branch.
  commit: str  # 40 hex digits; "" until it is looked up.

  def __str__(self) -> str:
    at = self.commit or self.revision
    return f"{PREFIX}{self.model}" + f"@{at}" * bool(at)


def is_name(path: str | os.PathLike) -> bool:
  """Returns whether a path is a name, hf:..."""
  return os.fspath(path).startswith(PREFIX)


def parse(name: str | os.PathLike) -> HubName:
  """Returns the parts of a name; raises ConfigError if it is spelt wrong."""
  match = NAME.fullmatch(os.fspath(name))
  if not match:
    raise ConfigError(
      f"{os.fspath(name)}: expected hf:NAME or hf:NAME@REVISION, the name of a "
      "model on the Hugging Face Hub, such as google-bert/bert-base-uncased."
    )
  model, revision, commit = (part or "" for part in match.groups())
  is_commit = re.fullmatch("[0-9a-f]{40}", revision)
  return HubName(model, revision, revision if is_commit else commit)


def place(name: HubName) -> pathlib.Path:
  """Returns where the import of a name with its commit lies, or is to lie."""
  folder = f"{name.model.replace('/', '--')}@{name.commit}"
  return output_files.cache_dir("models") / folder


def workdir(name: str | os.PathLike) -> pathlib.Path:
  """Returns the workdir of a name; raises ConfigError if it isn't here yet."""
  parts = parse(name)
  if parts.commit and place(parts).is_dir():
    return place(parts)
  out = f"runs/{parts.model.rpartition('/')[2]}"
  raise ConfigError(
    f"{parts}: the hub is not asked here; `maskedlm import --from hf {parts} "
    f"--out {out}`, and give {out}."
  )
