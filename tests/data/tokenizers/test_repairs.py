"""Settings of training are off, and there is always an unknown token."""

import json

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from helpers.tokenizer_texts import sentences
from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

BRACKETS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ANGLES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def _bpe(pre_tokenizer, decoder, alphabet=(), **options):
  """Returns the tokenizer.json of a BPE, as a dict."""
  library = tokenizers.Tokenizer(models.BPE(**options))
  library.pre_tokenizer, library.decoder = pre_tokenizer, decoder
  trainer = trainers.BpeTrainer(
    vocab_size=300, special_tokens=ANGLES, initial_alphabet=list(alphabet)
  )
  library.train_from_iterator(["the cats see the dogs"] * 3, trainer)
  return json.loads(library.to_str())


def _byte_level(**options):
  steps = pre_tokenizers.ByteLevel(add_prefix_space=True)
  alphabet = pre_tokenizers.ByteLevel.alphabet()
  return _bpe(steps, decoders.ByteLevel(), alphabet, **options)


def _metaspace(**options):
  return _bpe(pre_tokenizers.Metaspace(), decoders.Metaspace(), **options)


def _load(tmp_path, definition):
  path = tmp_path / "tokenizer.json"
  path.write_text(json.dumps(definition))
  return load_tokenizer(path)


def _tokens(tokenizer, text):
  [ids] = tokenizer.encode_batch([text])
  assert tokenizer.encode(text).ids.tolist() == ids.tolist()
  return list(map(tokenizer.tokens, ids))


@pytest.mark.parametrize("dropout", [0.9, "0.9"])
def test_dropout_is_off_also_in_what_is_saved(tmp_path, dropout):
  definition = _byte_level(unk_token="<unk>")
  plain = _load(tmp_path, definition)
  definition["model"]["dropout"] = dropout
  tokenizer = _load(tmp_path, definition)
  assert tokenizer.sha256 == plain.sha256
  assert not plain.notes
  assert "dropout" in tokenizer.notes[0] and "0.9" in tokenizer.notes[0]
  text = " ".join(["the cats see the dogs"] * 20)
  assert _tokens(tokenizer, text) == _tokens(plain, text)
  tokenizer.save(tmp_path / "saved")
  saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())
  assert saved["model"]["dropout"] is None
  assert load_tokenizer(tmp_path / "saved").sha256 == plain.sha256


def test_a_bpe_without_unk_token_counts_what_it_lacks(tmp_path):
  definition = _metaspace()
  assert definition["model"]["unk_token"] is None
  tokenizer = _load(tmp_path, definition)
  unk = tokenizer.tokens(tokenizer.special.unk)
  tokens = _tokens(tokenizer, "the 漢字 cats 漢")
  assert tokens.count(unk) == 3
  assert [t for t in tokens if t != unk] == ["▁the", "▁", "▁cats", "▁"]
  assert "<unk>" in tokenizer.notes[0]
  # The ids of text that it knows are the library's.
  raw = tokenizers.Tokenizer.from_str(json.dumps(definition))
  text = "the cats see the dogs"
  assert _tokens(tokenizer, text) == raw.encode(text).tokens


def test_the_unknown_token_of_a_unigram_and_a_wordpiece(tmp_path):
  library = tokenizers.SentencePieceUnigramTokenizer()
  library.train_from_iterator(
    sentences(), vocab_size=300, special_tokens=ANGLES, show_progress=False
  )
  definition = json.loads(library.to_str())
  assert definition["model"]["unk_id"] is None
  tokenizer = _load(tmp_path, definition)
  assert "<unk>" in _tokens(tokenizer, "the 漢字")
  assert tokenizer.tokens(tokenizer.special.unk) == "<unk>"

  library = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
  library.normalizer = normalizers.BertNormalizer()
  library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  library.train_from_iterator(
    sentences(),
    trainers.WordPieceTrainer(vocab_size=300, special_tokens=BRACKETS),
  )
  definition = json.loads(library.to_str())
  tokenizer = _load(tmp_path, definition)
  assert "[UNK]" in _tokens(tokenizer, "the ☃")
  # The model's own is the one that is counted, whatever others there are.
  vocab = definition["model"]["vocab"]
  vocab["<unk>"] = vocab.pop("##a")
  tokenizer = _load(tmp_path, definition)
  assert tokenizer.special.unk == vocab["<unk>"]


def test_no_unknown_token_at_all_is_an_error(tmp_path):
  definition = _metaspace()
  vocab = definition["model"]["vocab"]
  definition["model"]["vocab"] = {
    "[UNK]x" if token == "<unk>" else token: i for token, i in vocab.items()
  }
  definition["added_tokens"].append(
    {**definition["added_tokens"][0], "content": "<unk>", "id": len(vocab)}
  )
  with pytest.raises(CorpusError, match=r"tokenizer\.json.*unk_token"):
    _load(tmp_path, definition)
