"""Special tokens: no text forges them; prompts may contain them."""

import numpy as np
import pytest
import sentencepiece
import tokenizers

from helpers.tokenizer_texts import KINDS, ODD, sentences, train_sentencepiece
from maskedlm.data.repair import repair
from maskedlm.data.tokenizers.tokenizer import load_tokenizer


def _hf_unigram(path):
  """Saves a tokenizer.json with a Unigram model; text matches "<mask>"."""
  library = tokenizers.Tokenizer(tokenizers.models.Unigram())
  library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
  library.decoder = tokenizers.decoders.Metaspace()
  names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<extra_id_0>"]
  library.train_from_iterator(
    sentences(),
    tokenizers.trainers.UnigramTrainer(
      vocab_size=600,
      special_tokens=names,
      unk_token="<unk>",
      show_progress=False,
    ),
  )
  library.save(str(path))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
  """Tokenizers of other tools whose special tokens text could forge."""
  folder = tmp_path_factory.mktemp("loaded")
  _hf_unigram(folder / "tokenizer.json")
  train_sentencepiece(
    folder / "t.model", user_defined_symbols=["<mask>", "<pad>"]
  )
  return {
    "hf_unigram": load_tokenizer(folder / "tokenizer.json"),
    "user_defined": load_tokenizer(folder / "t.model"),
  }


@pytest.fixture(scope="module", params=[*KINDS, "hf_unigram", "user_defined"])
def any_tokenizer(request, trained, loaded):
  if request.param in loaded:
    return loaded[request.param]
  return trained[request.param][0]


def test_prompts_may_contain_special_tokens(any_tokenizer):
  special = any_tokenizer.special
  sep, mask = map(any_tokenizer.tokens, (special.sep, special.mask))
  for name in (mask, "[MASK]"):
    text = f"The {name} value {name}. {sep} the"
    encoding = any_tokenizer.encode(text, specials=True)
    ids = encoding.ids.tolist()
    assert ids.count(special.mask) == 2
    assert ids.count(special.sep) == 1
    spans = encoding.offsets[np.isin(encoding.ids, [special.mask, special.sep])]
    assert [text[a:b] for a, b in spans] == [name, name, sep]
    # Text next to a mask has the same tokens as without it: no space or ▁
    # before the full stop.
    dot = any_tokenizer.encode("value.").ids.tolist()[-1]
    value = any_tokenizer.encode("value").ids.tolist()
    first, last = np.flatnonzero(encoding.ids == special.mask)
    assert ids[:first] == any_tokenizer.encode("The").ids.tolist()
    assert ids[first + 1 : last] == value
    assert ids[last + 1 : ids.index(special.sep)] == [dot]


def test_special_tokens_are_appended_to_a_plain_sentencepiece_model(tmp_path):
  train_sentencepiece(
    tmp_path / "plain.model"
  )  # <unk> <s> </s>, then 297 pieces.
  tokenizer = load_tokenizer(tmp_path / "plain.model")
  assert tokenizer.special == (300, 0, 1, 2, 301)
  assert tokenizer.vocab_size == 302
  assert [tokenizer.tokens(i) for i in (300, 301)] == ["[PAD]", "[MASK]"]
  assert tokenizer.special_ids.tolist() == [0, 1, 2, 300, 301]
  raw = sentencepiece.SentencePieceProcessor(
    model_file=str(tmp_path / "plain.model")
  )
  for text in [*ODD, "[PAD] [MASK]"]:
    assert tokenizer.encode(text).ids.tolist() == raw.encode(repair(text))
  tokenizer.save(tmp_path / "saved")
  again = load_tokenizer(tmp_path / "saved")
  assert (again.sha256, again.vocab_size) == (tokenizer.sha256, 302)
  # T5 has <pad> and </s> but no beginning of sentence.
  train_sentencepiece(
    tmp_path / "t5.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1
  )
  t5 = load_tokenizer(tmp_path / "t5.model")
  assert t5.special == (0, 2, 300, 1, 301)
