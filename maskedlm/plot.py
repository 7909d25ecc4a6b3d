"""`maskedlm plot PICTURE`: what can be seen of a model, as a picture.

Each picture is a module of maskedlm/plots with a main.
"""

import importlib
import sys
from collections.abc import Sequence

from maskedlm import cli
from maskedlm.config import ConfigError, did_you_mean

# picture -> (module of maskedlm/plots, what it shows).
PICTURES = {
  "instances": ("instances", "the instances of a word, by sense or language"),
  "attention": ("attention", "which token attends to which, head by head"),
  "isotropy": ("isotropy", "how alike vectors are, layer by layer"),
  "run": ("runs", "the training curves of one or several workdirs"),
}


def main(argv: Sequence[str]) -> int:
  """Runs the verb; returns the exit code."""
  names = "\n".join(
    f"  {name:<11}{about}" for name, (_, about) in PICTURES.items()
  )
  usage = (
    "usage: maskedlm plot PICTURE [options]\n\n"
    f"{names}\n\n`maskedlm plot PICTURE --help` tells more."
  )
  if not argv or argv[0] in ("-h", "--help", "help"):
    print(usage)
    return 0 if argv else cli.EXIT_ERROR
  name, *rest = argv
  if name not in PICTURES:
    raise ConfigError(
      f"unknown picture {name!r}{did_you_mean(name, PICTURES)}; known: "
      f"{', '.join(PICTURES)}."
    )
  module = importlib.import_module(f"maskedlm.plots.{PICTURES[name][0]}")
  return module.main(rest)


if __name__ == "__main__":
  sys.exit(cli.run(main))
