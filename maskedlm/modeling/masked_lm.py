"""The masked language model: encoder and head, as the objectives share them.

An objective adds its own heads beside these two subtrees, and its own terms
beside this one.
"""

import functools

import jax
import jax.numpy as jnp

from maskedlm.core.task import (Batch, Key, Metrics, Params)
from maskedlm.modeling import (losses, vocabulary_softmax)
from maskedlm.modeling.encoder import (Encoder, EncoderConfig)
from maskedlm.modeling.heads import (MlmHead, gather_positions)


def init(cfg: EncoderConfig, encoder_key: Key, head_key: Key) -> Params:
  """Fresh parameters: encoder, mlm_head."""
  # Parameters' shapes don't depend on the batch's: one row of one token.
  ids = jnp.zeros((1, 1), jnp.int32)
  hidden = jnp.zeros((1, 1, cfg.width))
  encoder = Encoder(cfg).init(encoder_key, ids, ids, ids, train=False)["params"]
  head = MlmHead(cfg).init(head_key, hidden, token_embedding(encoder))["params"]
  return {"encoder": encoder, "mlm_head": head}


def encode(cfg: EncoderConfig, params: Params, batch: Batch, key: Key, train):
  """The encoder's vectors [B, L, D] of a batch, with dropout from key.

  Several rows may have been packed in one that the encoder reads (see
  finetune/common/packing.py): each has its own vectors, and zeros where it ends.
  """
  hidden = Encoder(cfg).apply(
    {"params": params["encoder"]},
    **encoder_inputs(batch),
    train=train,
    rngs={"dropout": key} if train else {},
  )
  return unpack(hidden, batch)


def head_rngs(key: Key, train) -> dict[str, Key]:
  """Dropout's rngs of a head: not the key itself, which is `encode`'s."""
  return {"dropout": jax.random.fold_in(key, 1)} if train else {}


def encoder_inputs(batch: Batch) -> Batch:
  """What the encoder reads, [R, S] each: the batch, or what it is packed in."""
  names = ("input_ids", "token_type_ids", "segment_ids", "positions")
  if "packed" not in batch:
    return {name: batch.get(name) for name in names}
  packed = batch["packed"]  # [G, r, S] each.
  return {
    name: packed[name].reshape(-1, packed[name].shape[-1]) for name in names
  }


def unpack(hidden, batch: Batch):
  """[R, S, D] -> [B, L, D]: to each row of a packed batch its own vectors."""
  if "packed" not in batch:
    return hidden
  places = batch["places"]
  G, _, L = places.shape
  D = hidden.shape[-1]
  own = jnp.take_along_axis(
    hidden.reshape(G, -1, D), places.reshape(G, -1, 1), axis=1
  )
  real = batch["segment_ids"] > 0
  return jnp.where(real[..., None], own.reshape(-1, L, D), 0)


def encode_layers(cfg: EncoderConfig, params: Params, batch: Batch):
  """The vectors of every layer, without dropout: [N + 1, R, S, D].

  The embeddings' are the first (in the layers' width, where they have another),
  the last are what `encode` returns: with norms before the sums
  (cfg.norm_order "pre") they alone have been normalised, by final_norm. Those
  of a packed batch are still where the encoder read them: see `unpack`.
  """
  hidden, made = Encoder(cfg).apply(
    {"params": params["encoder"]},
    **encoder_inputs(batch),
    train=False,
    mutable=["intermediates"],
  )
  (embedded,) = made["intermediates"]["embedded"]
  (layers,) = made["intermediates"]["layers"]["layer"]
  below = jnp.concatenate([embedded[None], layers[:-1]])
  below = below.reshape(cfg.num_layers, *hidden.shape)
  return jnp.concatenate([below, hidden[None]])


def attention_weights(cfg: EncoderConfig, params: Params, batch: Batch):
  """Who attends to whom, without dropout: [N, B, H, L, S] float32.

  Each layer's softmax: how much of position S head H adds to position L. A row
  sums to 1, and is 0 where L does not see S.
  """
  _, made = Encoder(cfg).apply(
    {"params": params["encoder"]},
    batch["input_ids"],
    batch["token_type_ids"],
    batch["segment_ids"],
    batch.get("positions"),
    train=False,
    mutable=["attention"],
  )
  (weights,) = made["attention"]["layers"]["attention"]["weights"]
  return weights


def loss(
  cfg: EncoderConfig, params: Params, batch: Batch, hidden
) -> tuple[Metrics, Metrics]:
  """(terms, metrics) of the masked tokens: see Task.loss.

  Args:
    cfg: the architecture.
    params: with "encoder" and "mlm_head".
    batch: masked_positions, masked_labels and masked_weights, [B, P] each.
    hidden: [B, L, D], the encoder's vectors.
  """
  return terms_and_metrics(loss_and_correct(cfg, params, batch, hidden), batch)


def loss_and_correct(cfg: EncoderConfig, params: Params, batch: Batch, hidden):
  """(nats, hits) [B, P] of the masked tokens; arguments as those of `loss`."""
  output = functools.partial(
    vocabulary_softmax.loss_and_correct, labels=batch["masked_labels"]
  )
  return predict(cfg, params, batch, hidden, output)


def predict(
  cfg: EncoderConfig,
  params: Params,
  batch: Batch,
  hidden,
  output=vocabulary_softmax.logits,
):
  """Logits [B, P, V] of the masked tokens; arguments as those of `loss`.

  Or what another output layer makes of them (MlmHead).
  """
  return MlmHead(cfg).apply(
    {"params": params["mlm_head"]},
    gather_positions(hidden, batch["masked_positions"]),
    token_embedding(params["encoder"]),
    output,
  )


def terms_and_metrics(scores, batch: Batch) -> tuple[Metrics, Metrics]:
  """(terms, metrics) of the masked tokens' (nats, hits), [B, P] each."""
  nats, hits = (losses.weighted_sum(x, batch["masked_weights"]) for x in scores)
  return {"mlm": nats}, {"mlm_loss": nats, "mlm_accuracy": hits}


def with_generator(params: Params) -> Params:
  """ELECTRA's params as its generator's: encoder and mlm_head.

  The generator is an encoder that shares the discriminator's embeddings
  (objectives/electra.py).
  """
  embeddings = params["encoder"]["embeddings"]
  encoder = {**params["generator"], "embeddings": embeddings}
  return {"encoder": encoder, "mlm_head": params["mlm_head"]}


def token_embedding(encoder_params):
  """The table [V, D] that the encoder reads and the head predicts with."""
  return encoder_params["embeddings"]["token"]["embedding"]
