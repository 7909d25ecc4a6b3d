"""Options of earlier versions, and what to do without them."""

import copy
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from maskedlm.core.errors import ConfigError


class Removed(NamedTuple):
  """An option of earlier versions."""

  remedy: str
  # The value that means what is done now; None if any does, as for options that
  # said how a file was read.
  default: Any = None
  # Another option of the sections that lost this one; others may keep it.
  beside: str = ""


_MRQA = (
  "TriviaQA is read from MRQA's copy, which has the texts "
  "(docs/guides/finetune/question-answering.md)"
)
_PAPER = "as in the paper"
OPTIONS = {
  "objective.chunk": Removed("it is 64", default=64),
  "objective.discriminator_weight": Removed(
    f"it is 50, {_PAPER}", default=50.0
  ),
  # Of spanbert.
  "objective.max_span_words": Removed(f"it is 10, {_PAPER}", default=10),
  "objective.place_width": Removed(f"it is 200, {_PAPER}", default=200),
  "objective.span_p": Removed(f"it is 0.2, {_PAPER}", default=0.2),
  "objective.temperature": Removed(f"it is 1, {_PAPER}", default=1.0),
  "optimizer.bias_correction": Removed("optimizer.rule='bert_adam' has none"),
  "optimizer.decay_from_zero": Removed(
    "optimizer.schedule='bert' decays from step 0"
  ),
  "optimizer.power": Removed("optimizer.schedule='lamb' is the root"),
  "optimizer.warmup_times_decay": Removed(
    "optimizer.schedule='electra' multiplies the warm-up"
  ),
  "train.prefetch": Removed("4 batches are made ahead"),
  "train.warmup_share": Removed(
    "optimizer.warmup_steps=0.1 is a share of the steps"
  ),
  # Of fine-tuning.
  "data.buckets": Removed("held-out rows are packed as those of training"),
  "train.num_steps": Removed(
    "train.epochs is the length, 0.1 for a tenth of the examples",
    beside="epochs",
  ),
  "train.eval_every": Removed("train.evals_per_epoch=2", beside="epochs"),
  "train.checkpoint_every": Removed(
    "each evaluation is saved: train.evals_per_epoch=2", beside="epochs"
  ),
  "task.crf": Removed("task.decode='crf'"),
  "task.tag_all_subwords": Removed("task.decode='words' if it was False"),
  "task.crf_rate": Removed(
    "a CRF's scores are 100 times its parameters", default=100.0
  ),
  "task.fix_offsets": Removed(
    "correct answer_start in the file: an error lists the places that have the "
    "answer"
  ),
  "task.punctuation": Removed(
    "words tagged , : `` '' or . don't count, as in EVALB's COLLINS.prm",
    default=[",", ":", "``", "''", "."],
  ),
  "task.arc_width": Removed(f"it is 500, {_PAPER}", default=500),
  "task.label_width": Removed(f"it is 100, {_PAPER}", default=100),
  "task.top_ratio": Removed(f"it is 0.4, {_PAPER}", default=0.4),
  "task.max_antecedents": Removed("it is 2000 spans", default=2000),
  "task.mention_loss": Removed("its weight is 1", default=1.0),
  "task.lstm_layers": Removed(f"there are 2, {_PAPER}", default=2),
  "task.max_query": Removed(
    "a question is cut to 64 tokens, or to what leaves room for the answer",
    default=64,
  ),
  "task.n_best": Removed("a prediction has 20 answers", default=20),
  "task.evidence": Removed(_MRQA),
  "task.evidence_words": Removed(_MRQA),
}


def remedy(name: str) -> str:
  """Returns "; it was removed: ..." for such an option, such as task.evidence.

  For any other name it is "".
  """
  option = OPTIONS.get(name)
  return f"; it was removed: {option.remedy}" if option else ""


def remedy_in(message: str) -> str:
  """Returns `remedy` for the option that a locked config's error names."""
  key = re.search(r'Key "(\w+)" does not exist', message)
  names = [
    name
    for name, option in OPTIONS.items()
    if key and name.endswith(f".{key.group(1)}") and option.beside in message
  ]
  if "'warmup_steps' (reference)" in message:  # Of another option's value.
    return "; optimizer.warmup_steps=0.06 is a share of the steps"
  return remedy(names[0]) if names else ""


def is_removed(name: str, value: Any) -> bool:
  """Returns whether an option was removed, with a value that changes nothing.

  Raises:
    ConfigError: the value is no longer supported.
  """
  option = OPTIONS.get(name)
  if option is None:
    return False
  if option.default is not None and value != option.default:
    raise ConfigError(
      f"{name}={value!r}: there is no such option{remedy(name)}."
    )
  return True


# (schedule, decay_from_zero, warmup_times_decay) of before -> schedule.
_SCHEDULES = {
  ("linear", True, False): "bert",
  ("linear", True, True): "electra",
  ("polynomial", True, False): "lamb",
}


def renewed(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the config.json of an earlier version with the options of this one.

  Raises:
    ConfigError: there is no such schedule of the learning rate any more.
  """
  config = {name: copy.copy(values) for name, values in config.items()}
  rates, train = config.get("optimizer", {}), config.get("train", {})
  if "decay_from_zero" in rates:
    curve = (
      *(rates["schedule"], rates.pop("decay_from_zero")),
      rates.pop("warmup_times_decay"),
    )
    power, decays = rates.pop("power"), curve[0] in ("linear", "cosine")
    if not rates.pop("bias_correction"):
      rates["rule"] = f"bert_{rates['rule']}"
    if curve[0] == "polynomial" or (decays and curve[1]):
      if curve not in _SCHEDULES or (power != 0.5 and not decays):
        raise ConfigError(
          f"optimizer.schedule={curve[0]!r} with decay_from_zero={curve[1]}, "
          f"warmup_times_decay={curve[2]} and power={power}: there is no such "
          "schedule now; begin another run, with one of today's."
        )
      rates["schedule"] = _SCHEDULES[curve]
  if "task" in config:
    config["task"] = renewed_task(config["task"]["kind"], config["task"])
  share = train.pop("warmup_share", 1)
  if share < 1 and rates["warmup_steps"] == round(share * train["num_steps"]):
    rates["warmup_steps"] = share
  return config


def renewed_task(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a task's options of an earlier version as those of this one."""
  values = dict(values)
  if kind in ("tagging", "features"):
    if values.pop("tag_all_subwords", True) is False:  # Of no use to a CRF.
      values["decode"] = "words"
    if values.pop("crf", False):
      values["decode"] = "crf"
  return values
