"""Models of transformers with random weights of odd sizes, and their outputs.

CLASSES lists all imported ones: (architecture, end of the class's name).
"""

import functools
import json
import json.decoder
import pathlib

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from maskedlm.data.tokenizers import tokenizer as tokenizers
from maskedlm.interop.huggingface import config_json, importer, tokenizer_files

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

B, L, D, H, F, N, E, LABELS = 5, 13, 24, 3, 40, 3, 10, 7
LENGTHS = np.array([13, 12, 7, 3, 2])
_HEADS = (
  "Model",
  "ForMaskedLM",
  "ForSequenceClassification",
  "ForTokenClassification",
  "ForQuestionAnswering",
  "ForMultipleChoice",
)
ROBERTAS = ("Roberta", "XLMRoberta", "Camembert")
LLAMAS = ("EuroBert", "Llama")
CLASSES = (
  *((a, "Model") for a in ("Roberta", "Bert")),
  ("XLMRoberta", "ForMaskedLM"),  # Same code as RoBERTa's.
  ("Camembert", "ForMaskedLM"),
  ("Camembert", "ForSequenceClassification"),
  ("Bert", "ForPreTraining"),
  ("Bert", "ForNextSentencePrediction"),
  ("Electra", "ForPreTraining"),
  *((a, h) for a in ("Bert", "Roberta") for h in _HEADS[1:]),
  *((a, h) for a in ("DistilBert", "Electra", "ModernBert") for h in _HEADS),
  *(("DebertaV2", h) for h in _HEADS),
  *((a, h) for a in ("EuroBert", "Esm") for h in _HEADS[:4]),
)


def make_config(architecture, tokenizer, **changes):
  """Returns a small config of odd sizes."""
  special = tokenizer.special
  sizes = {
    "vocab_size": tokenizer.vocab_size,
    "hidden_size": D,
    "num_hidden_layers": N,
    "num_attention_heads": H,
    "intermediate_size": F,
    "max_position_embeddings": 17 + special.pad + 1,
    "pad_token_id": special.pad,
    "bos_token_id": special.cls,
    "eos_token_id": special.sep,
    "id2label": {i: f"label {i}" for i in range(LABELS)},
    "label2id": {f"label {i}": i for i in range(LABELS)},
  }
  if architecture == "DistilBert":
    theirs = {
      "hidden_size": "dim",
      "num_hidden_layers": "n_layers",
      "num_attention_heads": "n_heads",
      "intermediate_size": "hidden_dim",
    }
    sizes = {theirs.get(name, name): x for name, x in sizes.items()}
  if architecture in ROBERTAS:
    sizes |= {"type_vocab_size": 1, "layer_norm_eps": 1e-5}
  if architecture == "Electra":
    sizes["embedding_size"] = E
  if architecture == "Esm":
    sizes |= {
      "mask_token_id": special.mask,
      "position_embedding_type": "rotary",
      "emb_layer_norm_before": False,
      "token_dropout": True,
      "layer_norm_eps": 1e-5,
    }
  if architecture == "DebertaV2":
    sizes |= {
      "relative_attention": True,
      "position_buckets": 256,
      "max_relative_positions": 512,
      "pos_att_type": "p2c|c2p",
      "share_att_key": True,
      "norm_rel_ebd": "layer_norm",
      "position_biased_input": False,
    }
  if architecture in LLAMAS:
    sizes |= {"num_attention_heads": 6, "num_key_value_heads": 3}
  if architecture == "ModernBert":
    sizes |= {
      "cls_token_id": special.cls,
      "sep_token_id": special.sep,
      "local_attention": 4,
      "global_attn_every_n_layers": 2,
    }
  return getattr(transformers, f"{architecture}Config")(**(sizes | changes))


def make_model(architecture, ending, tokenizer, *, seed=0, **changes):
  """Returns a model in eval mode, with weights such that no term is 0 or 1."""
  config = make_config(architecture, tokenizer, **changes)
  if ending == "ForQuestionAnswering":
    config.num_labels = 2
  model = getattr(transformers, architecture + ending)(config).eval()
  rng = np.random.default_rng(seed)
  with torch.no_grad():
    for name, x in model.named_parameters():
      draw = 0.3 * rng.standard_normal(x.shape)
      is_norm = "norm" in name.lower() and name.endswith("weight")
      x.copy_(torch.tensor(draw + is_norm, dtype=torch.float32))
  return model


def save(model, tokenizer, folder) -> pathlib.Path:
  """Saves a model by save_pretrained, with the tokenizer's files."""
  folder = pathlib.Path(folder)
  model.save_pretrained(folder)
  tokenizer.save(folder)
  return folder


def save_model(folder, architecture, ending, **changes):
  """Saves a model and a tokenizer of its kind; returns (model, tokenizer)."""
  tokenizer = train_tokenizer(kind_of(architecture))
  model = make_model(architecture, ending, tokenizer, **changes)
  save(model, tokenizer, folder)
  return model, tokenizer


def make_batch(tokenizer, *, types: bool, seed=0):
  """Returns rows of 13, 12, 7, 3 and 2 real tokens, two segments each."""
  rng = np.random.default_rng(seed)
  column, length = np.arange(L), LENGTHS[:, None]
  real = column < length
  special = tokenizer.special
  ids = rng.integers(5, tokenizer.vocab_size, (B, L))
  ids[[0, 0, 1, 3], [2, 5, 4, 1]] = special.mask
  return {
    "input_ids": np.where(real, ids, special.pad).astype(np.int32),
    "token_type_ids": np.int32(real & (column > length // 2) & types),
    "segment_ids": real.astype(np.int32),
  }


def run(model, batch) -> dict[str, np.ndarray]:
  """Returns transformers' outputs under the names of heads.compute_outputs."""
  feed = {
    "input_ids": torch.tensor(batch["input_ids"], dtype=torch.long),
    "attention_mask": torch.tensor(batch["segment_ids"]),
  }
  if getattr(model.config, "type_vocab_size", 0) > 1:
    types = torch.tensor(batch["token_type_ids"], dtype=torch.long)
    feed["token_type_ids"] = types
  if "MultipleChoice" in type(model).__name__:
    # A single choice each.
    feed = {name: x[:, None] for name, x in feed.items()}
  with torch.no_grad():
    out = model(**feed, output_hidden_states=True)
  found = {"last_hidden_state": out.hidden_states[-1]}
  name = type(model).__name__
  logits = {
    "ForMaskedLM": "mlm_logits",
    "ForNextSentencePrediction": "nsp_logits",
    "ForPreTraining": "discriminator_logits",
  }
  for theirs, ours in (
    ("pooler_output", "pooler_output"),
    ("prediction_logits", "mlm_logits"),
    ("seq_relationship_logits", "nsp_logits"),
    ("start_logits", "start_logits"),
    ("end_logits", "end_logits"),
    ("logits", next((x for e, x in logits.items() if e in name), "logits")),
  ):
    if theirs in out and out[theirs] is not None:
      found[ours] = out[theirs]
  return {name: x.float().numpy() for name, x in found.items()}


def assert_close(ours, theirs, batch):
  """Checks equality to 1e-4, at real tokens."""
  real = batch["segment_ids"] > 0
  for name, expected in theirs.items():
    found = np.asarray(ours[name])
    assert found.shape == expected.shape, name
    if found.shape[:2] == real.shape:
      found, expected = found[real], expected[real]
    np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=name)


@functools.cache
def train_tokenizer(kind: str) -> tokenizers.Tokenizer:
  """Trains a small tokenizer; special tokens of BERT, RoBERTa or ALBERT."""
  text = (json.decoder.__doc__ or "") + (json.__doc__ or "")
  size = {"wordpiece": 131, "bpe": 277, "unigram": 117}[kind]
  return tokenizers.train_tokenizer(
    text.splitlines() * 3, kind=kind, vocab_size=size, lowercase=False
  )


def kind_of(architecture: str) -> str:
  """Returns the type of tokenizer for an architecture, except unigram."""
  is_bpe = architecture in (*ROBERTAS, *LLAMAS, "ModernBert")
  return "bpe" if is_bpe else "wordpiece"


def import_tokenizer(folder, out, **changes):
  """Imports BERT's tokenizer of 131 tokens, unless `changes` differ."""
  options = {"vocab_size": 131, "log": print}
  return tokenizer_files.import_tokenizer(folder, out, **options | changes)


def read_model(folder, *, part="", log=print):
  """Reads a directory of transformers (importer.read_model)."""
  config = config_json.load_config(folder)
  return importer.read_model(folder, config, part=part, log=log)


def change_config(folder, **fields):
  """Changes entries of a directory's config.json; `...` removes one."""
  path = folder / "config.json"
  fields = json.loads(path.read_text()) | fields
  kept = {name: x for name, x in fields.items() if x is not ...}
  path.write_text(json.dumps(kept))


def change_tensors(folder, change):
  """Replaces the tensors of a directory by change(tensors)."""
  path = folder / "model.safetensors"
  save_file(change(load_file(path)), path)
