"""Begins a run of pretraining: `maskedlm pretrain` and `maskedlm.train`."""

import os
import pathlib
from collections.abc import Callable, Collection
from typing import Any

from ml_collections import ConfigDict

from maskedlm.core import own_file
from maskedlm.runtime import startup


def pretrain(
  config: ConfigDict,
  workdir: str | os.PathLike,
  *,
  frozen: Collection[str],
  show_examples: Callable[[pathlib.Path, Any], None],
) -> bool:
  """Pretrains in workdir, a folder or gs://...; call it on every host.

  Writes: config.json, tokenizer/, corpus/ (unless config.corpus.path names
  one), checkpoints/, metrics.jsonl, tensorboard/ and, at the end, result.json.

  Args:
    workdir: called again with the same one, it continues there.
    frozen: the options that a resumed run must keep.
    show_examples: called with the workdir and the corpus at the end, if the
      model fills masks.

  Returns:
    False if the run was interrupted, and its step is saved.
  """
  with startup.connected(profile=config.profile):
    # After the hosts are connected, as these import jax.
    from maskedlm.pretraining import run
    from maskedlm.runtime import multihost

    config = config.copy_and_resolve_references()
    config.update_from_flattened_dict(own_file.pins(config))
    startup.enable_compile_cache()
    mesh = run.check(config)
    with multihost.workdir(workdir) as folder:
      return run.run(
        config, folder, mesh, frozen=frozen, show_examples=show_examples
      )
