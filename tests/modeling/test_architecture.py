"""EncoderConfig: its checks, choices and derived sizes."""

import dataclasses
import json

import pytest

from helpers import encoder_reference
from helpers.encoder_reference import L
from maskedlm.config import defaults
from maskedlm.core.errors import ConfigError
from maskedlm.modeling import (
  architecture,
  encoder,
  heads,
  layers,
  masked_lm,
  mlp,
)
from maskedlm.modeling.architecture import EncoderConfig, encoder_config
from maskedlm.modeling.attention.dispatch import IMPLEMENTATIONS


def test_config_survives_json():
  cfg = encoder_reference.config(remat="dots")
  text = json.dumps(dataclasses.asdict(cfg))
  assert EncoderConfig(**json.loads(text)) == cfg


def test_encoder_config_takes_the_model_section():
  model = defaults.default().model
  cfg = encoder_config(model, 30_522, 512)
  assert (cfg.vocab_size, cfg.num_layers, cfg.head_size) == (30_522, 12, 64)


def test_global_layers():
  cfg = encoder_reference.config(num_layers=5, local_window=2, global_every=2)
  assert cfg.global_layers == (True, False, True, False, True)
  cfg = dataclasses.replace(cfg, local_window=0)
  assert cfg.global_layers == (True,) * 5


def test_choices_are_those_of_the_tables():
  tables = {
    "activation": layers.ACTIVATIONS,
    "dtype": layers.DTYPES,
    "remat": encoder.REMAT,
    "attention": IMPLEMENTATIONS,
    "position": ("learned", "rope", "alibi", "disentangled"),
    "norm_order": encoder.RESIDUALS,
    "norm_kind": encoder.NORMS,
    "mlp": mlp.MLPS,
    "pooler": heads.POOLERS,
    "row_pool": (*heads.ROW_POOLS, "late"),
    "mlm_head": ("dense", "linear"),
    "family": masked_lm.FAMILIES,
  }
  known = {name: tuple(table) for name, table in tables.items()}
  stated = {
    field.name: field.metadata["choices"]
    for field in dataclasses.fields(architecture.EncoderConfig)
    if field.metadata and field.metadata["choices"]
  }
  assert known == stated


@pytest.mark.parametrize(
  ("changes", "expected"),
  [
    ({"width": 25}, r"model.width=25 .*model.num_heads=3; set model.width=27"),
    ({"activation": "gelu_tan"}, r'did you mean "gelu_tanh"'),
    ({"dtype": "float16"}, r"model.dtype='float16'.*float32, bfloat16"),
    ({"remat": "all"}, r"model.remat='all'.*none, dots, full"),
    ({"num_layers": 0}, r"model.num_layers=0 .*1 to 4096"),
    ({"max_positions": 12}, r"data.length=13 .*model.max_positions=12"),
    ({"position": "rop"}, r"model.position='rop'.*did you mean \"rope\""),
    ({"norm_order": "first"}, r"model.norm_order='first'.*post, pre"),
    ({"norm_kind": "batch"}, r"model.norm_kind='batch'.*layer, rms"),
    ({"mlp": "geglu"}, r"model.mlp='geglu'.*plain, gated"),
    ({"local_window": 5}, r"model.local_window=5 .*even; set it to 6"),
    ({"local_window": -2}, r"model.local_window=-2 .*0 or more"),
    ({"rope_theta": 0.0}, r"model.rope_theta=0.0 .*1 or more"),
    ({"dropout": 1.0}, r"model.dropout=1.0 .*0 or more, below 1"),
    (
      {"position": "rope", "width": 24, "num_heads": 8},
      "size must be even.* is 3",
    ),
    ({"num_kv_heads": 2}, r"model.num_kv_heads=2 .*model.num_heads=3"),
    ({"skip_first_norm": True}, r"skip_first_norm=True needs .*'pre'"),
    (
      {"mlm_head": "linear", "embedding_width": 12},
      "of 24 numbers by .* have 12; set model.tied=False or",
    ),
    (
      {"mlm_head": "linear", "biases": False},
      "model.tied=True and model.biases=False has no .*; set model.tied=False",
    ),
    (
      {"position": "rope", "width": 27, "num_heads": 3},
      r"size must be even.*27.*3 is 9",
    ),
  ],
)
def test_wrong_options_are_named(changes, expected):
  model = encoder_reference.config()
  with pytest.raises(ConfigError, match=expected):
    encoder_config(dataclasses.replace(model, **changes), 131, L)


def test_as_many_heads_of_keys_is_the_model_without_groups():
  model = encoder_reference.config()

  def with_groups(count):
    return encoder_config(
      dataclasses.replace(model, num_kv_heads=count), 131, L
    )

  plain = encoder_config(model, 131, L)
  assert with_groups(3) == plain
  assert plain.key_value_heads == 3
  assert with_groups(1) != plain


def test_rows_may_have_max_positions_tokens():
  model = encoder_reference.config(max_positions=L)
  assert encoder_config(model, 131, L).max_positions == L
  with pytest.raises(ConfigError, match=f"set model.max_positions={L + 1}"):
    encoder_config(model, 131, L + 1)


def test_derived_sizes_by_hand():
  padded = [
    encoder_reference.config(vocab_size=size).padded_vocab_size
    for size in (1, 128, 129, 256)
  ]
  assert padded == [128, 128, 256, 256]
  types = [
    encoder_reference.config(pair_types=pair, type_vocab_size=size).num_types
    for pair, size in ((2, 2), (1, 2), (2, 0))
  ]
  assert types == [2, 1, 0]


def test_a_restored_config_chooses_attention_anew():
  cfg = encoder_reference.config(attention="splash", width=48)
  found = architecture.restored(dataclasses.asdict(cfg))
  assert found == dataclasses.replace(cfg, attention="auto")
