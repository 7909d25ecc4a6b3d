"""Takes over the heads of a fine-tuned checkpoint, where they mean the same.

A model fine-tuned on TriviaQA and then on SQuAD keeps its head: the task is the
same, and so are the labels, the options that decide what the parameters mean
(of_head in contract.task_option), and the shapes. If any differs, the heads
start from random parameters. A log line says which of the two, and why.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from maskedlm.core.measured import to_json
from maskedlm.core.parse_json import parse_json
from maskedlm.core.task import Params
from maskedlm.finetune.contract import FinetuneTask, Options, options_that
from maskedlm.training.checkpoints.load import LoadedCheckpoint
from maskedlm.training.sharding import by_path

_NAMED = 3  # Labels that a line names.


def take_heads(
  start: LoadedCheckpoint,
  kind: str,
  task: FinetuneTask,
  label_info: Mapping[str, Any],
  heads: Params,
  log,
) -> Params:
  """Returns the checkpoint's parameters of all heads, or {} if any differs.

  A pretrained checkpoint has no such heads. `heads` has the shapes that are to
  be trained. If the checkpoint is fine-tuned, a line says what was done.
  """
  before = start.meta["task"]
  if not heads or "kind" not in before:
    return {}
  names = ", ".join(sorted(heads))
  if before["kind"] == kind:
    differences = [
      *_differences(
        _without_counts(before["about"]), _without_counts(_plain(label_info))
      ),
      *_differences(*_options_of_heads(before["options"], task.options)),
      # The first shape tells enough.
      *itertools.islice(
        _differences(
          _shapes({name: start.params.get(name, {}) for name in heads}),
          _shapes(heads),
        ),
        1,
      ),
    ]
  else:
    differences = [f"task {before['kind']} (here {kind})"]
  if differences:
    log(
      f"head: {names} from random parameters, as init_from's differs: "
      f"{'; '.join(differences)}"
    )
    return {}
  log(
    f"head: {names} from init_from, which has the same task and labels; "
    "model.fresh_head=True for random parameters"
  )
  return {name: start.params[name] for name in heads}


def _differences(
  old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
  for name in sorted(old.keys() | new.keys()):
    if old.get(name) != new.get(name):
      yield f"{name}: {_format_difference(old.get(name), new.get(name))}"


def _options_of_heads(
  old: Mapping[str, Any], options: Options
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Returns the options, by name, that heads of before and now depend on."""
  # A checkpoint from before an option was made with the default.
  old = {**_plain(dataclasses.asdict(type(options)())), **old}
  new = _plain(dataclasses.asdict(options))
  names = options_that(type(options), "of_head")
  before, now = (
    {f"task.{name}": x[name] for name in names} for x in (old, new)
  )
  return before, now


def _shapes(tree: Params) -> dict[str, tuple[int, ...]]:
  return {path: x.shape for path, x in by_path(tree).items()}


def _plain(x: Any) -> Any:
  """Returns a value as it is read back from a checkpoint."""
  return parse_json(to_json(x))


def _without_counts(x: Any) -> Any:
  if isinstance(x, Mapping):
    return {name: _without_counts(value) for name, value in x.items()}
  return None if isinstance(x, int) else x


def _format_difference(old: Any, new: Any) -> str:
  if not isinstance(old, list) or not isinstance(new, list):
    return f"{_format_value(old)} (here {_format_value(new)})"
  only_old = [x for x in old if x not in new]
  only_new = [x for x in new if x not in old]
  if not only_old and not only_new:
    return "the same in another order"
  sides = (("only in init_from", only_old), ("only here", only_new))
  return ", ".join(f"{where} {_format_value(x)}" for where, x in sides if x)


def _format_value(x: Any) -> str:
  if isinstance(x, list):
    names = ", ".join(map(repr, x[:_NAMED]))
    return names + (f", ... ({len(x)})" if len(x) > _NAMED else "")
  if isinstance(x, float):
    return f"{x:.6g}"
  return "none" if x is None else str(x)
