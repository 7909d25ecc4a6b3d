"""`maskedlm.pretrain`: the verb of that name, called from Python."""

import os
from typing import Any

from ml_collections import ConfigDict

from maskedlm.cli import exit_codes
from maskedlm.cli import pretrain as verb
from maskedlm.config import defaults, existing, overrides
from maskedlm.runtime import buckets, output_files
from maskedlm.training.checkpoints import init_from


def pretrain(
  config: ConfigDict | str, workdir: str | os.PathLike
) -> dict[str, Any]:
  """Pretrains in a workdir; called again, it continues there.

  Args:
    config: of maskedlm.config.defaults.default(), or a config file such as
      "configs/bert.py:small". It is not changed.
    workdir: the folder of the run, or gs://...

  Returns:
    The content of result.json.

  Raises:
    ConfigError, CorpusError, CheckpointError: an option, the text or the
      workdir can't be used.
    StoppedError: Ctrl-C; the step is saved, and the same call continues.
  """
  if isinstance(config, str):
    config = overrides.load_config(config, validate=lambda config: None)
  config = config.copy_and_resolve_references()
  place = buckets.origin(workdir)
  init_from.copy_architecture(config, given=())
  existing.fit_to_tokenizer(config, (), started=place.exists)
  existing.fit_to_corpus(config, (), started=place.exists)
  defaults.validate(config)
  if verb.pretrain(config, workdir) == exit_codes.INTERRUPTED_AND_SAVED:
    from maskedlm.finetune.run import StoppedError

    raise StoppedError("interrupted, and saved: the same call continues")
  return output_files.read_result(place)
