"""Directories that can't be imported: each problem has its own error."""

import json
import math
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from helpers import peers
from helpers.workdirs import assert_same_trees
from maskedlm.cli import main
from maskedlm.core.errors import InteropError
from maskedlm.interop.huggingface import config_json, parameter_names

torch = pytest.importorskip("torch")
load_torch = pytest.importorskip("safetensors.torch").load_file

LAYER = "bert.encoder.layer.1.attention.output.dense.weight"


@pytest.fixture
def folder(tmp_path):
  peers.save_model(tmp_path / "theirs", "Bert", "ForMaskedLM")
  return tmp_path / "theirs"


@pytest.mark.parametrize(
  ("file", "content", "expected"),
  [
    ("config.json", None, r"has no config.json: expected"),
    ("adapter_config.json", "{}", r"json: a PEFT adapter"),
    # As in the hub's cache.
    ("snapshots/4f2c/config.json", "{}", "model, such as {}/snapshots/4f2c"),
    ("config.json", "{", r"config.json is not JSON"),
  ],
)
def test_no_config(tmp_path, file, content, expected):
  if content:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
  with pytest.raises(InteropError, match=expected.format(tmp_path)):
    config_json.load_config(tmp_path)


def test_an_unsupported_architecture(folder):
  peers.change_config(
    folder, model_type="xlnet", auto_map={"AutoModel": "modeling.X"}
  )
  known = "bert, roberta, xlm-roberta, camembert, distilbert, electra, mode"
  with pytest.raises(
    InteropError, match=f"model_type='xlnet' .*known: {known}.*never run"
  ):
    peers.read_model(folder)


def test_custom_code_is_not_run(folder):
  peers.change_config(folder, auto_map={"AutoModel": "modeling_x.X"})
  lines = []
  peers.read_model(folder, log=lines.append)
  assert lines == [f"{folder}: custom code (auto_map) is not run"]


UNSUPPORTED = {
  "Bert": [
    ({"hidden_size": ...}, "hidden_size is missing"),
    ({"hidden_size": "24"}, "hidden_size='24', expected an integer"),
    ({"num_hidden_layers": True}, "num_hidden_layers=True, expected an int"),
    ({"hidden_dropout_prob": math.nan}, "hidden_dropout_prob=nan, expected 0"),
    ({"hidden_act": "relu"}, "the activation 'relu', gelu.* are supported"),
    ({"architectures": "BertModel"}, "architectures='BertModel' has another t"),
    ({"is_decoder": True}, "is_decoder=True, False is supported"),
    (
      {"position_embedding_type": "relative_key"},
      "position_embedding_type='relative_key', 'absolute' is supported",
    ),
    ({"num_attention_heads": 5}, "a width of 24 for 5 attention heads, expec"),
  ],
  "ModernBert": [
    ({"layer_types": [[]]}, r"layer_types=\[\[\]\]; supported: full_att"),
    ({"layer_types": 5}, "layer_types=5 has another type than in transformers"),
    # In transformers, a token would attend only to itself.
    ({"local_attention": 1}, "local_attention=1, expected 2 or more"),
    (
      {"global_rope_theta": "x", "rope_parameters": ...},
      "global_rope_theta='x', expected a number",
    ),
    ({"rope_parameters": {"full_attention": [1]}}, "rope_parameters=.*objects"),
    ({"num_attention_heads": 8}, "hidden_size=24 for 8 attention heads: rotar"),
  ],
  "EuroBert": [
    ({"rope_parameters": {"rope_type": "llama3"}}, "rope_type='llama3', 'defa"),
    ({"head_dim": 8}, "head_dim=8, expected 4"),
    ({"num_key_value_heads": 4}, "num_key_value_heads=4, expected a divisor"),
  ],
}


@pytest.mark.parametrize(
  ("architecture", "fields", "expected"),
  [(of, *row) for of, rows in UNSUPPORTED.items() for row in rows],
)
def test_unsupported_options(tmp_path, architecture, fields, expected):
  peers.save_model(tmp_path, architecture, "ForMaskedLM")
  peers.change_config(tmp_path, **fields)
  with pytest.raises(InteropError, match=f"config.json: {expected}"):
    peers.read_model(tmp_path)


def test_positions_are_counted_after_pad():
  """Of 12 rows with [PAD] = 9, 10 and 11 are positions; of 10, none is."""
  fields = {
    "vocab_size": 50,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "pad_token_id": 9,
  }

  def positions(rows):
    config = {**fields, "max_position_embeddings": rows}
    roberta = parameter_names.ARCHITECTURES["roberta"]
    return config_json.parse_encoder_config(config, roberta, "x").max_positions

  assert [positions(12), positions(11)] == [2, 1]
  with pytest.raises(
    InteropError,
    match="=10 leaves 0 positions after pad_token_id=9, expected 1 to",
  ):
    positions(10)


def test_all_misfitting_tensors_are_listed(folder):
  path = folder / "model.safetensors"
  tensors = load_file(path)
  del tensors["cls.predictions.bias"]
  tensors[LAYER] = tensors[LAYER][:, :-1].copy()
  tensors["bert.encoder.layer.7.output.dense.bias"] = np.zeros(24, np.float32)
  name = "bert.embeddings.LayerNorm.weight"
  tensors[name] = tensors[name].astype(np.int8)
  tensors["cls.predictions.decoder.weight"] = np.zeros((131, 24), np.float32)
  save_file(tensors, path)
  with pytest.raises(InteropError) as info:
    peers.read_model(folder)
  lines = str(info.value).splitlines()
  assert lines[0] == f"{folder}: 5 tensors don't fit its config.json:"
  assert {line.strip() for line in lines[1:]} == {
    "cls.predictions.bias is missing",
    f"{LAYER} is [24, 23], expected [24, 24]",
    "bert.encoder.layer.7.output.dense.bias is not in the encoder of "
    "config.json",
    f"{name} is of I8, expected one of F64, F32, F16, BF16",
    "cls.predictions.decoder.weight differs from "
    "bert.embeddings.word_embeddings.weight: maskedlm ties them",
  }


@pytest.mark.parametrize("bad", [np.float32(np.nan), np.float64(1e39)])
def test_non_finite_values(folder, bad):
  def change(tensors):
    tensors[LAYER] = tensors[LAYER].astype(bad.dtype)
    tensors[LAYER][3, 4] = bad
    return tensors

  peers.change_tensors(folder, change)
  with pytest.raises(InteropError, match=f"{LAYER} has values that are"):
    peers.read_model(folder)


def test_a_missing_head(folder):
  """sentence-transformers may name a class whose head it dropped."""
  path = folder / "model.safetensors"
  whole = load_file(path)
  encoder = {n: x for n, x in whole.items() if not n.startswith("cls.")}
  save_file(encoder, path)
  lines = []
  assert sorted(peers.read_model(folder, log=lines.append).params) == [
    "encoder"
  ]
  assert lines == [f"{folder} has no mlm_head, unlike a BertForMaskedLM"]
  # Half a head is an error; the encoder alone can be imported.
  half = "cls.predictions.transform.dense.weight"
  untied = {"cls.predictions.decoder.weight": np.zeros((131, 24), np.float32)}
  save_file(encoder | {half: whole[half]} | untied, path)
  with pytest.raises(InteropError, match=r"; import the .* --part encoder:\n"):
    peers.read_model(folder)
  assert sorted(peers.read_model(folder, part="encoder").params) == ["encoder"]


@pytest.mark.parametrize(
  ("labels", "expected"),
  [
    (["x", "y"], r"=\['x', 'y'\] has another type"),
    (5, "=5 has another type than in transformers"),
    ({"a": "x"}, "=.* from 0"),
    ({"0": "x", "2": "y"}, "=.* from 0"),
  ],
)
def test_malformed_labels(tmp_path, labels, expected):
  peers.save_model(tmp_path, "Bert", "ForTokenClassification")
  peers.change_config(tmp_path, id2label=labels)
  with pytest.raises(InteropError, match=f"config.json: id2label{expected}"):
    peers.read_model(tmp_path)


def test_truncated_file(folder):
  path = folder / "model.safetensors"
  path.write_bytes(path.read_bytes()[:-1])
  with pytest.raises(InteropError, match=r"damaged or truncated .* bytes\. F"):
    peers.read_model(folder)


def test_pickles_are_refused_with_a_remedy(folder):
  """The command keeps every tensor, whatever the class; it is run here."""
  path = folder / "model.safetensors"
  before, tensors = peers.read_model(folder).params, load_torch(path)
  names = sorted(tensors)
  path.unlink()
  for i, some in enumerate((names[:9], names[9:])):
    shard = folder / f"pytorch_model-0000{i + 1}-of-00002.bin"
    torch.save({name: tensors[name] for name in some}, shard)
  (folder / "training_args.bin").write_bytes(b"")
  with pytest.raises(InteropError, match=r"has no .*-00001-of-00002.bin") as e:
    peers.read_model(folder)
  command = str(e.value).partition("trust it: ")[2]
  assert "weights_only=True" in command
  subprocess.run(command, shell=True, check=True)
  assert_same_trees(before, peers.read_model(folder).params)


@pytest.mark.parametrize(
  ("file", "expected"),
  [
    ("tf_model.h5", r"tf_model\.h5.*from_tf=True"),
    ("x", r"has no weights: expected model.safe"),
  ],
)
def test_no_weights(folder, file, expected):
  (folder / "model.safetensors").rename(folder / file)
  with pytest.raises(InteropError, match=expected):
    peers.read_model(folder)


def test_shards(folder):
  whole = peers.read_model(folder).params
  tensors = load_file(folder / "model.safetensors")
  (folder / "model.safetensors").unlink()
  names = sorted(tensors)
  index = {"weight_map": {}}
  for i, part in enumerate((names[:9], names[9:])):
    file = f"model-{i}.safetensors"
    save_file({name: tensors[name] for name in part}, folder / file)
    index["weight_map"] |= dict.fromkeys(part, file)
  path = folder / "model.safetensors.index.json"
  path.write_text(json.dumps(index))
  assert_same_trees(whole, peers.read_model(folder).params)
  (folder / "model-1.safetensors").unlink()
  with pytest.raises(InteropError, match=r"1 of 2 shards: model-1.safetensors"):
    peers.read_model(folder)
  path.write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))
  with pytest.raises(InteropError, match="expected a file beside it"):
    peers.read_model(folder)
  path.write_text("{}")
  with pytest.raises(InteropError, match="expected a weight_map"):
    peers.read_model(folder)


def test_old_tensor_names(folder):
  """gamma and beta, no prefix, buffers, and another name of the bias."""
  path = folder / "model.safetensors"
  old = {}
  for name, x in load_file(path).items():
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    name = name.replace("LayerNorm.bias", "LayerNorm.beta")
    name = name.replace("predictions.bias", "predictions.decoder.bias")
    old[name.removeprefix("bert.")] = x
  old["embeddings.position_ids"] = np.arange(18)[None]
  old["vis.scale"] = np.zeros(1, np.float32)
  before = peers.read_model(folder).params
  save_file(old, path)
  lines = []
  after = peers.read_model(folder, log=lines.append).params
  left = "left out, not part of an imported head: vis.scale (1 tensors)"
  assert lines == [left]
  assert_same_trees(before, after)


@pytest.mark.parametrize(
  ("command", "expected"),
  [
    ("import --from hf ./nothing --out o", "nothing is not a directory"),
    ("import --from jax nothing --out o", "known: hf, word2vec"),
    ("import --from hf x --out gs://b/o", "gs://b/o: expected"),
    ("export --checkpoint x --to hf --out o", "no such"),
    ("export --checkpoint x --to hf --out gs://b/o", "on this machine"),
  ],
)
def test_errors_of_the_verbs(command, expected, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  assert main.main(command.split()) == 2
  error = capsys.readouterr().err
  assert error.startswith("error: ") and error.count("\n") == 1
  assert expected in error
  assert not list(tmp_path.iterdir())
