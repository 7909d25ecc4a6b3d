"""The old tokens that spell a new one: small vocabularies, by hand."""

from helpers import finetune_runs as runs
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer
from maskedlm.data.tokenizers.vocabulary_map import map_vocabulary

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
OLD = (
  *SPECIAL,
  *("play", "##play", "##ing", "##in", "##g", "re", "a", ",", "##e", "un"),
)


def load(folder, tokens):
  folder.mkdir()
  (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
  return load_tokenizer(folder)


def spelled(tmp_path, new, old=OLD):
  old, new = load(tmp_path / "old", old), load(tmp_path / "new", new)
  return {
    new.tokens(i): [old.tokens(j) for j in ids]
    for i, ids in enumerate(map_vocabulary(old, new))
  }


def test_a_token_is_spelled_by_itself_else_by_the_longest_parts(tmp_path):
  made = spelled(
    tmp_path,
    (
      *("##ing", "[MASK]", "playing", "replay", "##play", "gin", "unplaying"),
      *("[SEP]", "[CLS]", "[PAD]", "[UNK]", "play", "##un", "##ine"),
    ),
  )
  assert made == {
    "##ing": ["##ing"],
    "[MASK]": ["[MASK]"],
    "playing": ["play", "##ing"],
    "replay": ["re", "##play"],
    "##play": ["##play"],
    # No old "g" begins a word, so the one within words is used.
    "gin": ["##g", "##in"],
    "unplaying": ["un", "##play", "##ing"],
    "[SEP]": ["[SEP]"],
    "[CLS]": ["[CLS]"],
    "[PAD]": ["[PAD]"],
    "[UNK]": ["[UNK]"],
    "play": ["play"],
    "##un": ["un"],  # And vice versa.
    "##ine": ["##in", "##e"],
  }


def test_characters_without_a_token_are_skipped(tmp_path):
  made = spelled(tmp_path, (*SPECIAL, "rezplay", "##zz", "ω", "[unused7]"))
  assert made["rezplay"] == ["re", "##play"]
  assert made["##zz"] == made["ω"] == made["[unused7]"] == []


def test_special_tokens_map_by_role_not_by_name():
  wordpiece, unigram = trained("wordpiece", 90), trained("unigram", 50)
  origins = map_vocabulary(unigram, wordpiece)
  assert [origins[i] for i in wordpiece.special] == [
    (i,) for i in unigram.special
  ]


def trained(kind, vocab_size):
  return train_tokenizer(
    runs.TEXTS, kind=kind, vocab_size=vocab_size, lowercase=True
  )


def with_bytes():
  return train_tokenizer(
    runs.TEXTS,
    kind="unigram",
    vocab_size=300,
    lowercase=False,
    byte_fallback=True,
  )


def test_a_character_without_a_token_is_spelled_by_its_bytes(tmp_path):
  """ß is C3 9F, ł is C5 82. Byte-level BPE writes A0 as ł, C3 as Ã."""
  new = load(tmp_path / "new", (*SPECIAL, "##ß", "ł", "ßt"))
  for old, expected in (
    (trained("bpe", 270), {"##ß": "Ã Ł", "ł": "Å Ĥ", "ßt": "Ã Ł t"}),
    (
      with_bytes(),
      {"##ß": "<0xC3> <0x9F>", "ł": "<0xC5> <0x82>", "ßt": "<0xC3> <0x9F> t"},
    ),
  ):
    origins = map_vocabulary(old, new)
    made = {new.tokens(i): origins[i] for i in range(5, 8)}
    for token, spelling in expected.items():
      assert " ".join(map(old.tokens, made[token])) == spelling
