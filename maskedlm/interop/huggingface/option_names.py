"""Names the encoder's options in each architecture's config.json.

FIXED has the options whose value the architecture determines, FIELDS the others
with their names in config.json. parameter_names.py has the names of parameters.
"""

from typing import Any

_POST = {
  "position": "learned",
  "norm_order": "post",
  "norm_kind": "layer",
  "skip_first_norm": False,
  "embedding_norm": True,
  "mlp": "plain",
  "biases": True,
  "local_window": 0,
  "family": "transformer",
  "num_kv_heads": 0,
  "causal": False,
  "right_to_left": False,
  "mask_decoder": False,
  "row_pool": "cls",
  "mlm_head": "dense",
  "tied": True,
}
FIXED: dict[str, dict[str, Any]] = {
  "bert": _POST,
  "roberta": {**_POST, "pair_separators": 2},
  "xlm-roberta": {**_POST, "pair_separators": 2},
  "camembert": {**_POST, "pair_separators": 2},
  "electra": _POST,
  "distilbert": {**_POST, "norm_epsilon": 1e-12, "type_vocab_size": 0},
  "modernbert": {
    **_POST,
    "position": "rope",
    "norm_order": "pre",
    "skip_first_norm": True,
    "mlp": "gated",
    "biases": False,
    "type_vocab_size": 0,
  },
}
FIXED["eurobert"] = {
  **FIXED["modernbert"],
  "norm_kind": "rms",
  "skip_first_norm": False,
  "embedding_norm": False,
  "mlm_head": "linear",
  "tied": False,
  "pair_separators": 0,
}
del FIXED["eurobert"]["num_kv_heads"], FIXED["eurobert"]["row_pool"]
FIXED["esm"] = {
  **FIXED["modernbert"],
  "skip_first_norm": False,
  "mlp": "plain",
  "biases": True,
  "activation": "gelu",
  "pair_separators": 1,
}
FIXED["llama"] = {**FIXED["eurobert"], "causal": True}
FIXED["deberta-v2"] = {
  **_POST,
  "position": "disentangled",
  "type_vocab_size": 0,
}
for _option in ("local_window", "row_pool", "tied"):
  del FIXED["modernbert"][_option]
del FIXED["esm"]["embedding_norm"]
# Options of FIXED that don't change the encoder: they affect pairs or a head.
BESIDE_ENCODER = ("pair_separators", "mlm_head", "tied")

# Our option -> (their option, default if there is one).
_SIZES = {
  "vocab_size": ("vocab_size",),
  "num_layers": ("num_hidden_layers",),
  "width": ("hidden_size",),
  "num_heads": ("num_attention_heads",),
  "mlp_width": ("intermediate_size",),
  "max_positions": ("max_position_embeddings",),
  "init_stddev": ("initializer_range", 0.02),
}
_BERT = {
  **_SIZES,
  "activation": ("hidden_act", "gelu"),
  "dropout": ("hidden_dropout_prob", 0.1),
  "attention_dropout": ("attention_probs_dropout_prob", 0.1),
  "norm_epsilon": ("layer_norm_eps", 1e-12),
  "type_vocab_size": ("type_vocab_size", 2),
}
FIELDS: dict[str, dict[str, tuple]] = {
  "bert": _BERT,
  "roberta": _BERT,
  "xlm-roberta": _BERT,
  "camembert": _BERT,
  "electra": {**_BERT, "embedding_width": ("embedding_size",)},
  "distilbert": {
    **_SIZES,
    "num_layers": ("n_layers",),
    "width": ("dim",),
    "num_heads": ("n_heads",),
    "mlp_width": ("hidden_dim",),
    "activation": ("activation", "gelu"),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
  },
  "modernbert": {
    **_SIZES,
    "tied": ("tie_word_embeddings", True),
    "activation": ("hidden_activation", "gelu"),
    "dropout": ("mlp_dropout", 0.0),
    "attention_dropout": ("attention_dropout", 0.0),
    "norm_epsilon": ("norm_eps", 1e-5),
    "local_window": ("local_attention", 128),
  },
  "eurobert": {
    **_SIZES,
    "num_kv_heads": ("num_key_value_heads", 0),
    "activation": ("hidden_act", "silu"),
    "dropout": ("hidden_dropout", 0.0),  # transformers has none.
    "attention_dropout": ("attention_dropout", 0.0),
    "norm_epsilon": ("rms_norm_eps", 1e-5),
  },
}
FIELDS["esm"] = {
  **_BERT,
  "embedding_norm": ("emb_layer_norm_before", False),
  "token_dropout": ("token_dropout", False),
  "rope_theta": ("rope_theta", 10_000.0),
}
FIELDS["deberta-v2"] = {**_BERT, "norm_epsilon": ("layer_norm_eps", 1e-7)}
for _name in ("esm", "deberta-v2"):
  del FIELDS[_name]["type_vocab_size"]
FIELDS["llama"] = FIELDS["eurobert"] | {"norm_epsilon": ("rms_norm_eps", 1e-6)}
# Architecture -> {their option: the only supported value}.
_PLAIN = {
  "is_decoder": False,
  "add_cross_attention": False,
  "position_embedding_type": "absolute",
  "quantization_config": None,
}
REQUIRED = {
  **dict.fromkeys(FIXED, _PLAIN),
  "modernbert": {
    **_PLAIN,
    "attention_bias": False,
    "norm_bias": False,
    "mlp_bias": False,
    "classifier_bias": False,
    "decoder_bias": True,
    "rope_scaling": None,
  },
  "eurobert": {**_PLAIN, "attention_bias": False, "mlp_bias": False},
  "esm": {
    **_PLAIN,
    "position_embedding_type": "rotary",
    "is_folding_model": False,
    "hidden_act": "gelu",
  },
}
REQUIRED["llama"] = REQUIRED["eurobert"]
REQUIRED["deberta-v2"] = {
  **_PLAIN,
  "type_vocab_size": 0,
  "conv_kernel_size": 0,  # Of v2-xlarge: a convolution after layer 0.
}
# DeBERTa-v3's attention: what config.json must state, as its defaults differ.
DISENTANGLED = {
  "relative_attention": True,
  "position_buckets": 256,
  "max_relative_positions": 512,
  "pos_att_type": ["c2p", "p2c"],
  "share_att_key": True,
  "norm_rel_ebd": "layer_norm",
  "position_biased_input": False,
}
# Classes that use classifier_pooling, which every config has; its values -> our
# row_pool, the default first.
POOLED = ("ForSequenceClassification", "ForMultipleChoice")
POOLINGS = {
  "modernbert": {"cls": "cls", "mean": "mean"},
  "eurobert": {"late": "late", "bos": "cls", "mean": "mean"},
}
# Their activation -> ours; export writes the first one of each.
ACTIVATIONS = {
  "gelu": "gelu",
  "gelu_pytorch_tanh": "gelu_tanh",
  "gelu_new": "gelu_tanh",
  "gelu_fast": "gelu_tanh",
  "gelu_python": "gelu",
  "silu": "silu",
  "swish": "silu",
}
