"""Is this still the same run? Compares a checkpoint's identity with today's.

`identity` = {"config": the effective config as a dict, "corpus": fingerprint,
"tokenizer": SHA-256}. What a step consumes must not change under a run; how
it is watched, how long it lasts and where it runs may.
"""

import json
import pathlib
from collections.abc import Callable, Container, Mapping
from typing import Any

from maskedlm.core.errors import ConfigError

# Options that may not change: they decide what the parameters are, or which
# rows and masks a step sees. The corpus and the tokenizer are compared by
# what they hold, not by the options that made them.
FROZEN = (
  "seed",
  "objective",
  "task",
  "init_from",
  "pretrained",
  "model.reinit_layers",
  "model.num_layers",
  "model.width",
  "model.num_heads",
  "model.mlp_width",
  "model.max_positions",
  "model.activation",
  "model.norm_epsilon",
  "model.type_vocab_size",
  "model.embedding_width",
  "model.embedding_norm",
  "model.position",
  "model.rope_theta",
  "model.local_rope_theta",
  "model.local_window",
  "model.global_every",
  "model.causal",
  "model.norm_order",
  "model.norm_kind",
  "model.skip_first_norm",
  "model.mlp",
  "model.biases",
  "data",
  "optimizer.rule",
)
# But for these of them: what is scored after the last step.
FREE = ("data.also_score",)
# (section of the config, what it is the config of)
_KINDS = (
  ("objective", "pretraining"),
  ("task", "fine-tuning"),
  ("imported", "an import"),
  ("retokenized", "a model with another vocabulary"),
)


def check_kind(workdir: pathlib.Path, config: Container[str]) -> None:
  """Refuses a workdir that holds something else, before anything is written.

  Args:
    workdir: the folder of a run, be it new.
    config: the effective one.

  Raises:
    ConfigError: its config.json is of a run of another kind, or of a model's
      export, which the run's own would replace.
  """
  path = workdir / "config.json"
  if not path.exists():
    return
  try:
    found = json.loads(path.read_text())
  except ValueError:
    found = None
  _check_kind(found if isinstance(found, dict) else {}, config, str(workdir))


def check(
  old: Mapping[str, Any],
  new: Mapping[str, Any],
  *,
  log: Callable[[str], None],
) -> None:
  """Prints what changed since the checkpoint; refuses what must not change.

  Raises:
    ConfigError: a frozen option, the corpus or the tokenizer differs; one
      line with each difference. Or it is a run of another kind.
  """
  # Else a page of the options that only one of them has.
  _check_kind(old["config"], new["config"], "this workdir")
  refused = [
    f"the {name} is another one ({old[name][:12]}, now {new[name][:12]})"
    for name in ("corpus", "tokenizer")
    if old[name] != new[name]
  ]
  before, now = flatten(old["config"]), flatten(new["config"])
  undo, told = [], []
  for name in sorted(before.keys() | now.keys()):
    a, b = before.get(name, "(absent)"), now.get(name, "(absent)")
    if a == b:
      continue
    # An option that is younger than the checkpoint: its default is what was.
    if name in before and _is_frozen(name):
      refused.append(f"{name} was {a!r}, now {b!r}")
      undo.append(f"--config.{name}={a}")
    else:
      told.append(f"changed since the checkpoint: {name} was {a!r}, now {b!r}")
  if refused:
    raise ConfigError(
      f"this workdir holds another run: {'; '.join(refused)}. Undo the change"
      f"{': ' if undo else ''}{' '.join(undo)}, or give another --workdir."
    )
  for line in told:
    log(line)


def _check_kind(old: Container[str], new: Container[str], where: str) -> None:
  was, now = (
    next((kind for section, kind in _KINDS if section in config), "")
    for config in (old, new)
  )
  if was == now:
    return
  held = f"another run: {was}" if was else "a config.json that no run has made"
  raise ConfigError(
    f"{where} holds {held}, and this is {now}. Give another --workdir."
  )


def _is_frozen(name: str) -> bool:
  within = any(name == f or name.startswith(f"{f}.") for f in FROZEN)
  return within and name not in FREE


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
  """{"model": {"width": 8}} -> {"model.width": 8}."""
  flat = {}
  for name, value in config.items():
    if isinstance(value, Mapping):
      flat.update(flatten(value, f"{prefix}{name}."))
    else:
      flat[prefix + name] = value
  return flat
