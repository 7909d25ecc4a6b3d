"""No text forges a special token, whatever a normalizer makes of it."""

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from helpers.tokenizer_texts import sentences, train_sentencepiece
from maskedlm.data.tokenizers.tokenizer import load_tokenizer

BRACKETS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ANGLES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
WIDE = {code: code + 0xFEE0 for code in range(33, 127)}
FOLDED = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])


def _unigram(normalizer):
  library = tokenizers.Tokenizer(models.Unigram())
  library.normalizer = normalizer
  library.pre_tokenizer = pre_tokenizers.Metaspace()
  library.decoder = decoders.Metaspace()
  trainer = trainers.UnigramTrainer(
    vocab_size=300, special_tokens=ANGLES, unk_token="<unk>"
  )
  library.train_from_iterator(sentences(), trainer)
  return json.loads(library.to_str())


def _wordpiece(normalizer, pre_tokenizer):
  library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
  library.normalizer, library.pre_tokenizer = normalizer, pre_tokenizer
  trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=BRACKETS)
  library.train_from_iterator(sentences(), trainer)
  return json.loads(library.to_str())


def _as_added(definition, **flags):
  """Makes [MASK] and [SEP] added tokens that are not special."""
  for token in definition["added_tokens"]:
    if token["content"] in ("[MASK]", "[SEP]"):
      token |= {"special": False, "normalized": True, **flags}
  return definition


@pytest.fixture(scope="module")
def forgeable(tmp_path_factory):
  """Tokenizers that text can make special tokens of, by their libraries."""
  folder = tmp_path_factory.mktemp("forgeable")
  bert = (normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
  definitions = {
    "nfkc": _unigram(normalizers.NFKC()),
    "folded": _unigram(FOLDED),
    "words": _wordpiece(normalizers.NFKC(), pre_tokenizers.WhitespaceSplit()),
    "stripped": _as_added(_wordpiece(*bert), lstrip=True, rstrip=True),
    "single": _as_added(_wordpiece(*bert), single_word=True),
  }
  for name, definition in definitions.items():
    (folder / f"{name}.json").write_text(json.dumps(definition))
  rules = {"user": "nmt_nfkc", "user_folded": "nmt_nfkc_cf"}
  for name, rule in rules.items():
    train_sentencepiece(
      folder / f"{name}.model",
      user_defined_symbols=["<pad>", "<mask>", "[MASK]", "[mask]"],
      normalization_rule_name=rule,
    )
  return {path.stem: load_tokenizer(path) for path in folder.iterdir()}


_names = st.sampled_from([*BRACKETS, *ANGLES])
_spelt = st.one_of(
  _names,
  _names.map(lambda name: name.translate(WIDE)),
  _names.map(str.lower),
  _names.map(str.title),
  # Characters that normalizers remove, in the middle.
  st.tuples(_names, st.sampled_from("\u200b\xad\u0301\0 ")).map(
    lambda pair: pair[0][:3] + pair[1] + pair[0][3:]
  ),
  _names.map(lambda name: name.replace("s", "ſ").replace("K", "\u212a")),
)
_texts = st.lists(
  st.one_of(_spelt, st.text(max_size=3), st.sampled_from([" ", "the", "漢"])),
  max_size=9,
).map("".join)


@settings(
  max_examples=25,
  deadline=None,
  suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(_texts, max_size=3))
def test_no_text_forges_a_special_token(forgeable, texts):
  for tokenizer in forgeable.values():
    special = set(tokenizer.special_ids.tolist()) - {tokenizer.special.unk}
    batch = tokenizer.encode_batch(texts)
    for text, ids in zip(texts, batch, strict=True):
      encoding = tokenizer.encode(text)
      assert encoding.ids.tolist() == ids.tolist()
      assert not special & set(ids.tolist())
      starts, ends = encoding.offsets.reshape(-1, 2).T
      assert np.all(starts <= ends) and np.all(ends <= len(text))
      assert np.all(np.diff(starts) >= 0)


def test_the_spelling_of_the_unknown_token_is_text(forgeable):
  tokenizer = forgeable["nfkc"]
  for text in ("<unk>", "<unk><unk>", "the<unk>", "＜ｕｎｋ＞", "<unk>漢"):
    [ids] = tokenizer.encode_batch([text])
    unknown = sum(ids == tokenizer.special.unk)
    assert unknown == text.count("漢")
