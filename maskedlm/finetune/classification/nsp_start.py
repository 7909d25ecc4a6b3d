"""Starts the classifier of pairs from the pretrained next-sentence head.

Both heads are a dense layer with two outputs on the pooler's vector of the
pair, or on that of [CLS]. The pretrained one's are 0, B follows A, and 1, B is
a random text (Devlin et al. 2019, arXiv:1810.04805, section 3.1) or, where
pairs were swapped, A and B are swapped (Lan et al. 2020, arXiv:1909.11942,
section 3.1).
"""

from collections.abc import Callable, Sequence

from maskedlm.core.errors import ConfigError
from maskedlm.core.task import Params
from maskedlm.runtime.console import log

_OPTION = "task.head_from=nsp"


def initial_heads(
  labels: Sequence[str], follows: str, *, pooler: bool, pairs: bool
) -> Callable[[Params], Params]:
  """Returns Application.initial_heads.

  Args:
    labels: the names of the classifier's outputs, in their order; () for
      scores.
    follows: the label that means that B follows A.
    pooler: whether the classifier reads the pooler's vector.
    pairs: whether the examples are pairs.

  Raises:
    ConfigError: the classifier is not of the next-sentence head's form.
  """
  if not pairs:
    raise ConfigError(
      f"{_OPTION} is for pairs, but the examples are texts: name the column of "
      "the second one, --config.task.text_b=COLUMN."
    )
  if len(labels) != 2:
    raise ConfigError(
      f"{_OPTION}: the next-sentence head has 2 outputs; expected two labels, "
      f"not {', '.join(labels)[:60] or 'scores'}."
    )

  def take(pretrained: Params) -> Params:
    if "nsp_head" not in pretrained:
      parts = ", ".join(sorted(pretrained)) or "nothing"
      raise ConfigError(
        f"{_OPTION}: there is no pretrained nsp_head to start from (taken from "
        f"init_from: {parts}); expected a model that was pretrained with "
        "next-sentence prediction (objective mlm_nsp), pretrained=True and "
        "model.fresh_head=False."
      )
    if pooler != ("pooler" in pretrained):
      reads = "the raw [CLS] vector" if pooler else "the pooler's vector"
      raise ConfigError(
        f"{_OPTION}: the next-sentence head reads {reads}; expected "
        f"task.pooler={not pooler}."
      )
    order = (0, 1) if labels[0] == follows else (1, 0)
    (other,) = {*labels} - {follows}
    log(
      f"head: class_head from init_from's nsp_head: {follows!r} is B follows "
      f"A (task.positive), {other!r} is not"
    )
    dense = pretrained["nsp_head"]["dense"]
    return {
      "class_head": {
        "dense": {name: x[..., order] for name, x in dense.items()}
      }
    }

  return take
