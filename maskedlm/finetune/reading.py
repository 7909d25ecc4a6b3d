"""Options that say how a labelled file is read, overridden after training.

A test file may have another layout than the training file. `evaluate`,
`predict` and `transfer` take these options of a kind, its READING, as
`finetune` does, so that the remedy of an error message works there, too.
"""

import re
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from maskedlm import flags
from maskedlm.config import ConfigError, did_you_mean

HELP = (
  "--config.task.NAME=VALUE: how the file is read, if its layout is another "
  "than the training data's (task.tag_column, task.label, ...)."
)


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
  """(what is the verb's own, the overrides) of a command line.

  Raises:
    ConfigError: an override that is not of the form.
  """
  overrides = [x for x in argv if re.match(r"--?(no)?config\b", x)]
  for token in overrides:
    if not re.match(r"--config\.task\.\w+=", token):
      raise ConfigError(
        f"{token}: expected --config.task.NAME=VALUE, an option of how the "
        "file is read; all else is the checkpoint's."
      )
  return [x for x in argv if x not in overrides], overrides


def override(kind: Any, options: Any, overrides: Sequence[str]) -> Any:
  """The Options of a kind with overrides as split gives them.

  Raises:
    ConfigError: an option that the kind doesn't have, that says more than how
      a file is read, or whose value is none.
  """
  known = getattr(kind, "READING", ())
  name_of_kind = kind.__name__.rpartition(".")[2]
  for token in overrides:
    name = re.match(r"--config\.task\.(\w+)", token).group(1)
    if name not in known:
      those = f"of {name_of_kind} {', '.join(known)}" if known else "here none"
      raise ConfigError(
        f"--config.task.{name}: what can be set beside a checkpoint is how a "
        f"file is read, {those}{did_you_mean(name, known)}"
      )
  values = {name: getattr(options, name) for name in known}
  config = flags.override(ConfigDict({"task": values}), overrides)
  return options._replace(**config.task.to_dict())
