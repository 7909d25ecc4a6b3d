"""`maskedlm retokenize`: a model with another vocabulary."""

import json

import jax
import numpy as np
import pytest

from helpers import model_logits, untrained
from maskedlm.cli import main
from maskedlm.config import defaults
from maskedlm.data.batches import placeholder_corpus
from maskedlm.interop import vocabulary_transfer
from maskedlm.modeling import masked_lm
from maskedlm.pretraining import objectives
from maskedlm.training.checkpoints import load


def test_a_row_is_the_mean_of_the_rows_that_spell_it():
  table = np.float32([[1, 2], [3, 6], [5, 10], [7, 0]])
  made = vocabulary_transfer.transfer_rows(
    table, [(2,), (0, 1), (0, 2, 3), (3,), ()], [0, 1, 2], rows=7
  )
  np.testing.assert_array_equal(made[0], [5, 10])
  np.testing.assert_array_equal(made[1], [2, 4])
  np.testing.assert_allclose(made[2], [13 / 3, 4], rtol=1e-6)
  np.testing.assert_array_equal(made[3], [7, 0])
  np.testing.assert_array_equal(made[5:], np.zeros((2, 2)))
  assert made.dtype == np.float32
  bias = vocabulary_transfer.transfer_rows(
    np.float32([1, 3, -4, 9]), [(0, 1), (3,)], [0, 1], rows=3
  )
  np.testing.assert_array_equal(bias, [2, 9, 0])


def test_a_row_that_nothing_spells_is_drawn_like_ordinary_rows():
  """Row 3 is special: it doesn't count in the mean and the deviation."""
  table = np.float32([[1, -2], [3, -2], [5, -2], [1e6, 1e6]])
  made = vocabulary_transfer.transfer_rows(
    table, [()] * 4000, [0, 1, 2], rows=4000
  )
  # 1, 3 and 5 have mean 3 and deviation sqrt(8/3); the bounds are 4 errors.
  assert abs(made[:, 0].mean() - 3) < 4 * (8 / 3 / 4000) ** 0.5
  assert abs(made[:, 0].var() - 8 / 3) < 4 * 8 / 3 * (2 / 4000) ** 0.5
  np.testing.assert_array_equal(made[:, 1], np.full(4000, -2))
  assert len(set(made[:, 0].tolist())) > 3900


def vocabulary(folder, tokens):
  folder.mkdir()
  path = folder / "vocab.txt"
  path.write_text("\n".join(tokens) + "\n")
  return path


def retokenize(checkpoint, tokenizer, out):
  options = f"--checkpoint={checkpoint}", f"--tokenizer={tokenizer}"
  return main.main(["retokenize", *options, f"--out={out}"])


def test_reordering_the_vocabulary_changes_nothing(tmp_path, capsys):
  """Added words change nothing either, where they don't occur."""
  old = untrained.pretrained(tmp_path / "old")
  tokenizer = load.describe_checkpoint(old).tokenizer
  words = [tokenizer.tokens(i) for i in range(tokenizer.vocab_size)]
  added = [*words[::-1], *(f"{word}zzq" for word in words[5:60])]
  path = vocabulary(tmp_path / "words", added)
  assert retokenize(old, path, tmp_path / "new") == 0
  assert "145 tokens instead of 90: 145 have" in capsys.readouterr().out
  exported = ("export", "--checkpoint", str(tmp_path / "new"), "--to", "hf")
  assert main.main([*exported, "--out", str(tmp_path / "hf")]) == 0
  card = (tmp_path / "hf" / "README.md").read_text()
  assert "| a new vocabulary for | old, not trained since |" in card
  a, b = load.open_checkpoint(old), load.open_checkpoint(tmp_path / "new")
  assert (b.cfg.vocab_size, b.cfg.padded_vocab_size) == (145, 256)
  text = "the cat sat on the mat"
  ids = a.tokenizer.encode(text).ids
  moved = b.tokenizer.encode(text).ids
  np.testing.assert_array_equal(moved, 89 - ids)

  def read(opened, ids):
    s = opened.tokenizer.special
    row = np.array([[s.cls, *ids[:-1], s.mask, s.sep]], np.int32)
    batch = {
      "input_ids": row,
      "token_type_ids": np.zeros_like(row),
      "segment_ids": np.ones_like(row),
    }
    encode = jax.jit(masked_lm.encode, static_argnums=(0, 4))
    hidden = encode(opened.cfg, opened.params, batch, None, False)
    places = np.array([[1, row.shape[1] - 2]])
    logits = model_logits.mlm_logits(opened.params, opened.cfg, batch, places)
    return hidden, logits

  (x, logits), (y, moved_logits) = read(a, ids), read(b, moved)
  np.testing.assert_array_equal(x, y)
  np.testing.assert_allclose(
    logits, moved_logits[..., 89::-1], rtol=1e-6, atol=1e-6
  )


@pytest.mark.parametrize("name", ["spanbert", "electra"])
def test_every_vocabulary_table_is_replaced(name):
  """The shapes are those of a new run with that vocabulary."""

  def fresh(vocab_size):
    config = defaults.default(name)
    config.model.update(
      num_layers=1, width=24, num_heads=4, mlp_width=40, max_positions=32
    )
    config.data.length = 32
    config.tokenizer.vocab_size = vocab_size
    task = objectives.make_task(
      config, placeholder_corpus.make_corpus(config.tokenizer)
    )
    params = jax.eval_shape(task.init, jax.random.key(0))
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), params)

  old, new = fresh(90), fresh(300)
  made = vocabulary_transfer.transfer_params(
    old, [(7,)] * 300, range(90), rows=384
  )
  assert jax.tree.map(np.shape, made) == jax.tree.map(np.shape, new)
  assert jax.tree.map(np.shape, old) != jax.tree.map(np.shape, new)


def test_a_run_starts_from_a_retokenized_model(tiny, tmp_path, capsys, on_one):
  """BPE replaces WordPiece; all parts of the model are taken over."""
  old = untrained.pretrained(tmp_path / "old")
  config, words, new = f"--config={tiny[0]}", tmp_path / "words", tmp_path / "x"
  kind = ("--config.tokenizer.kind=bpe", "--config.tokenizer.vocab_size=400")
  assert main.main(["tokenizer", config, *kind, f"--out={words}"]) == 0
  assert retokenize(old, words, new) == 0
  assert "tokens instead of 90" in capsys.readouterr().out
  origin = json.loads((new / "config.json").read_text())["retokenized"]
  assert origin["checkpoint"] == str(old)
  options = f"init_from={new}", "train.num_steps=1", "train.eval_rows=0"
  options += "optimizer.warmup_steps=0", "phases=()"
  argv = ["pretrain", config, *(f"--config.{option}" for option in options)]
  assert main.main([*argv, f"--workdir={tmp_path / 'run'}"]) == 0
  assert "encoder, mlm_head, pooler" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("checkpoint", "tokenizer", "out", "error"),
  [
    ("{tmp}/old", "{tmp}/old/tokenizer", "{tmp}/new", "is the tokenizer of"),
    (
      "{tmp}/old",
      "{tmp}/words/vocab.txt",
      "{tmp}/new",
      "no special token for mask",
    ),
    ("{tmp}/old", "{tmp}/bpe", "{tmp}/old", "exists"),
  ],
)
def test_wrong_input_is_a_one_line_error(
  tmp_path, capsys, checkpoint, tokenizer, out, error
):
  untrained.pretrained(tmp_path / "old")
  vocabulary(tmp_path / "words", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
  untrained.make_tokenizer("bpe").save(tmp_path / "bpe")
  paths = (x.format(tmp=tmp_path) for x in (checkpoint, tokenizer, out))
  assert retokenize(*paths) == 2
  err = capsys.readouterr().err
  assert err.count("\n") == 1
  assert error in err
  assert {x.name for x in tmp_path.iterdir()} == {"bpe", "old", "words"}
