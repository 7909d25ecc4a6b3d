"""The masked language model: the encoder and head that objectives share.

An objective may add other heads to the parameters, and other terms to the loss.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from maskedlm.core.task import Batch, Key, Metrics, Params
from maskedlm.modeling import losses, reports, vocabulary_softmax
from maskedlm.modeling.arrays import Array, Bool, Float
from maskedlm.modeling.bilm import BiLm
from maskedlm.modeling.encoder import Encoder, EncoderConfig
from maskedlm.modeling.heads import MlmHead, gather_positions, predicted_at

FAMILIES = {"transformer": Encoder, "bilm": BiLm}


def init(cfg: EncoderConfig, encoder_key: Key, head_key: Key) -> Params:
  """Returns fresh parameters: encoder, mlm_head."""
  hidden = jnp.zeros((1, 1, cfg.width))
  encoder = init_encoder(cfg, encoder_key)
  head = MlmHead(cfg).init(head_key, hidden, token_embedding(encoder))["params"]
  return {"encoder": encoder, "mlm_head": head}


def init_encoder(cfg: EncoderConfig, key: Key) -> Params:
  """Returns fresh parameters of the encoder."""
  # The shapes of parameters do not depend on the batch: one row of one token.
  ids = jnp.zeros((1, 1), jnp.int32)
  return make_encoder(cfg).init(key, ids, ids, ids, train=False)["params"]


def make_encoder(cfg: EncoderConfig) -> nn.Module:
  """Returns the encoder; whatever its family, it is called as Encoder is."""
  return FAMILIES[cfg.family](cfg)


def encode(
  cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train: bool
) -> Float[Array, "B L D"]:
  """Returns the encoder's vectors of a batch (see `encoder_inputs`).

  If the rows are packed into longer ones for the encoder (see
  finetune/common/packing.py), the result is unpacked, with zeros on padding.
  `key` is for dropout; unused unless train.
  """
  if heard := reports.listener():
    layers = encode_layers(cfg, params, batch, key, train)
    real = encoder_inputs(batch)["segment_ids"] > 0
    rows = batch.get("example_weights", ())
    real = real * rows[:, None] if len(rows) == len(real) else real
    heard.layers.append((layers, real))
    return unpack(layers[-1], batch)
  hidden: Any = make_encoder(cfg).apply(
    {"params": params["encoder"]},
    **encoder_inputs(batch),
    train=train,
    rngs={"dropout": key} if train else {},
  )
  return unpack(hidden, batch)


def head_rngs(key: Key, train: bool) -> dict[str, Key]:
  """Returns the rngs of a head; its dropout key differs from `encode`'s."""
  return {"dropout": jax.random.fold_in(key, 1)} if train else {}


def encoder_inputs(batch: Batch) -> Batch:
  """Returns the encoder's arguments, int32 [R, S] each.

  They are the packed rows if there are any; otherwise [R, S] = [B, L].
  "positions" is None if the batch has none, which stands for 0..L-1. A batch
  may have "causal_rows" [B].
  """
  names = ["input_ids", "token_type_ids", "segment_ids", "positions"]
  if "packed" not in batch:
    names += ["causal_rows"] * ("causal_rows" in batch)
    return {name: batch.get(name) for name in names}
  packed = batch["packed"]  # [G, r, S] each.
  return {
    name: packed[name].reshape(-1, packed[name].shape[-1]) for name in names
  }


def unpack(
  hidden: Float[Array, "R S D"], batch: Batch
) -> Float[Array, "B L D"]:
  """Returns the vectors of each row from those of `encoder_inputs(batch)`."""
  if "packed" not in batch:
    return hidden
  places = batch["places"]
  G, _, L = places.shape
  D = hidden.shape[-1]
  vectors = jnp.take_along_axis(
    hidden.reshape(G, -1, D), places.reshape(G, -1, 1), axis=1
  )
  real = batch["segment_ids"] > 0
  return jnp.where(real[..., None], vectors.reshape(-1, L, D), 0)


def encode_layers(
  cfg: EncoderConfig, params: Params, batch: Batch, key=None, train=False
) -> Float[Array, "layers R S D"]:
  """Returns the vectors of the N + 1 layers; arguments as in `encode`.

  The first are the embeddings, projected to the width of the layers; the last
  are the result of `encode`. If cfg.norm_order is "pre", only the last are
  normalised, by final_norm. For a packed batch, see `unpack`.
  """
  hidden, collected = make_encoder(cfg).apply(
    {"params": params["encoder"]},
    **encoder_inputs(batch),
    train=train,
    mutable=["intermediates"],
    rngs={"dropout": key} if train else {},
  )
  if not cfg.num_layers:
    return hidden[None]
  (embedded,) = collected["intermediates"]["embedded"]
  (layers,) = collected["intermediates"]["layers"]["layer"]
  below = jnp.concatenate([embedded[None], layers[:-1]])
  below = below.reshape(cfg.num_layers, *hidden.shape)
  return jnp.concatenate([below, hidden[None]])


def attention_entropy(
  cfg: EncoderConfig, params: Params, batch: Batch
) -> Float[Array, "N R S"]:
  """Returns the entropy of attention's weights, mean of heads, in float32.

  It is in nats; memory is linear in the length. The architecture must be a
  transformer's.
  """
  return _collect_attention(cfg, params, batch, "entropy", "entropy")


def attention_scores(
  cfg: EncoderConfig, params: Params, batch: Batch
) -> Float[Array, "N B H L S"]:
  """Returns the scores before the softmax in float32.

  They are q·k / sqrt(K) (Vaswani et al. 2017, equation 1) of position l and s
  by head h of layer n, and -1e9 where l does not attend to s.
  """
  return _collect_attention(cfg, params, batch, "attention", "scores")


def _collect_attention(cfg, params, batch: Batch, collection: str, name: str):
  _, collected = Encoder(cfg).apply(
    {"params": params["encoder"]},
    **encoder_inputs(batch),
    train=False,
    mutable=[collection],
  )
  (values,) = collected[collection]["layers"]["attention"][name]
  return values


def loss(
  cfg: EncoderConfig,
  params: Params,
  batch: Batch,
  hidden: Float[Array, "B L D"],
) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of the masked tokens, as Task.loss does.

  The parameters have "encoder" and "mlm_head"; the batch has masked_positions,
  masked_labels and masked_weights, [B, P] each.
  """
  return terms_and_metrics(loss_and_correct(cfg, params, batch, hidden), batch)


def loss_and_correct(
  cfg: EncoderConfig,
  params: Params,
  batch: Batch,
  hidden: Float[Array, "B L D"],
) -> tuple[Float[Array, "B P"], Bool[Array, "B P"] | Float[Array, "B P"]]:
  """Returns (loss, correct) of masked tokens; arguments as in `loss`."""
  output = functools.partial(
    vocabulary_softmax.loss_and_correct, labels=batch["masked_labels"]
  )
  if cfg.reads != "apart":
    at = predicted_at(cfg, batch["masked_positions"])
    head = functools.partial(predict_tokens, cfg, params)
    weights = batch["masked_weights"]
    reports.report_places(gather_positions(hidden, at), weights, head)
  return predict(cfg, params, batch, hidden, output)


def predict(
  cfg: EncoderConfig,
  params: Params,
  batch: Batch,
  hidden: Float[Array, "B L D"],
  output=vocabulary_softmax.logits,
):
  """Returns logits [B, P, V] of the masked tokens; arguments as in `loss`.

  Another `output` layer may return something else (see MlmHead). Of two
  language models ("bilm_head") it is the mean of both, whose hidden vectors are
  those beside the token.
  """
  positions = batch["masked_positions"]
  if cfg.reads == "apart":
    table = token_embedding(params["encoder"])
    bias = params["bilm_head"]["bias"]
    sides = [
      output(cfg, gather_positions(half, positions + step), table, bias)
      for half, step in zip(jnp.split(hidden, 2, -1), (-1, 1), strict=True)
    ]
    return jax.tree.map(lambda left, right: (left + right) / 2, *sides)
  vectors = gather_positions(hidden, predicted_at(cfg, positions))
  return predict_tokens(cfg, params, vectors, output)


def predict_tokens(
  cfg: EncoderConfig,
  params: Params,
  vectors: Float[Array, "B P D"],
  output=vocabulary_softmax.logits,
):
  """Returns the MLM head's logits [B, P, V], or another `output`'s result."""
  table = token_embedding(params["encoder"])
  head = {"params": params["mlm_head"]}
  return MlmHead(cfg).apply(head, vectors, table, output)


def terms_and_metrics(scores, batch: Batch) -> tuple[Metrics, Metrics]:
  """Returns (terms, metrics) of the masked tokens' (loss, correct) [B, P]."""
  loss, correct = (
    losses.weighted_sum(x, batch["masked_weights"]) for x in scores
  )
  return {"mlm": loss}, {"mlm_loss": loss, "mlm_accuracy": correct}


def with_generator(params: Params) -> Params:
  """Returns the parameters of a generator: encoder and mlm_head.

  ELECTRA's shares the discriminator's embeddings (objectives/electra.py),
  DeBERTa's has its own.
  """
  embeddings = params["encoder"]["embeddings"]
  encoder = {"embeddings": embeddings, **params["generator"]}
  return {"encoder": encoder, "mlm_head": params["mlm_head"]}


def token_embedding(encoder_params: Params) -> Float[Array, "V E"]:
  """Returns the token embedding, which heads use as output layer too."""
  return encoder_params["embeddings"]["token"]["embedding"]
