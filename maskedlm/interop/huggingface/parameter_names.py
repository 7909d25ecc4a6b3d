"""Names the parameters of each architecture in transformers.

A key is one of our modules or arrays; a value is its name in transformers, or
several names that are concatenated to ours. Names in the encoder lack the
prefix ("bert.") that they have in a model with a head.
"""

from collections.abc import Mapping
from typing import NamedTuple

Names = Mapping[str, str | tuple[str, ...]]


class Architecture(NamedTuple):
  """A model_type of transformers."""

  model_type: str  # As in config.json.
  prefix: str  # Precedes the encoder's names in a model with a head.
  class_prefix: str  # BertForMaskedLM is "Bert" + "ForMaskedLM".
  encoder: Names  # Our modules without "encoder/".
  layer: str  # The prefix of layer n, "encoder.layer.{n}.".
  layers: Names  # Our modules without "encoder/layers/".
  heads: Mapping[str, Names]  # "ForMaskedLM" -> modules outside the encoder.
  # Name -> name of the array that it is tied to; a file may contain both.
  tied: Mapping[str, str]
  # "ForMultipleChoice" -> the pooler that the class's head needs.
  poolers: Mapping[str, str]
  # The MLM head's activation; "" = the encoder's.
  mlm_activation: str = ""
  # Whether positions start at the id of [PAD] + 1; earlier rows are unused.
  positions_after_pad: bool = False


_QKV = ("query", "key", "value")
_BERT_EMBEDDINGS = {
  "embeddings/token": "embeddings.word_embeddings",
  "embeddings/position": "embeddings.position_embeddings",
  "embeddings/token_type": "embeddings.token_type_embeddings",
  "embeddings/norm": "embeddings.LayerNorm",
}
_BERT_LAYERS: dict[str, str | tuple[str, ...]] = {
  "attention/qkv": tuple(f"attention.self.{x}" for x in _QKV),
  "attention/out": "attention.output.dense",
  "attention_norm": "attention.output.LayerNorm",
  "mlp/up": "intermediate.dense",
  "mlp/down": "output.dense",
  "mlp_norm": "output.LayerNorm",
}
_TOKENS = {"tagger/dense": "classifier"}


def _mlm(transform: str, norm: str, bias: str) -> Names:
  names = {"transform": transform, "norm": norm, "bias": bias}
  return {f"mlm_head/{ours}": theirs for ours, theirs in names.items()}


def _fine_tuned(pooler: Names) -> dict[str, Names]:
  """Returns the usual heads of fine-tuning, two of them on a pooler."""
  return {
    "ForSequenceClassification": {**pooler, "class_head/dense": "classifier"},
    "ForTokenClassification": _TOKENS,
    "ForQuestionAnswering": {"span_head/dense": "qa_outputs"},
    "ForMultipleChoice": {**pooler, "choice_head/dense": "classifier"},
  }


# Of RoBERTa and ELECTRA.
_CLASSIFIER = {
  "pooler/dense": "classifier.dense",
  "class_head/dense": "classifier.out_proj",
}
_BERT_POOLER = {"pooler/dense": "bert.pooler.dense"}
_BERT_MLM = _mlm(
  "cls.predictions.transform.dense",
  "cls.predictions.transform.LayerNorm",
  "cls.predictions.bias",
)
_BERT_NSP = {"nsp_head/dense": "cls.seq_relationship"}

BERT = Architecture(
  model_type="bert",
  prefix="bert.",
  class_prefix="Bert",
  encoder=_BERT_EMBEDDINGS,
  layer="encoder.layer.{n}.",
  layers=_BERT_LAYERS,
  heads={
    "Model": _BERT_POOLER,
    "ForPreTraining": {**_BERT_POOLER, **_BERT_MLM, **_BERT_NSP},
    "ForMaskedLM": _BERT_MLM,
    "ForNextSentencePrediction": {**_BERT_POOLER, **_BERT_NSP},
    **_fine_tuned(_BERT_POOLER),
  },
  tied={
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
  },
  poolers=dict.fromkeys(
    (
      "Model",
      "ForPreTraining",
      "ForNextSentencePrediction",
      "ForSequenceClassification",
      "ForMultipleChoice",
    ),
    "tanh",
  ),
)


_ROBERTA_POOLER = {"pooler/dense": "roberta.pooler.dense"}

ROBERTA = BERT._replace(
  model_type="roberta",
  prefix="roberta.",
  class_prefix="Roberta",
  heads={
    "Model": _ROBERTA_POOLER,
    "ForMaskedLM": _mlm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    **_fine_tuned(_ROBERTA_POOLER),
    "ForSequenceClassification": _CLASSIFIER,
  },
  tied={
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
  },
  mlm_activation="gelu",
  positions_after_pad=True,
)
XLM_ROBERTA = ROBERTA._replace(
  model_type="xlm-roberta", class_prefix="XLMRoberta"
)
CAMEMBERT = ROBERTA._replace(model_type="camembert", class_prefix="Camembert")

ELECTRA = Architecture(
  model_type="electra",
  prefix="electra.",
  class_prefix="Electra",
  encoder={**_BERT_EMBEDDINGS, "project": "embeddings_project"},
  layer="encoder.layer.{n}.",
  layers=_BERT_LAYERS,
  heads={
    "Model": {},
    "ForPreTraining": {
      "discriminator_head/transform": "discriminator_predictions.dense",
      "discriminator_head/dense": "discriminator_predictions.dense_prediction",
    },
    "ForMaskedLM": _mlm(
      "generator_predictions.dense",
      "generator_predictions.LayerNorm",
      "generator_lm_head.bias",
    ),
    **_fine_tuned({"pooler/dense": "sequence_summary.summary"}),
    "ForSequenceClassification": _CLASSIFIER,
  },
  tied={
    "generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"
  },
  poolers={"ForSequenceClassification": "gelu", "ForMultipleChoice": "gelu"},
  mlm_activation="gelu",
)

DISTILBERT = Architecture(
  model_type="distilbert",
  prefix="distilbert.",
  class_prefix="DistilBert",
  encoder={
    name: _BERT_EMBEDDINGS[name]
    for name in ("embeddings/token", "embeddings/position", "embeddings/norm")
  },
  layer="transformer.layer.{n}.",
  layers={
    "attention/qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "attention/out": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "mlp/up": "ffn.lin1",
    "mlp/down": "ffn.lin2",
    "mlp_norm": "output_layer_norm",
  },
  heads={
    "Model": {},
    "ForMaskedLM": _mlm(
      "vocab_transform", "vocab_layer_norm", "vocab_projector.bias"
    ),
    **_fine_tuned({"pooler/dense": "pre_classifier"}),
  },
  tied={
    "vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"
  },
  poolers={"ForSequenceClassification": "relu", "ForMultipleChoice": "relu"},
)

MODERNBERT = Architecture(
  model_type="modernbert",
  prefix="model.",
  class_prefix="ModernBert",
  encoder={
    "embeddings/token": "embeddings.tok_embeddings",
    "embeddings/norm": "embeddings.norm",
    "final_norm": "final_norm",
  },
  layer="layers.{n}.",
  layers={
    "attention/qkv": "attn.Wqkv",
    "attention/out": "attn.Wo",
    "attention_norm": "attn_norm",
    "mlp/gate_up": "mlp.Wi",
    "mlp/down": "mlp.Wo",
    "mlp_norm": "mlp_norm",
  },
  heads={
    "Model": {},
    "ForMaskedLM": _mlm("head.dense", "head.norm", "decoder.bias"),
    **_fine_tuned({"pooler/dense": "head.dense", "pooler/norm": "head.norm"}),
    "ForTokenClassification": {
      "tagger/transform/dense": "head.dense",
      "tagger/transform/norm": "head.norm",
      "tagger/dense": "classifier",
    },
    "ForQuestionAnswering": {
      "span_head/transform/dense": "head.dense",
      "span_head/transform/norm": "head.norm",
      "span_head/dense": "classifier",
    },
  },
  tied={"decoder.weight": "model.embeddings.tok_embeddings.weight"},
  poolers={"ForSequenceClassification": "norm", "ForMultipleChoice": "norm"},
)

# Llama's layers; the names of its decoders, too.
EUROBERT = Architecture(
  model_type="eurobert",
  prefix="model.",
  class_prefix="EuroBert",
  encoder={"embeddings/token": "embed_tokens", "final_norm": "norm"},
  layer="layers.{n}.",
  layers={
    "attention/qkv": tuple(f"self_attn.{x[0]}_proj" for x in _QKV),
    "attention/out": "self_attn.o_proj",
    "attention/group_query": "self_attn.q_proj",
    "attention/group_key_value": ("self_attn.k_proj", "self_attn.v_proj"),
    "attention/group_out": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "mlp/gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "mlp/down": "mlp.down_proj",
    "mlp_norm": "post_attention_layernorm",
  },
  heads={
    "Model": {},
    "ForMaskedLM": {"mlm_head/embedding": "lm_head.weight"},
    "ForSequenceClassification": {
      "pooler/dense": "dense",
      "class_head/dense": "classifier",
    },
    "ForTokenClassification": _TOKENS,
  },
  tied={},
  poolers={"ForSequenceClassification": "gelu"},
)
LLAMA = EUROBERT._replace(
  model_type="llama",
  class_prefix="Llama",
  heads={"Model": {}, "ForCausalLM": {"mlm_head/embedding": "lm_head.weight"}},
  poolers={},
)

ESM = ROBERTA._replace(
  model_type="esm",
  prefix="esm.",
  class_prefix="Esm",
  encoder={
    "embeddings/token": "embeddings.word_embeddings",
    "embeddings/norm": "embeddings.layer_norm",
    "final_norm": "encoder.emb_layer_norm_after",
  },
  layers=_BERT_LAYERS
  | {"attention_norm": "attention.LayerNorm", "mlp_norm": "LayerNorm"},
  heads={
    "Model": {"pooler/dense": "esm.pooler.dense"},
    "ForMaskedLM": ROBERTA.heads["ForMaskedLM"],
    "ForSequenceClassification": _CLASSIFIER,
    "ForTokenClassification": _TOKENS,
  },
  tied={"lm_head.decoder.weight": "esm.embeddings.word_embeddings.weight"},
  positions_after_pad=False,
)

DEBERTA = BERT._replace(
  model_type="deberta-v2",
  prefix="deberta.",
  class_prefix="DebertaV2",
  encoder={
    "embeddings/token": "embeddings.word_embeddings",
    "embeddings/norm": "embeddings.LayerNorm",
    "distances/position": "encoder.rel_embeddings",
    "distances/norm": "encoder.LayerNorm",
  },
  layers=_BERT_LAYERS
  | {"attention/qkv": tuple(f"attention.self.{x}_proj" for x in _QKV)},
  heads={
    "Model": {},
    "ForMaskedLM": _BERT_MLM,
    **_fine_tuned({"pooler/dense": "pooler.dense"}),
  },
  tied={
    "cls.predictions.decoder.weight": (
      "deberta.embeddings.word_embeddings.weight"
    ),
    "cls.predictions.decoder.bias": "cls.predictions.bias",
  },
  poolers={"ForSequenceClassification": "gelu", "ForMultipleChoice": "gelu"},
)

ARCHITECTURES = {
  a.model_type: a
  for a in (
    BERT,
    ROBERTA,
    XLM_ROBERTA,
    CAMEMBERT,
    DISTILBERT,
    ELECTRA,
    MODERNBERT,
    EUROBERT,
    LLAMA,
    ESM,
    DEBERTA,
  )
}
