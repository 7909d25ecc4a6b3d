"""Lists the heads that can be imported or exported: their shapes and outputs.

Subtrees of parameters that are not in HEADS are not exported.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from maskedlm.core.task import Array, Params
from maskedlm.modeling import masked_lm
from maskedlm.modeling.architecture import EncoderConfig
from maskedlm.modeling.heads import MlmHead, NspHead, Pooler, row_vector
from maskedlm.modeling.task_heads.answers import AnswerHead
from maskedlm.modeling.task_heads.label_heads import ClassHead, TagHead
from maskedlm.pretraining.objectives.deberta import RtdHead
from maskedlm.pretraining.objectives.electra import DiscriminatorHead


class HeadInputs(NamedTuple):
  """The inputs of heads."""

  tokens: Any  # [B, L, D], the encoder's output.
  pooled: Any  # [B, D], the pooler's output; without a pooler, row_vector's.
  table: Any  # [V, E], token embeddings.


class Head(NamedTuple):
  """A head: the module that a subtree of the parameters belongs to."""

  # (cfg, number of labels) -> module.
  module: Callable[[EncoderConfig, int], Any]
  inputs: Callable[[HeadInputs], tuple]  # The module's arguments.
  # The module's result -> {name of an output: array}.
  outputs: Callable[[Array], dict[str, Array]]
  kwargs: Mapping[str, Any] = {}  # The module's keyword arguments.


def _tokens(vectors: HeadInputs) -> tuple:
  return (vectors.tokens,)


def _pooled(vectors: HeadInputs) -> tuple:
  return (vectors.pooled,)


def _logits(x) -> dict[str, Array]:
  return {"logits": x}


HEADS = {
  "pooler": Head(
    lambda cfg, n: Pooler(cfg),
    lambda vectors: (vectors.pooled[:, None],),
    _logits,  # Unused: row_vector applies it.
  ),
  "mlm_head": Head(
    lambda cfg, n: MlmHead(cfg),
    lambda vectors: (vectors.tokens, vectors.table),
    lambda x: {"mlm_logits": x},
  ),
  "nsp_head": Head(
    lambda cfg, n: NspHead(cfg), _pooled, lambda x: {"nsp_logits": x}
  ),
  "discriminator_head": Head(
    lambda cfg, n: DiscriminatorHead(cfg),
    _tokens,
    lambda x: {"discriminator_logits": x},
  ),
  "rtd_head": Head(
    lambda cfg, n: RtdHead(cfg), _tokens, lambda x: {"discriminator_logits": x}
  ),
  "class_head": Head(ClassHead, _pooled, _logits, {"train": False}),
  "choice_head": Head(
    lambda cfg, n: ClassHead(cfg, 1), _pooled, _logits, {"train": False}
  ),
  "tagger": Head(TagHead, _tokens, _logits, {"train": False}),
  "span_head": Head(
    lambda cfg, n: AnswerHead(cfg),
    _tokens,
    lambda x: {"start_logits": x[..., 0], "end_logits": x[..., 1]},
    {"train": False},
  ),
}


def param_shapes(
  cfg: EncoderConfig, heads: Iterable[str], num_labels: int
) -> Params:
  """Returns the tree of jax.ShapeDtypeStruct of an encoder and heads."""

  def init(key):  # Only traced: nothing of these sizes is allocated.
    D = cfg.width
    table = jnp.zeros((cfg.padded_vocab_size, cfg.embedding_size))
    vectors = HeadInputs(jnp.zeros((1, 1, D)), jnp.zeros((1, D)), table)
    params = {"encoder": masked_lm.init_encoder(cfg, key)}
    for name in heads:
      head = HEADS[name]
      module = head.module(cfg, num_labels)
      variables = module.init(key, *head.inputs(vectors), **head.kwargs)
      params[name] = variables["params"]
    return params

  return jax.eval_shape(init, jax.random.key(0))


def compute_outputs(
  params: Params, cfg: EncoderConfig, batch: Mapping[str, Array]
) -> dict[str, Array]:
  """Returns the outputs of the encoder and of every head for a batch.

  The batch has input_ids, token_type_ids and segment_ids, [B, L] each.

  Returns:
    last_hidden_state [B, L, D] and the result of `head_outputs`, in float32.
  """
  hidden = masked_lm.encode(cfg, params, batch, None, False)
  outputs = head_outputs(params, cfg, hidden, batch["segment_ids"])
  return {"last_hidden_state": hidden.astype(jnp.float32), **outputs}


def head_outputs(
  params: Params, cfg: EncoderConfig, hidden: Array, segment_ids: Array
) -> dict[str, Array]:
  """Returns the outputs of every head, in float32, of hidden vectors [B, L, D].

  Returns:
    For the heads in params: pooler_output [B, D], mlm_logits [B, L, V],
    nsp_logits [B, 2], discriminator_logits [B, L], logits [B, labels] (choices:
    [B, 1]) or [B, L, labels], start_logits and end_logits [B, L].
  """
  vectors = HeadInputs(
    hidden,
    row_vector(cfg, hidden, segment_ids, params.get("pooler")),
    masked_lm.token_embedding(params["encoder"]),
  )
  outputs = {"pooler_output": vectors.pooled} if "pooler" in params else {}
  for name, head in HEADS.items():
    if name not in params or name == "pooler":
      continue
    dense = params[name].get("dense")  # Its outputs are the labels.
    module = head.module(cfg, dense["kernel"].shape[-1] if dense else 0)
    x = module.apply(
      {"params": params[name]}, *head.inputs(vectors), **head.kwargs
    )
    outputs |= head.outputs(x)
  if "mlm_logits" in outputs:
    outputs["mlm_logits"] = outputs["mlm_logits"][..., : cfg.vocab_size]
    if cfg.shifted:  # Where the tokens are, as in other models.
      x = outputs["mlm_logits"]
      outputs["mlm_logits"] = jnp.concatenate([x[:, :1], x[:, :-1]], axis=1)
  return {name: x.astype(jnp.float32) for name, x in outputs.items()}
