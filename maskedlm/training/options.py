"""The options that the loop reads: config.train, config.mesh, the seed."""

import dataclasses
import math

from maskedlm.core.options import frozen_option, option
from maskedlm.training import trackers


@dataclasses.dataclass(frozen=True)
class RunOptions:
  """Options at the top level of any config."""

  name: str = option(
    "maskedlm", "Name of the run; the default workdir is runs/<name>."
  )
  seed: int = frozen_option(
    0,
    "All random choices derive from it.",
    low=0,
    high=2**32 - 1,  # JAX uses no more bits for keys.
  )
  profile: int = option(
    0,
    "Steps to trace, early in the run (docs/guides/pretrain/profiling.md).",
    low=0,
  )
  init_from: str = frozen_option(
    "",
    "A run or an import to start from, or hf:NAME on the Hugging Face Hub: its "
    "weights, architecture and tokenizer.",
  )
  teacher: str = frozen_option(
    "",
    "A trained model of the same objective or task and tokenizer, whose scores "
    "a smaller one learns to give (docs/guides/pretrain/distillation.md).",
  )
  teacher_weight: float = frozen_option(
    0.5,
    "The teacher's share of the loss; the rest is that of text or labels.",
    above=0,
    high=1,
    needs={"teacher": True},
  )
  teacher_temperature: float = frozen_option(
    2.0,
    "Divides the logits of both: unlikely classes then count more.",
    above=0,
    high=1_000,
    needs={"teacher": True},
  )
  teacher_layers: tuple[int, ...] = frozen_option(
    (),
    "For each layer, that of the teacher whose vectors it learns to give, from "
    "1, or 0 for none; () for scores alone.",
    needs={"teacher": True},
  )


@dataclasses.dataclass(frozen=True)
class TrainOptions:
  """Options of config.train, in pretraining and fine-tuning."""

  accumulate: int = option(
    1, "Microbatches in a step; the update is the same.", low=1, phase=True
  )
  log_every: int = option(
    100,
    "Steps between log lines; the step of a checkpoint is always logged.",
    low=1,
    phase=True,
  )
  keep_last: int = option(2, "Newest checkpoints kept.", low=1)
  keep_best: int = option(
    1,
    "Checkpoints of the lowest held-out loss that are kept too; above 0, each "
    "evaluated step is saved.",
    low=0,
  )
  keep_every: int = option(
    0,
    "Steps between checkpoints that are kept for good, the first before any "
    "training; 0 for none.",
    low=0,
  )
  resume_unverified: bool = option(
    False,
    "If no checkpoint can be verified, resume from the newest one without a "
    "manifest.sha256, as it is.",
  )
  nonfinite_limit: int = option(
    10, "Consecutive non-finite steps after which the run stops.", low=1
  )
  spike_sigma: float = option(
    0.0,
    "A step whose loss is more than this many standard deviations above the "
    "mean of the last 128 is a spike, and is not applied; 6 is usual, 0 for no "
    "spikes.",
    low=0,
    below=math.inf,
  )
  on_spike: str = option(
    "skip",
    "After a spike: skip goes on with the next step, stop ends the run.",
    choices=("skip", "stop"),
    needs={"train.spike_sigma": True},
  )
  watch_every: int = option(
    0,
    "Steps between those that are measured from inside, before they are done: "
    "norms of gradients, parameters and updates by layer; attention entropy by "
    "layer, of encoders with attention; accuracy by frequency of the token, of "
    "objectives that predict tokens. 0 for none. Such a step takes several "
    "times as long.",
    low=0,
  )
  tracker: str = option(
    "",
    "Where the metrics are sent besides metrics.jsonl and TensorBoard "
    "(docs/guides/pretrain/watching.md); each needs the extra of its name.",
    choices=("", *trackers.TRACKERS),
  )


@dataclasses.dataclass(frozen=True)
class StepOptions(TrainOptions):
  """config.train as pretraining has it and the loop reads it: by steps."""

  num_steps: int = option(100_000, "Number of updates.", low=1)
  eval_every: int = option(
    5_000, "Steps between evaluations on held-out rows.", low=1, phase=True
  )
  eval_rows: int = option(
    2_048, "Held-out rows, at most; 0 for no evaluation.", low=0
  )
  checkpoint_every: int = option(
    1_000, "Steps between checkpoints.", low=1, phase=True
  )
  ema_decay: float = frozen_option(
    0.0,
    "Decay of an exponential moving average of the weights, which is evaluated "
    "beside them (ema_loss) and saved; 0 for none.",
    low=0,
    below=1,
  )


@dataclasses.dataclass(frozen=True)
class MeshOptions:
  """Options of config.mesh: the number of devices on each of its axes."""

  data: int = option(
    -1, "Data parallel; -1 for the devices that remain.", low=-1
  )
  fsdp: int = option(1, "Data parallel with sharded parameters.", low=-1)
  tensor: int = option(
    1, "Attention heads, MLP and vocabulary split over devices.", low=-1
  )
