"""The options of config.optimizer: the rule, its schedule, its moments."""

import dataclasses
import functools
import math

from maskedlm.core.options import frozen_option, option

RULES = ("adam", "bert_adam", "lamb", "muon", "stable_adam")
SCHEDULES = (
  *("linear", "cosine", "constant", "wsd", "wsd_sqrt"),
  *("bert", "electra", "lamb"),
)


# Phases may change all options but the rule; where one changes an option of the
# first kind, a schedule begins anew.
_of_schedule = functools.partial(option, phase="schedule")
_changeable = functools.partial(option, phase=True)
_TRAINS_LAYERS = {
  "optimizer.frozen_layers": lambda config: config.optimizer.frozen_layers != -1
}


@dataclasses.dataclass(frozen=True)
class OptimizerOptions:
  """Options of config.optimizer; the defaults are AdamW (presets.adamw)."""

  rule: str = frozen_option(
    "adam",
    "Update rule; bert_adam has no bias correction, as google-research/bert. "
    "Or your own (docs/design/own-files.md).",
    choices=RULES,
    own=True,
  )
  learning_rate: float = _of_schedule(
    1e-4, "Peak rate, reached at the end of the warm-up.", above=0, high=1
  )
  schedule: str = _of_schedule(
    "linear",
    "Shape of the rate after the warm-up; bert, electra and lamb are those of "
    "their authors, who count it from step 0 (optimizer.make_schedule).",
    choices=SCHEDULES,
  )
  warmup_steps: float = _of_schedule(
    1_000.0,
    "Steps of the linear warm-up; below 1, their share of the schedule's.",
    low=0,
    high=2**31 - 1,
  )
  start_factor: float = _of_schedule(
    0.0,
    "Rate at step 0 as a share of the peak, from which the warm-up rises.",
    low=0,
    high=1,
    needs={"optimizer.warmup_steps": True},
  )
  end_factor: float = _of_schedule(
    0.0,
    "Final rate as a share of the peak.",
    low=0,
    high=1,
    needs={
      "optimizer.schedule": tuple(x for x in SCHEDULES if x != "constant")
    },
  )
  decay_share: float = _of_schedule(
    0.1,
    "Share of the steps, at the end, in which wsd and wsd_sqrt decay.",
    above=0,
    high=1,
    needs={"optimizer.schedule": ("wsd", "wsd_sqrt")},
  )
  b1: float = _changeable(0.9, "Decay of the first moment.", low=0, below=1)
  b2: float = _changeable(0.999, "Decay of the second moment.", low=0, below=1)
  eps: float = _changeable(
    1e-8,
    "Added outside of the square root. If it were 0 (in float32), a parameter "
    "that never had a gradient would get 0/0.",
    low=1e-30,
    high=1,
  )
  weight_decay: float = _changeable(
    0.01,
    "Decoupled weight decay: each step subtracts rate * this * parameter.",
    low=0,
    high=1,
  )
  no_decay: tuple[str, ...] = _changeable(
    ("norm/", "bias"),
    "Regular expressions: a parameter whose path matches one has no decay (and "
    "no trust ratio in LAMB). An expression must match a parameter, unless it "
    "is the default's.",
    # LAMB's trust ratio, too, is only of parameters that decay.
    needs={
      "optimizer.weight_decay": lambda config: (
        config.optimizer.weight_decay or config.optimizer.rule == "lamb"
      )
    },
  )
  clip_norm: float = _changeable(
    1.0,
    "Largest global norm of the gradient; 0 for no clipping.",
    low=0,
    below=math.inf,
  )
  layer_decay: float = _changeable(
    1.0,
    "For fine-tuning: the rate of each layer is this times that of the layer "
    "above (layerwise_rates.py).",
    above=0,
    high=1,
    needs=_TRAINS_LAYERS,
  )
  frozen_layers: int = _changeable(
    0,
    "The embeddings and this many layers, from the bottom, are not trained; -1 "
    "for the whole encoder.",
    low=-1,
  )
  unfreeze_share: float = _changeable(
    0.0,
    "For fine-tuning: share of the steps during which the layers are unfrozen "
    "one by one, from the top; the heads are trained from the first step "
    "(ULM-FiT).",
    low=0,
    below=1,
    needs=_TRAINS_LAYERS,
  )
