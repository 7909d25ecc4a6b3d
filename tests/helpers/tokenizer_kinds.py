"""Small tokenizers of every kind, with the library that each is compared with.

`make(name, folder)` writes the file NAME and returns (Tokenizer, ids), where
ids(text) calls the library itself.
"""

import json

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from helpers.tokenizer_texts import train_sentencepiece
from maskedlm.data.tokenizers.tokenizer import load_tokenizer, train_tokenizer

# Documents as lists of lines, of several scripts.
SCRIPTS = {
  "english": [
    "The old cat sees the dog. It runs!  It's Dr. Smith's dog. Why? No one",
    'knows. "He said so." (Then he left.) The end...',
  ],
  "one word": ["cat"],
  "spaces": [
    "A  double.  Two  spaces.\tA tab.\xa0A no-break space. x \u3000 y.\u2009z",
    "A\u2028line. se\u0301parator.",
  ],
  "german": ["Der Hund läuft. Die Straße ist naß. Über Äpfel, Öl usw. Ja!"],
  "chinese": ["我们学习。老师来了！你呢？学校在ABC公司旁边。", "第二行。好。"],
  "japanese": ["学校に行きます。先生は「はい。」と言った。カタカナもある！"],
  "thai": ["เขาไปโรงเรียน ครูสอนภาษาไทย เด็กเล่น", "สวัสดี"],
  "hindi": ["लड़का स्कूल जाता है। वह पढ़ता है। क्या?"],
  "arabic": ["الولد يذهب إلى المدرسة. هو يقرأ؟ نعم!"],
  "emoji": ["Fun 😀! 👩‍👧 yes. 👍🏽❤️. 🇩🇪🇫🇷 flags.", "😀."],
  "marks": [
    "Cafe\u0301 nai\u0308ve. \u0301alone. e\u0323\u0302 A\u030a. ﬁne… ½."
  ],
  "long word": ["y" * 4_500 + " z. The cat."],
  "marks of tokens": ["▁odd. ##ing. Ġx Ċ. <0x41>. a_b▁c."],
}


def _texts():
  return ["\n".join(lines)[:500] for lines in SCRIPTS.values()] * 3 + [
    line for lines in SCRIPTS.values() for line in lines if len(line) < 500
  ]


# --- tokenizer.json ---

SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
GPT4 = (
  r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
  r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _bpe(normalizer=None, pre_tokenizer=None, *, byte_fallback=False):
  options = {"unk_token": "<unk>"}
  if byte_fallback:
    options |= {"byte_fallback": True, "fuse_unk": True}
  library = tokenizers.Tokenizer(models.BPE(**options))
  if normalizer:
    library.normalizer = normalizer
  if pre_tokenizer:
    library.pre_tokenizer = pre_tokenizer
  extra = [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []
  is_byte_level = "ByteLevel" in str(pre_tokenizer)
  library.train_from_iterator(
    _texts(),
    trainers.BpeTrainer(
      vocab_size=700,
      special_tokens=SPECIALS + extra,
      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
      if is_byte_level
      else [],
      limit_alphabet=256 if is_byte_level else 150,
      max_token_length=8,
      show_progress=False,
    ),
  )
  definition = json.loads(library.to_str())
  definition["added_tokens"] = [  # Not the bytes.
    token
    for token in definition["added_tokens"]
    if token["content"] in SPECIALS
  ]
  return tokenizers.Tokenizer.from_str(json.dumps(definition))


def _byte_level(normalizer=None, **options):
  return _bpe(normalizer, pre_tokenizers.ByteLevel(**options))


def _gpt4():
  return _bpe(
    normalizers.NFC(),
    pre_tokenizers.Sequence(
      [
        pre_tokenizers.Split(tokenizers.Regex(GPT4), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
      ]
    ),
  )


def _metaspace(scheme, split=True):
  return _bpe(
    None, pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
  )


def _llama():
  steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
  return _bpe(normalizers.Sequence(steps), byte_fallback=True)


def _gemma():
  return _bpe(normalizers.Replace(" ", "▁"), byte_fallback=True)


def _unigram(pre_tokenizer, normalizer=None, **options):
  library = tokenizers.Tokenizer(models.Unigram())
  library.normalizer = normalizer or normalizers.NFKC()
  library.pre_tokenizer = pre_tokenizer
  library.train_from_iterator(
    _texts(),
    trainers.UnigramTrainer(
      vocab_size=400,
      special_tokens=SPECIALS,
      unk_token="<unk>",
      show_progress=False,
      **options,
    ),
  )
  return library


def _added(library, *tokens, **flags):
  """Adds tokens that are not special, as those of a domain."""
  library.add_tokens([tokenizers.AddedToken(x, **flags) for x in tokens])
  return library


def _albert():
  """Strips accents and case; its two steps are those of XLM-R."""
  steps = [
    *(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
    normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
  ]
  return _unigram(
    pre_tokenizers.Sequence(
      [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    ),
    normalizers.Sequence(steps),
  )


def _deberta():
  """Strips the spaces around a text, and those that are next to others."""
  steps = [
    *(normalizers.Strip(), normalizers.NFKC()),
    normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
  ]
  return _unigram(
    pre_tokenizers.Sequence([pre_tokenizers.Metaspace()]),
    normalizers.Sequence(steps),
  )


JSON = {
  "byte-level, prefix": lambda: _byte_level(add_prefix_space=True),
  "byte-level, no prefix": lambda: _byte_level(add_prefix_space=False),
  "byte-level, nfkc": lambda: _byte_level(
    normalizers.NFKC(), add_prefix_space=False
  ),
  "byte-level, no regex": lambda: _byte_level(
    add_prefix_space=True, use_regex=False
  ),
  "byte-level, gpt-4": _gpt4,
  "metaspace, always": lambda: _metaspace("always"),
  "metaspace, first": lambda: _metaspace("first"),
  "metaspace, never": lambda: _metaspace("never"),
  "metaspace, one piece": lambda: _metaspace("always", split=False),
  "llama": _llama,
  "gemma": _gemma,
  "byte-level, runs of spaces": lambda: _added(
    _byte_level(normalizers.NFC(), add_prefix_space=False),
    *("  ", "   ", "ABC", "his"),
    normalized=True,
  ),
  "gemma, runs of marks": lambda: _added(
    _gemma(), "\n\n", "▁▁", "▁▁▁", "his", normalized=False
  ),
  "albert": _albert,
  "deberta": _deberta,
  "unigram": lambda: _unigram(pre_tokenizers.Metaspace()),
  "unigram, words": lambda: _unigram(
    pre_tokenizers.Sequence(
      [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
  ),
}

# --- sentencepiece ---

MODELS = {
  "sentencepiece unigram": {"model_type": "unigram"},
  "sentencepiece unigram, no prefix": {"add_dummy_prefix": False},
  "sentencepiece unigram, across spaces": {"split_by_whitespace": False},
  "sentencepiece unigram, as it is": {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
  },
  "sentencepiece unigram, bytes": {"byte_fallback": True, "vocab_size": 600},
  "sentencepiece bpe": {"model_type": "bpe", "vocab_size": 500},
  "sentencepiece bpe, gemma": {
    "model_type": "bpe",
    "vocab_size": 700,
    "byte_fallback": True,
    "add_dummy_prefix": False,
    "remove_extra_whitespaces": False,
    "normalization_rule_name": "identity",
    "split_by_whitespace": False,
  },
  "sentencepiece char": {"model_type": "char", "vocab_size": 120},
}
WORDPIECE = ("wordpiece", "wordpiece, lowercase")
NAMES = [*WORDPIECE, *JSON, *MODELS]


def make(name, folder):
  """Returns the tokenizer NAME, and text -> the ids of its library."""
  if name in MODELS:
    path = folder / "m.model"
    train_sentencepiece(path, **MODELS[name])
    # The pieces that load_tokenizer appends don't change the others.
    made = load_tokenizer(path)
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return made, lambda text: library.encode(text)
  if name in WORDPIECE:
    made = train_tokenizer(
      _texts() * 2,
      kind="wordpiece",
      vocab_size=500,
      lowercase=name != "wordpiece",
    )
    made.save(folder)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  else:
    path = folder / "tokenizer.json"
    JSON[name]().save(str(path))
    made = load_tokenizer(path)
    library = tokenizers.Tokenizer.from_file(str(path))
  library.encode_special_tokens = True
  return made, lambda text: library.encode(text, add_special_tokens=False).ids
