"""Exported checkpoints are the same models in transformers."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers import peers, workdirs
from helpers.peers import assert_close
from helpers.workdirs import assert_same_trees
from maskedlm.core.errors import InteropError
from maskedlm.finetune.config import make_task
from maskedlm.interop.heads import compute_outputs
from maskedlm.interop.huggingface import exporter
from maskedlm.modeling import masked_lm
from maskedlm.modeling.encoder import EncoderConfig

transformers = pytest.importorskip("transformers")

# name -> (tokenizer, changes of the architecture, heads, class). Of the shipped
# architectures, test_every_config.py has more.
MODELS = {
  "roberta": (
    "bpe",
    {"type_vocab_size": 0, "activation": "gelu_tanh"},
    ("mlm_head",),
    "BertForMaskedLM",
  ),
  "SwiGLU": (
    "bpe",
    {**workdirs.MODERN, "activation": "silu"},
    ("mlm_head",),
    "ModernBertForMaskedLM",
  ),
  "all global": (
    "wordpiece",
    {**workdirs.MODERN, "local_window": 0},
    (),
    "ModernBertModel",
  ),
}


@pytest.mark.parametrize("name", MODELS)
def test_outputs_equal_transformers_and_import_restores(name, tmp_path):
  kind, changes, heads, class_name = MODELS[name]
  tokenizer = peers.train_tokenizer(kind)
  cfg = workdirs.config(tokenizer, **changes)
  params = workdirs.make_params(cfg, heads)
  path = workdirs.save(tmp_path / "ours", params, cfg, tokenizer)
  out = tmp_path / "theirs"
  assert exporter.export_huggingface(path, out, log=print) == class_name
  kind = getattr(transformers, class_name)
  model, loading = kind.from_pretrained(out, output_loading_info=True)
  assert not loading["missing_keys"]
  assert not loading["mismatched_keys"]
  batch = peers.make_batch(tokenizer, types=cfg.type_vocab_size > 1)
  theirs = peers.run(model.eval(), batch)
  ours = jax.jit(compute_outputs, static_argnums=1)(params, cfg, batch)
  assert_close(ours, theirs, batch)

  # And import again.
  again = peers.read_model(out)
  assert_same_trees(params, again.params)


@pytest.mark.parametrize(
  ("part", "class_name"),
  [
    ("", "ElectraForPreTraining"),
    ("generator", "ElectraForMaskedLM"),
    ("encoder", "ElectraModel"),
  ],
)
def test_electra(part, class_name, tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  cfg = workdirs.config(tokenizer, embedding_width=10)
  params, task = workdirs.make_electra(cfg, size=2 / 3, layers=1.0)
  path = workdirs.save(tmp_path / "ours", params, cfg, tokenizer, **task)
  lines = []
  out = tmp_path / "theirs"
  made = exporter.export_huggingface(path, out, part=part, log=lines.append)
  assert made == class_name
  if not part:
    assert lines == [
      "left out: the generator (export it with --part=generator)"
    ]
  kind = getattr(transformers, class_name)
  batch = peers.make_batch(tokenizer, types=True)
  theirs = peers.run(kind.from_pretrained(out).eval(), batch)
  if part == "generator":
    params = masked_lm.with_generator(params)
    cfg = EncoderConfig(**task["generator"])
  else:
    params = {n: params[n] for n in ("encoder", "discriminator_head")}
  ours = jax.jit(compute_outputs, static_argnums=1)(params, cfg, batch)
  assert_close(ours, theirs, batch)


def fine_tuned(kind, tokenizer, **changes):
  """Returns (params, cfg, task) as fine-tuning saves them."""
  cfg = workdirs.config(tokenizer, **changes)
  heads, labels = {
    "classification": (("pooler", "class_head"), [*"xyz"]),
    "tagging": (("tagger",), ["O", "B-X", "I-X", "B-Y"]),
  }[kind]
  params = workdirs.make_params(cfg, heads, len(labels))
  task = {
    "objective": kind,
    "kind": kind,
    "options": dataclasses.asdict(make_task(kind, {}).options),
    "about": {"labels": labels},
    "length": workdirs.T,
  }
  return params, cfg, task


def export(folder, params, cfg, task=None, **options):
  """Saves a model and exports it; returns (class name, log lines)."""
  tokenizer = peers.train_tokenizer("wordpiece")
  path = workdirs.save(folder / "ours", params, cfg, tokenizer, **(task or {}))
  lines = []
  made = exporter.export_huggingface(
    path, folder / "out", log=lines.append, **options
  )
  return made, lines


def test_an_unsupported_pooler(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  model = fine_tuned("classification", tokenizer, pooler="relu")
  with pytest.raises(InteropError, match="tanh pooler, this model relu"):
    export(tmp_path / "whole", *model, architecture="bert")
  made, lines = export(tmp_path / "encoder", *model, part="encoder")
  assert made == "BertModel"
  assert lines == ["left out: the pooler, which BertModel lacks"]


@pytest.mark.parametrize(
  ("changes", "expected"),
  [
    (
      {"position": "alibi"},
      r"bert has no .*model.position='alibi'.*--to=stablehlo",
    ),
    ({"num_kv_heads": 1}, r"bert has no .*model.num_kv_heads=1 \(only 0\)"),
    (
      {**workdirs.MODERN, "norm_kind": "rms"},
      "eurobert .*skip_first_norm=True",
    ),
    (
      {**workdirs.MODERN, "mlm_head": "linear", "tied": False},
      "MaskedLM has mlm_head/transform, .* this model lacks; .*--part=encoder",
    ),
    (
      {"activation": "gelu_tanh", "embedding_width": 10},
      r"electra always has model.activation=gelu, .*gelu_tanh",
    ),
  ],
)
def test_unsupported_options(changes, expected, tmp_path):
  cfg = workdirs.config(peers.train_tokenizer("wordpiece"), **changes)
  with pytest.raises(InteropError, match=expected):
    export(tmp_path, workdirs.make_params(cfg, ("mlm_head",)), cfg)
  assert [p.name for p in tmp_path.iterdir()] == ["ours"]


def test_unsupported_heads(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  params, *rest = fine_tuned("classification", tokenizer)
  del params["pooler"]
  with pytest.raises(InteropError, match="has pooler/dense, which this model"):
    export(tmp_path / "no pooler", params, *rest)
  params, *rest = fine_tuned("tagging", tokenizer)
  params = {**params, "crf": {"start": np.zeros(4)}}
  with pytest.raises(
    InteropError, match=r"has crf, which only maskedlm.*--part=encoder"
  ):
    export(tmp_path / "crf", params, *rest)


def test_the_model_card_lists_known_facts(tmp_path):
  tokenizer = peers.train_tokenizer("wordpiece")
  cfg = workdirs.config(tokenizer)
  params = workdirs.make_params(cfg, ("pooler", "mlm_head", "nsp_head"))
  identity = {
    "config": {
      "corpus": {"source": "text:/home/me/a/*.txt,b.txt", "path": ""},
      "data": {"train": "/home/me/c.tsv", "dev": "tfds:glue", "length": 64},
    },
    "corpus": "abc",
    "tokenizer": "def",
  }
  path = workdirs.save(
    tmp_path / "ours",
    params,
    cfg,
    tokenizer,
    step=1234,
    identity=identity,
    heldout={"mlm_loss": 3.14159},
  )
  exporter.export_huggingface(path, tmp_path / "out", log=print)
  card = (tmp_path / "out" / "README.md").read_text()
  count = sum(x.size for x in jax.tree.leaves(params))
  for line in (
    "pipeline_tag: fill-mask",
    "BertForPreTraining.from_pretrained(path)",
    f"| parameters | {count:,} |",
    "| corpus | text:*.txt,b.txt |",
    "| labelled data | c.tsv |",
    "| development set | tfds:glue |",
    "| tokens of a row | 64 |",
    "| steps | 1,234 |",
    "| held-out mlm_loss | 3.142 |",
  ):
    assert line in card, card
  assert "license:" not in card
