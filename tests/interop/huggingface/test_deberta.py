"""DeBERTa-v2's folders: long rows, older names, and what is refused."""

import json

import jax
import numpy as np
import pytest
import sentencepiece

from helpers import peers, task_files, tokenizer_texts
from maskedlm.core.errors import CorpusError, InteropError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.finetune import config as configs
from maskedlm.finetune import run
from maskedlm.interop.huggingface import exporter, importer
from maskedlm.modeling import masked_lm
from maskedlm.training.checkpoints import load


def save(folder, **changes):
  return peers.save_model(folder, "DebertaV2", "ForMaskedLM", **changes)


def test_rows_of_600_tokens(tmp_path):
  """Distances of all 512 rows of the table, and of 512 and more."""
  changes = {
    "max_relative_positions": -1,
    "max_position_embeddings": 512,
    "num_hidden_layers": 2,
  }
  model, tokenizer = save(tmp_path, **changes)
  found = peers.read_model(tmp_path)
  rng = np.random.default_rng(0)
  ids = rng.integers(5, tokenizer.vocab_size, (2, 600)).astype(np.int32)
  real = (np.arange(600) < np.array([[600], [530]])).astype(np.int32)
  batch = {"input_ids": ids, "segment_ids": real}
  batch["token_type_ids"] = np.zeros_like(ids)
  theirs = peers.run(model, batch)["last_hidden_state"]
  encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
  ours = encode(found.cfg, found.params, batch, None, False)
  peers.assert_close({"x": ours}, {"x": theirs}, batch)


def test_a_published_discriminator(tmp_path):
  """Its heads of pretraining are left out: they predict at random."""
  folder, lines = tmp_path / "theirs", []
  save(folder)
  peers.change_config(folder, architectures=...)

  def publish(tensors):
    kept = {n: x for n, x in tensors.items() if not n.startswith("cls.")}
    row = np.ones(24, np.float32)
    return kept | {
      "lm_predictions.lm_head.bias": np.ones(131, np.float32),
      "mask_predictions.LayerNorm.weight": row,
      "deberta.embeddings.position_embeddings.weight": np.ones((512, 24)),
    }

  peers.change_tensors(folder, publish)
  found = importer.import_model(folder, tmp_path / "ours", log=lines.append)
  assert set(found.params) == {"encoder"}
  (left,) = (line for line in lines if line.startswith("left out"))
  assert "mask_predictions" in left and "(3 tensors)" in left


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    ({"conv_kernel_size": 3}, "conv_kernel_size=3, 0 is supported"),
    ({"pos_att_type": ["c2p"]}, r"pos_att_type=\['c2p'\], \['c2p', 'p2c'\]"),
    ({"position_biased_input": True}, "position_biased_input=True"),
    ({"max_relative_positions": -1}, "max_relative_positions=18, 512"),
  ],
)
def test_other_attention_is_refused(tmp_path, changes, words):
  save(tmp_path)
  peers.change_config(tmp_path, **changes)
  with pytest.raises(InteropError, match=words):
    peers.read_model(tmp_path)


def test_an_imported_one_is_tuned_and_opened_by_transformers(tmp_path):
  folder, ours, out = (tmp_path / name for name in ("theirs", "ours", "out"))
  save(folder)
  importer.import_model(folder, ours, part="encoder", log=print)
  config = configs.default("classification")
  for part, count, seed in (("train", 40, 1), ("dev", 13, 2)):
    path = tmp_path / f"{part}.tsv"
    path.write_text(task_files.make_file("classification", count, seed).text)
    config.data[part] = str(path)
  config.init_from = str(ours)
  config.data.update(length=17, batch_size=8, pack=False)
  config.train.update(epochs=1, log_every=1)
  config.model.update(dropout=0.0, attention_dropout=0.0, unroll=False)
  result = run.finetune(configs.typed(config), tmp_path / "run")
  assert result["steps"] == 5
  before = load.load_params(ours)[0]["encoder"]["distances"]["position"]
  after = load.load_params(tmp_path / "run")[0]["encoder"]["distances"]
  assert (before["embedding"] != after["position"]["embedding"]).any()
  exporter.export_huggingface(tmp_path / "run", out, log=print)
  config = json.loads((out / "config.json").read_text())
  assert config["architectures"] == ["DebertaV2ForSequenceClassification"]
  peers.transformers.AutoTokenizer.from_pretrained(out)
  theirs = peers.transformers.AutoModelForSequenceClassification
  assert theirs.from_pretrained(out).config.norm_rel_ebd == "layer_norm"


TEXTS = ["the  cat sat", " A dog.", "unknown \u4e2d here", "[MASK] \nx", ""]


def publish_spm(folder, **stated):
  """Saves a model of 320 rows with spm.model, as the published ones are."""
  save(folder, vocab_size=320)
  for path in folder.glob("*token*"):
    path.unlink()
  names = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
  tokenizer_texts.train_sentencepiece(
    folder / "spm.model",
    **{f"{role}_id": i for i, role in enumerate(names)},
    **{f"{role}_piece": name for role, name in names.items()},
  )
  stated = {"do_lower_case": False, "vocab_type": "spm"} | stated
  (folder / "tokenizer_config.json").write_text(json.dumps(stated))


@pytest.mark.parametrize(
  "stated", [{}, {"tokenizer_class": "DebertaV2Tokenizer"}]
)
def test_the_ids_of_spm_model(tmp_path, stated):
  folder, ours, out = (tmp_path / name for name in ("theirs", "ours", "out"))
  publish_spm(folder, **stated)
  importer.import_model(folder, ours, part="encoder", log=print)
  made = load_tokenizer(ours / "tokenizer")
  # 300 pieces, then [MASK]; the other rows of the model have no token.
  assert (made.vocab_size, *made.special) == (320, 0, 3, 1, 2, 300)
  assert [made.tokens(i) for i in (300, 301)] == ["[MASK]", "[unused row 301]"]
  library = sentencepiece.SentencePieceProcessor(
    model_file=str(folder / "spm.model")
  )
  theirs = peers.transformers.AutoTokenizer.from_pretrained(folder)
  assert type(theirs).__name__ == "DebertaV2Tokenizer"
  exporter.export_huggingface(ours, out, log=print)
  again = peers.transformers.AutoTokenizer.from_pretrained(out)
  for text in TEXTS:
    ids = made.encode(text).ids.tolist()
    assert ids == library.encode(text)
    for tokenizer in (theirs, again):
      if "[MASK]" not in text:  # Which is a special token only there.
        assert ids == tokenizer(text, add_special_tokens=False)["input_ids"]
  pair = again("the cat", "sat")["input_ids"]
  assert pair == theirs("the cat", "sat")["input_ids"]


def test_other_rules_beside_spm_model_are_refused(tmp_path):
  publish_spm(tmp_path / "theirs", split_by_punct=True)
  with pytest.raises(CorpusError, match="'deberta-v2' adds its own rules"):
    importer.import_model(
      tmp_path / "theirs", tmp_path / "ours", part="encoder", log=print
    )
  assert not (tmp_path / "ours").exists()
