"""Tokens that begin a word: right for each kind of mark, or refused."""

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from helpers.tokenizer_texts import sentences, train_sentencepiece
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
Sequence = pre_tokenizers.Sequence
ByteLevel = pre_tokenizers.ByteLevel
Metaspace = pre_tokenizers.Metaspace


def _save(path, model, pre_tokenizer, normalizer=None, **options):
  library = tokenizers.Tokenizer(model)
  if normalizer:
    library.normalizer = normalizer
  library.pre_tokenizer = pre_tokenizer
  made = {
    models.BPE: trainers.BpeTrainer,
    models.WordPiece: trainers.WordPieceTrainer,
  }[type(model)]
  library.train_from_iterator(
    sentences(), made(vocab_size=400, special_tokens=NAMES, **options)
  )
  library.save(str(path))
  return path


def _starts(tokenizer, text):
  [ids] = tokenizer.encode_batch([text])
  return int(tokenizer.starts_word[ids].sum())


@pytest.mark.parametrize(
  "steps",
  [
    Metaspace(),
    Metaspace(replacement="_"),
    Metaspace(replacement="▁", prepend_scheme="never"),
    Metaspace(prepend_scheme="first", split=False),
    ByteLevel(add_prefix_space=False),
    Sequence([pre_tokenizers.WhitespaceSplit(), ByteLevel()]),
    Sequence([pre_tokenizers.Digits(), ByteLevel(add_prefix_space=False)]),
  ],
)
def test_spaces_marked_before_a_word(tmp_path, steps):
  path = _save(tmp_path / "t.json", models.BPE(unk_token="[UNK]"), steps)
  tokenizer = load_tokenizer(path)
  # The first word of a text may have no mark.
  assert _starts(tokenizer, "a method returns another method") in (4, 5)


@pytest.mark.parametrize(
  ("model", "steps", "options"),
  [
    # The space is dropped before the bytes are marked.
    (
      models.BPE(unk_token="[UNK]"),
      Sequence(
        [pre_tokenizers.WhitespaceSplit(), ByteLevel(add_prefix_space=False)]
      ),
      {},
    ),
    (
      models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
      pre_tokenizers.Whitespace(),
      {"end_of_word_suffix": "</w>"},
    ),
    (
      models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
      ByteLevel(),
      {"end_of_word_suffix": "</w>"},
    ),
    (
      models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=""),
      pre_tokenizers.BertPreTokenizer(),
      {"continuing_subword_prefix": ""},
    ),
  ],
)
def test_other_marks_are_refused(tmp_path, model, steps, options):
  path = _save(tmp_path / "t.json", model, steps, **options)
  with pytest.raises(CorpusError, match=r"t\.json.*which tokens begin a word"):
    load_tokenizer(path)


def test_a_bpe_with_the_prefix_of_wordpiece(tmp_path):
  model = models.BPE(unk_token="[UNK]", continuing_subword_prefix="@@")
  steps = pre_tokenizers.BertPreTokenizer()
  path = _save(
    tmp_path / "t.json", model, steps, continuing_subword_prefix="@@"
  )
  tokenizer = load_tokenizer(path)
  assert _starts(tokenizer, "a method returns another method.") == 6


def test_normalizers_that_mark_spaces(tmp_path):
  marks = normalizers.Sequence(
    [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
  )
  definition = tokenizers.Tokenizer(
    models.BPE(
      {n: i for i, n in enumerate([*NAMES, "▁a", "▁", "a", "b"])},
      [("▁", "a")],
      unk_token="[UNK]",
    )
  )
  definition.normalizer, definition.decoder = marks, decoders.Metaspace()
  definition.save(str(tmp_path / "t.json"))
  assert _starts(load_tokenizer(tmp_path / "t.json"), "ab aa b") == 3


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize("prefix", [True, False])
def test_the_models_of_sentencepiece(tmp_path, model_type, prefix):
  size = {"char": 60, "word": 200}.get(model_type, 300)
  train_sentencepiece(
    tmp_path / "t.model",
    model_type=model_type,
    vocab_size=size,
    add_dummy_prefix=prefix,
    hard_vocab_limit=False,
  )
  tokenizer = load_tokenizer(tmp_path / "t.model")
  assert _starts(tokenizer, "the to the of the") == 4 + prefix


def test_spaces_marked_after_a_word_are_refused(tmp_path):
  for model_type in ("unigram", "bpe"):
    train_sentencepiece(
      tmp_path / "t.model",
      treat_whitespace_as_suffix=True,
      model_type=model_type,
    )
    with pytest.raises(CorpusError, match=r"t\.model.*whitespace_as_suffix"):
      load_tokenizer(tmp_path / "t.model")
