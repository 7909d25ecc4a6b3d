"""Tokens of a vocabulary that no text gives."""

import pytest
import tokenizers as library

from helpers import peers
from maskedlm.data.tokenizers.tokenizer import load_tokenizer
from maskedlm.data.tokenizers.unreachable import unreachable_tokens

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]")
GOOD = ("graft", "new", "a", "##b", "##ing", "-", "19", "中", "don", "'", "x2")
BAD = (
  *("covid-19", "naïve", "new york", "Graft", "##-19", "##中", "##ï", "a." * 9),
  "x" * 101,  # BERT's longest word has 100 characters.
)


def names(tokenizer):
  return {tokenizer.tokens(i) for i in unreachable_tokens(tokenizer)}


def test_words_that_an_uncased_wordpiece_splits_or_changes(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join([*SPECIAL, *GOOD, *BAD]) + "\n")
  beside = tmp_path / "tokenizer_config.json"
  beside.write_text('{"do_lower_case": true, "strip_accents": true}')
  assert names(load_tokenizer(path)) == {*BAD}
  # With capitals and accents, three of them are words.
  beside.write_text('{"do_lower_case": false, "strip_accents": false}')
  assert names(load_tokenizer(path)) == {*BAD} - {"naïve", "Graft", "##ï"}


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_a_trained_vocabulary_has_few(kind):
  """Tokens that only led to longer ones may be unreachable, but no word is."""
  tokenizer = peers.train_tokenizer(kind)
  found = names(tokenizer)
  text = "The function returns a list of the values, e.g. keys"
  used = {tokenizer.tokens(int(i)) for i in tokenizer.encode(text).ids}
  assert not found & used
  assert len(found) < 0.05 * tokenizer.vocab_size


def test_a_bpe_token_without_merges(tmp_path):
  model = library.models.BPE(
    {t: i for i, t in enumerate([*SPECIAL, "a", "b", "c", "ab", "abc", "Ġ"])},
    [("a", "b")],
    unk_token="[UNK]",
  )
  made = library.Tokenizer(model)
  made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
  made.decoder = library.decoders.ByteLevel()
  made.add_special_tokens(list(SPECIAL[:5]))
  made.save(str(tmp_path / "tokenizer.json"))
  assert names(load_tokenizer(tmp_path)) == {"abc"}
