"""Tokenizers: ids are the libraries', offsets and words are ours."""

import collections
import importlib
import json
import logging
import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tokenizers

from maskedlm.core.errors import CorpusError
from maskedlm.data.tokenizers import training
from maskedlm.data.tokenizers.tokenizer import (
  __file__,
  load_tokenizer,
  train_tokenizer,
)

ODD = [
  "Plain words, with punctuation: don't stop-it (U.S., $3.50)!",
  "NFC caf\u00e9 na\u00efve \u1ec7 \u00c5",
  "NFD cafe\u0301 nai\u0308ve e\u0323\u0302 A\u030a",
  "a\u0301\u0302\u0303\u0304 many marks \u0301alone",
  "\U0001f600\U0001f469\u200d\U0001f467 emoji \U0001f44d\U0001f3fd\u2764\ufe0f",
  "日本語です 中文，标点。 한국어 한국어",
  "مرحبا بالعالم שלום עולם mixed",
  "हिन्दी में ไทย Straße İstanbul",
  "\ufb01ne \u00bd \u2460 \u337f \ufb03 wide ＡＢＣ",
  "▁odd ##ing Ġx ĊĀ",
  "NUL a\x00b and \x07 controls",
]
STRANGE = [
  "",
  " ",
  "\n",
  "\t \r\n",
  "\x00",
  "\ud800",
  "a\ud800\udfffb",
  "\u0301",
]
# Words begin at the same whitespace for both.
SPACED = [(kind, low) for kind in ("bpe", "unigram") for low in (True, False)]
KINDS = [("wordpiece", True), ("wordpiece", False), *SPACED]


def _sentences():
  """English of the standard library, twice the odd lines among it."""
  lines = []
  for name in ("argparse", "decimal", "logging", "random", "statistics"):
    module = importlib.import_module(name)
    for thing in (module, *vars(module).values()):
      lines += (getattr(thing, "__doc__", None) or "").splitlines()
  return lines + 2 * ODD


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """(kind, lowercase) -> (tokenizer, the directory it is saved in)."""
  made = {}
  for kind, lowercase in KINDS:
    tokenizer = train_tokenizer(
      _sentences(), kind=kind, vocab_size=1009, lowercase=lowercase
    )
    folder = tmp_path_factory.mktemp(f"{kind}{lowercase}")
    tokenizer.save(folder)
    made[kind, lowercase] = tokenizer, folder
  return made


def _library_ids(folder, text):
  """What the raw library gives for a saved tokenizer."""
  if (folder / "tokenizer.json").exists():
    raw = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    raw.encode_special_tokens = True  # As text.
    return raw.encode(text, add_special_tokens=False).ids
  model = str(folder / "tokenizer.model")
  return sentencepiece.SentencePieceProcessor(model_file=model).encode(text)


def _words(text, encoding):
  """The text of each word, from its tokens' spans."""
  spans = {}
  for (a, b), word in zip(encoding.offsets, encoding.word_ids, strict=True):
    first, last = spans.get(word, (a, b))
    spans[word] = min(a, first), max(b, last)
  assert list(spans) == list(range(len(spans)))
  return [text[a:b] for a, b in spans.values()]


def _spelling(tokenizer, encoding):
  return [tokenizer.tokens(index) for index in encoding.ids]


# --- Ids ------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_ids_are_the_librarys_own(trained, kind, lowercase):
  tokenizer, folder = trained[kind, lowercase]
  texts = [*ODD, "a [MASK]b <mask>.[SEP] </s> [PAD][UNK]<unk>"]
  batch = tokenizer.encode_batch(texts)
  for text, ids in zip(texts, batch, strict=True):
    encoding = tokenizer.encode(text)
    assert encoding.ids.tolist() == ids.tolist() == _library_ids(folder, text)
    assert {array.dtype for array in (ids, *encoding)} == {np.dtype(np.int32)}
    assert encoding.offsets.shape == (len(ids), 2)


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_vocab_file_gives_berts_ids(trained, tmp_path, lowercase):
  trained_one, _ = trained["wordpiece", lowercase]
  vocab = tmp_path / "vocab.txt"
  lines = [trained_one.tokens(i) for i in range(trained_one.vocab_size)]
  vocab.write_text("\n".join(lines) + "\n", encoding="utf-8")
  tokenizer = load_tokenizer(vocab)  # The case is inferred.
  peer = tokenizers.BertWordPieceTokenizer(str(vocab), lowercase=lowercase)
  for text in ODD:
    expected = peer.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text).ids.tolist() == expected
  assert tokenizer.vocab_size == 1009
  assert tokenizer.special == (0, 1, 2, 3, 4)


def test_ids_are_those_of_transformers(trained, tmp_path):
  transformers = pytest.importorskip("transformers")
  tokenizer, folder = trained["wordpiece", True]
  peer = transformers.PreTrainedTokenizerFast(
    tokenizer_file=str(folder / "tokenizer.json")
  )
  for text in ODD:
    with_specials = peer(text)["input_ids"]
    assert with_specials[1:-1] == tokenizer.encode(text).ids.tolist()
    assert [with_specials[0], with_specials[-1]] == [2, 3]


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_strange_text_is_no_error(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  batch = tokenizer.encode_batch(STRANGE)
  for text, ids in zip(STRANGE, batch, strict=True):
    encoding = tokenizer.encode(text)
    assert encoding.ids.tolist() == ids.tolist()
    assert (encoding.offsets >= 0).all()
    assert (encoding.offsets <= len(text)).all()
    tokenizer.decode(ids)
  assert tokenizer.encode("").offsets.shape == (0, 2)
  assert tokenizer.encode_batch([]) == []
  assert tokenizer.decode([]) == ""


@pytest.mark.parametrize(("kind", "lowercase"), KINDS[1::2])
def test_a_megabyte_without_spaces(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  text = "abcdefg" * 150_000
  encoding = tokenizer.encode(text)
  assert encoding.offsets[0, 0] == 0
  assert encoding.offsets[-1, 1] == 1_050_000
  assert encoding.word_ids[-1] == 0
  if kind == "wordpiece":
    assert encoding.ids.tolist() == [tokenizer.special.unk]


# --- Offsets and words ----------------------------------------------------


def _plain(text, lowercase):
  """What BERT's normalizer leaves of the text."""
  if lowercase:
    text = unicodedata.normalize("NFD", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Mn").lower()
  return "".join(c for c in text if unicodedata.category(c)[0] != "C")


@pytest.mark.parametrize("lowercase", [True, False])
def test_wordpiece_spans_are_the_tokens(trained, lowercase):
  tokenizer, _ = trained["wordpiece", lowercase]
  checked = 0
  for text in ODD:
    text = text.replace("한국어", "")  # BERT splits syllables into letters.
    encoding = tokenizer.encode(text)
    for token, (a, b) in zip(
      _spelling(tokenizer, encoding), encoding.offsets, strict=True
    ):
      if token != "[UNK]":
        assert _plain(text[a:b], lowercase) == token.removeprefix("##")
        checked += 1
  assert checked > 100


def test_wordpiece_words(trained):
  tokenizer, folder = trained["wordpiece", True]
  text = " Don't na\u00efve na\u0131\u0308ve,中文 \U0001f600x?"
  assert _words(text, tokenizer.encode(text)) == [
    *("Don", "'", "t", "na\u00efve", "na\u0131\u0308ve", ","),
    *("中", "文", "\U0001f600x", "?"),
  ]
  raw = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  for text in ODD:
    peer = raw.encode(text, add_special_tokens=False)
    assert tokenizer.encode(text).word_ids.tolist() == peer.word_ids


@pytest.mark.parametrize(("kind", "lowercase"), SPACED)
def test_spaced_words(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  for text in ODD[:9]:
    text = text.replace("\u0301alone", "alone")  # A word begins with a letter.
    assert _words(text, tokenizer.encode(text)) == text.split()
  text = "  two  spaces\u00e9 "
  words = [word for word in _words(text, tokenizer.encode(text)) if word]
  assert words == ["two", "spaces\u00e9"]


@pytest.mark.parametrize(("kind", "lowercase"), KINDS)
def test_words_begin_where_starts_word_says(trained, kind, lowercase):
  tokenizer, _ = trained[kind, lowercase]
  for text in ODD:
    encoding = tokenizer.encode(text)
    begins = np.diff(encoding.word_ids, prepend=-1)
    starts = tokenizer.starts_word[encoding.ids]
    assert begins[1:].tolist() == starts[1:].tolist()
    assert begins[0] == 1
  assert tokenizer.starts_word.shape == (1009,)


def test_a_stripped_mark_stays_with_its_letter(trained):
  text = "re\u0301sume\u0301 e\u0323\u0302\u0301x"
  for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer, _ = trained[kind, True]
    encoding = tokenizer.encode(text)
    assert _words(text, encoding) == text.split()
    # No character is in two tokens, none but the space is in none.
    assert encoding.offsets[:, 0].tolist() == [
      begin + (begin == 8) for begin in [0, *encoding.offsets[:-1, 1]]
    ]


def test_nfc_and_nfd_have_the_same_tokens_over_their_own_text(trained):
  nfc, nfd = "caf\u00e9s \u1ec7", "cafe\u0301s e\u0323\u0302"
  for key in (("wordpiece", True), ("unigram", True), ("unigram", False)):
    tokenizer, _ = trained[key]
    one, other = tokenizer.encode(nfc), tokenizer.encode(nfd)
    assert one.ids.tolist() == other.ids.tolist()
    assert _words(nfc, one) == ["caf\u00e9s", "\u1ec7"]
    assert _words(nfd, other) == ["cafe\u0301s", "e\u0323\u0302"]


def test_a_split_character_belongs_to_all_its_tokens(trained):
  tokenizer, _ = trained["bpe", False]
  encoding = tokenizer.encode("a \U0001f9ec!")  # Four bytes, never merged.
  assert encoding.offsets.tolist() == [[0, 1], [2, 2], *4 * [[2, 3]], [3, 4]]
  tokenizer, _ = trained["unigram", False]
  encoding = tokenizer.encode("x \u00be.")  # NFKC: 3, fraction slash, 4.
  assert _spelling(tokenizer, encoding)[-2:] == ["4", "."]
  assert encoding.offsets[-4:].tolist() == [[2, 3], [2, 3], [2, 3], [3, 4]]


def test_byte_pieces_of_sentencepiece_have_the_whole_character(tmp_path):
  _spm(tmp_path / "bytes.model", vocab_size=400, byte_fallback=True)
  tokenizer = load_tokenizer(tmp_path / "bytes.model")
  encoding = tokenizer.encode("a \U0001f9ecé")
  assert encoding.offsets.tolist() == [
    *([0, 1], [2, 2]),
    *4 * [[2, 3]],
    *2 * [[3, 4]],
  ]
  assert tokenizer.decode(encoding.ids) == "a \U0001f9ecé"


def test_byte_level_bpe_loses_nothing(trained):
  tokenizer, _ = trained["bpe", False]
  for text in ODD:
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_decode_shows_special_tokens(trained):
  for key in KINDS:
    tokenizer, _ = trained[key]
    ids = tokenizer.encode("the value").ids.tolist()
    special = tokenizer.special
    text = tokenizer.decode([special.cls, *ids, special.mask, special.sep])
    for index in (special.cls, special.mask, special.sep):
      assert tokenizer.tokens(index) in text
    assert "the value" in text
    with pytest.raises(CorpusError, match=r"from 3 to 1009.* 0 to 1008"):
      tokenizer.decode([3, 1009])


# --- Special tokens -------------------------------------------------------


def _spm(path, **options):
  """A sentencepiece model as others train it: no pad, no mask."""
  with path.open("wb") as file:
    sentencepiece.SentencePieceTrainer.Train(
      sentence_iterator=iter(_sentences()),
      model_writer=file,
      minloglevel=2,
      **{"vocab_size": 300, "character_coverage": 0.98, **options},
    )


def _hf_unigram(path):
  """A tokenizer.json with a Unigram model, whose text matches "<mask>"."""
  library = tokenizers.Tokenizer(tokenizers.models.Unigram())
  library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
  library.decoder = tokenizers.decoders.Metaspace()
  names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<extra_id_0>"]
  library.train_from_iterator(
    _sentences(),
    tokenizers.trainers.UnigramTrainer(
      vocab_size=600,
      special_tokens=names,
      unk_token="<unk>",
      show_progress=False,
    ),
  )
  library.save(str(path))
  return library


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
  """Tokenizers that others made and that text could forge."""
  folder = tmp_path_factory.mktemp("loaded")
  _hf_unigram(folder / "tokenizer.json")
  _spm(folder / "t.model", user_defined_symbols=["<mask>", "<pad>"])
  return {
    "hf_unigram": load_tokenizer(folder / "tokenizer.json"),
    "user_defined": load_tokenizer(folder / "t.model"),
  }


@pytest.fixture(scope="module", params=[*KINDS, "hf_unigram", "user_defined"])
def any_tokenizer(request, trained, loaded):
  if request.param in loaded:
    return loaded[request.param]
  return trained[request.param][0]


def test_text_does_not_forge_special_tokens(any_tokenizer):
  special = any_tokenizer.special
  names = [any_tokenizer.tokens(index) for index in any_tokenizer.special_ids]
  text = "a " + " ".join(names) + " [MASK]b[SEP]. " + "".join(names)
  encoding = any_tokenizer.encode(text)
  present = set(encoding.ids.tolist()) - {special.unk}
  assert not present & set(any_tokenizer.special_ids.tolist())
  batch = any_tokenizer.encode_batch(["x", text, "y"])
  assert batch[1].tolist() == encoding.ids.tolist()
  assert encoding.offsets[0].tolist() == [0, 1]
  assert encoding.offsets[-1, 1] == len(text)


def test_special_tokens_are_read_when_asked(any_tokenizer):
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
    # What stands beside a mask is spelt as in the text that it hides: no
    # space or ▁ before the full stop.
    dot = any_tokenizer.encode("value.").ids.tolist()[-1]
    value = any_tokenizer.encode("value").ids.tolist()
    first, last = np.flatnonzero(encoding.ids == special.mask)
    assert ids[:first] == any_tokenizer.encode("The").ids.tolist()
    assert ids[first + 1 : last] == value
    assert ids[last + 1 : ids.index(special.sep)] == [dot]


def test_masks_side_by_side_and_at_the_ends(any_tokenizer):
  mask = any_tokenizer.special.mask
  encoding = any_tokenizer.encode("[MASK][MASK] [MASK]", specials=True)
  assert encoding.ids.tolist() == 3 * [mask]
  assert encoding.offsets.tolist() == [[0, 6], [6, 12], [13, 19]]
  assert encoding.word_ids.tolist() == [0, 1, 2]


def test_specials_of_trained_tokenizers(trained):
  names = {
    "wordpiece": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    "bpe": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "unigram": ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"],
  }
  for (kind, _), (tokenizer, _) in trained.items():
    assert [tokenizer.tokens(i) for i in range(5)] == names[kind]
    assert sorted(tokenizer.special) == tokenizer.special_ids.tolist()
    assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4]
    assert tokenizer.vocab_size == 1009
    pad, unk, cls, sep, mask = map(tokenizer.tokens, tokenizer.special)
    assert (pad[1:-1] + unk[1:-1]).lower() == "padunk"
    assert cls in ("[CLS]", "<s>")
    assert sep in ("[SEP]", "</s>")
    assert mask[1:-1].lower() == "mask"


def test_a_plain_sentencepiece_model_gets_its_specials_appended(tmp_path):
  _spm(tmp_path / "plain.model")  # <unk> <s> </s>, then 297 pieces.
  tokenizer = load_tokenizer(tmp_path / "plain.model")
  assert tokenizer.special == (300, 0, 1, 2, 301)
  assert tokenizer.vocab_size == 302
  assert [tokenizer.tokens(i) for i in (300, 301)] == ["[PAD]", "[MASK]"]
  assert tokenizer.special_ids.tolist() == [0, 1, 2, 300, 301]
  raw = sentencepiece.SentencePieceProcessor(
    model_file=str(tmp_path / "plain.model")
  )
  for text in [*ODD, "[PAD] [MASK]"]:
    assert tokenizer.encode(text).ids.tolist() == raw.encode(text)
  tokenizer.save(tmp_path / "saved")
  again = load_tokenizer(tmp_path / "saved")
  assert (again.sha256, again.vocab_size) == (tokenizer.sha256, 302)
  # T5 has <pad> and </s> but no beginning of sentence.
  _spm(tmp_path / "t5.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
  t5 = load_tokenizer(tmp_path / "t5.model")
  assert t5.special == (0, 2, 300, 1, 301)


def test_missing_special_tokens_are_named(tmp_path):
  vocab = tmp_path / "vocab.txt"
  vocab.write_text("[PAD]\n[UNK]\n[CLS]\nthe\n")
  with pytest.raises(CorpusError, match=r"vocab.txt.* sep \(\[SEP\]\), mask"):
    load_tokenizer(vocab)
  library = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
  library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
  library.add_special_tokens(["<s>", "</s>", "<unk>", "<pad>"])
  library.save(str(tmp_path / "tokenizer.json"))
  with pytest.raises(CorpusError, match=r"for mask \(\[MASK\] or <mask>\);"):
    load_tokenizer(tmp_path)


# --- Files ----------------------------------------------------------------


def test_a_saved_tokenizer_takes_the_place_of_another_kind(trained, tmp_path):
  for kind in ("wordpiece", "unigram", "wordpiece"):
    made, _ = trained[kind, True]
    made.save(tmp_path)
    assert load_tokenizer(tmp_path).sha256 == made.sha256


SPECIALS = "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


def test_a_vocab_file_line_by_line(tmp_path):
  vocab = tmp_path / "vocab.txt"
  # Windows line ends, a byte order mark, a blank and a repeated line.
  content = "\ufeff" + SPECIALS + "the\n\nthe\n\u2028x\ncat\n##s\n"
  vocab.write_bytes(content.replace("\n", "\r\n").encode())
  tokenizer = load_tokenizer(vocab)
  assert tokenizer.vocab_size == 13
  assert tokenizer.encode("The cats").ids.tolist() == [9, 11, 12]
  assert tokenizer.special == (0, 3, 4, 5, 6)
  assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
  assert tokenizer.starts_word.tolist() == 12 * [True] + [False]
  assert tokenizer.encode("[unused0]").ids.tolist() == [3, 3, 3]


def test_the_case_of_a_vocab_file(tmp_path):
  vocab = tmp_path / "vocab.txt"
  vocab.write_text(SPECIALS + "the\nThe\n")
  assert load_tokenizer(vocab).encode("The").ids.tolist() == [8]
  low = load_tokenizer(vocab, lowercase=True)
  assert low.encode("The").ids.tolist() == [7]
  (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
  assert load_tokenizer(tmp_path).encode("The").ids.tolist() == [7]
  assert load_tokenizer(tmp_path).sha256 == low.sha256


@pytest.mark.parametrize(
  "stated",
  [
    {"do_lower_case": True, "strip_accents": False},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "tokenize_chinese_chars": False},
    {"do_lower_case": True, "strip_accents": None},
  ],
)
def test_what_is_stated_beside_a_vocab_file_counts(tmp_path, stated):
  transformers = pytest.importorskip("transformers")
  words = "bär\nbar\nBär\nBar\nder\nDer\ncafé\ncafe\n中\n中国\n国\n"
  (tmp_path / "vocab.txt").write_text(SPECIALS + words)
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
  peer = transformers.BertTokenizer.from_pretrained(tmp_path)
  made = load_tokenizer(tmp_path)
  text = "Der Bär café 中国"
  expected = peer(text, add_special_tokens=False)["input_ids"]
  assert made.encode(text).ids.tolist() == expected


def test_settings_of_other_tools_are_ignored(trained, tmp_path):
  tokenizer, folder = trained["bpe", False]
  raw = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
  raw.enable_truncation(3)
  raw.enable_padding(length=7)
  raw.save(str(tmp_path / "tokenizer.json"))
  again = load_tokenizer(tmp_path)
  assert again.sha256 == tokenizer.sha256
  assert (
    again.encode(ODD[0]).ids.tolist() == tokenizer.encode(ODD[0]).ids.tolist()
  )


def test_robertas_way_without_a_space_before_the_text(trained, tmp_path):
  _, folder = trained["bpe", False]
  definition = json.loads((folder / "tokenizer.json").read_text())
  definition["pre_tokenizer"]["add_prefix_space"] = False
  (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
  tokenizer = load_tokenizer(tmp_path)
  raw = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
  for text in ODD:
    expected = raw.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text).ids.tolist() == expected
  prompt = "The<mask>, the <mask> value</s>"
  encoding = tokenizer.encode(prompt, specials=True)
  assert (
    encoding.ids.tolist() == raw.encode(prompt, add_special_tokens=False).ids
  )
  assert _words("the value", tokenizer.encode("the value")) == ["the", "value"]


def _break(folder, name, content):
  (folder / name).write_bytes(content)
  return folder / name


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("tokenizer.json", b"", "broken JSON"),
    ("tokenizer.json", b"[1, 2]", "not an object"),
    ("tokenizer.json", b'{"version": "1.0"}', "not a usable tokenizer.json"),
    ("tokenizer.json", b"\xff\xfe", "broken JSON"),
    ("t.model", b"", "not a sentencepiece model"),
    ("t.model", b"garbage" * 99, "not a sentencepiece model"),
    ("vocab.txt", b"\xff\xfe[PAD]", "not UTF-8"),
    ("vocab.txt", b"", "no special token for pad"),
    ("tokenizer.pkl", b"x", "must end in .json"),
  ],
)
def test_broken_files(tmp_path, name, content, message):
  with pytest.raises(CorpusError, match=message) as error:
    load_tokenizer(_break(tmp_path, name, content))
  assert name in str(error.value)
  assert "\n" not in str(error.value)


def test_truncated_and_missing_files(trained, tmp_path):
  for key, name in (
    (("bpe", False), "tokenizer.json"),
    (("unigram", False), "tokenizer.model"),
  ):
    content = (trained[key][1] / name).read_bytes()
    for size in (100, len(content) // 2, len(content) - 1):
      with pytest.raises(CorpusError, match=name):
        load_tokenizer(_break(tmp_path, name, content[:size]))
  with pytest.raises(CorpusError, match="No such file"):
    load_tokenizer(tmp_path / "none" / "vocab.txt")
  (tmp_path / "empty").mkdir()
  with pytest.raises(CorpusError, match=r"has no tokenizer\.json"):
    load_tokenizer(tmp_path / "empty")


def test_models_that_do_not_say_where_words_begin_are_refused(tmp_path):
  names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a</w>"]
  vocab = {name: index for index, name in enumerate(names)}
  path = tmp_path / "tokenizer.json"
  suffixed = tokenizers.models.BPE(vocab, [], end_of_word_suffix="</w>")
  tokenizers.Tokenizer(suffixed).save(str(path))
  with pytest.raises(CorpusError, match="which tokens begin a word"):
    load_tokenizer(path)
  whole_words = tokenizers.models.WordLevel(vocab, unk_token="[UNK]")
  tokenizers.Tokenizer(whole_words).save(str(path))
  with pytest.raises(CorpusError, match="its model is wordlevel; expected"):
    load_tokenizer(path)


# --- Training -------------------------------------------------------------

SCRIPT = """
import multiprocessing, sys
from maskedlm.data.tokenizers import tokenizer
from tests.data.tokenizers import test_tokenizer as t

def ids(folder):
  return [i.tolist() for i in tokenizer.load(folder).encode_batch(t.ODD)]

if __name__ == "__main__":
  for kind, lowercase in t.KINDS:
    folder = f"{sys.argv[1]}/{kind}{lowercase}"
    new = tokenizer.train_tokenizer(
      t._sentences(), kind=kind, vocab_size=1009, lowercase=lowercase)
    new.save(folder)
    expected = [i.tolist() for i in new.encode_batch(t.ODD)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
      assert pool.map(ids, [folder] * 4) == [expected] * 4
    print(new.sha256)
  assert "jax" not in sys.modules
"""


def test_another_process_trains_the_same_and_is_quiet(trained, tmp_path):
  script = tmp_path / "script.py"
  script.write_text(SCRIPT)
  root = __file__.rsplit(os.sep, 4)[0]
  done = subprocess.run(
    [sys.executable, str(script), str(tmp_path)],
    env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": "12345"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.stderr == ""
  assert done.stdout.split() == [trained[key][0].sha256 for key in KINDS]
  for key in KINDS:
    tokenizer, folder = trained[key]
    assert load_tokenizer(folder).sha256 == tokenizer.sha256
  assert len({trained[key][0].sha256 for key in KINDS}) == 6


def test_lowercase_strips_accents_in_all_kinds(trained):
  for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer, _ = trained[kind, True]
    text = "The CAF\u00c9 cafe\u0301 \u0130"
    assert tokenizer.decode(tokenizer.encode(text).ids) == "the cafe cafe i"


def test_a_sample_is_every_kth_sentence():
  lines = [f"sentence {i}" for i in range(10)]  # 10 bytes each.
  assert training.sample_sentences(iter(lines), None) == lines
  assert training.sample_sentences(iter(lines), 100) == lines
  assert training.sample_sentences(iter(lines), 99) == lines[::2]
  assert training.sample_sentences(iter(lines), 40) == lines[::4]
  assert training.sample_sentences(["é" * 5] * 4, 29) == ["é" * 5] * 2
  assert training.sample_sentences(["x" * 25_000], None) == [
    *2 * ["x" * 10_000],
    "x" * 5_000,
  ]


def test_training_says_what_is_wrong():
  def train(**options):
    usual = {"kind": "wordpiece", "vocab_size": 500, "lowercase": True}
    return train_tokenizer(_sentences(), **(usual | options))

  with pytest.raises(CorpusError, match='did you mean "wordpiece"'):
    train(kind="word_piece")
  for kind, size, least in (
    ("wordpiece", 8, "9"),
    ("bpe", 260, "261"),
    ("unigram", 9, r"\d+, the characters"),
  ):
    with pytest.raises(CorpusError, match=f"={size} is too small.* {least}"):
      train(kind=kind, vocab_size=size)
  for kind in ("wordpiece", "bpe", "unigram"):
    with pytest.raises(CorpusError, match="no text"):
      train_tokenizer(["", "  \n"], kind=kind, vocab_size=500, lowercase=True)


def test_a_vocabulary_that_the_text_cannot_fill(caplog):
  lines = ["the cat sat on the mat"] * 5
  for kind in ("wordpiece", "bpe"):
    with caplog.at_level(logging.WARNING):
      tokenizer = train_tokenizer(
        lines, kind=kind, vocab_size=900, lowercase=True
      )
    assert (
      f"=900 is more than this text gives; it has {tokenizer.vocab_size}"
      in (caplog.messages[-1])
    )
    ids = tokenizer.encode_batch(lines)[0]
    assert ids.max() < tokenizer.vocab_size == len(tokenizer.starts_word)
    assert len(ids) == 6  # Each word is one token.
  with pytest.raises(CorpusError, match=r"=900 .* at most (\d+);") as error:
    train_tokenizer(lines, kind="unigram", vocab_size=900, lowercase=True)
  largest = int(str(error.value).split("at most ")[1].split(";")[0])
  tokenizer = train_tokenizer(
    lines, kind="unigram", vocab_size=largest, lowercase=True
  )
  assert tokenizer.vocab_size == largest


def test_the_alphabet_is_the_commonest_characters(monkeypatch):
  counts = collections.Counter({"z": 99_980, "b": 10, "y": 5, "x": 4, "c": 1})
  alphabet = training._alphabet
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "c", "x", "y", "z"]
  assert alphabet(counts, 0.9999, max_size=3) == ["b", "y", "z"]
  assert alphabet(collections.Counter("bca"), 0.9999, max_size=2) == ["a", "b"]
  monkeypatch.setattr(training, "MIN_ALPHABET", 1)
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "z"]  # 99.99%.
  counts["b"] -= 1
  assert alphabet(counts, 0.9999, max_size=9) == ["b", "y", "z"]


def test_rare_characters_leave_room_in_a_small_vocabulary():
  rare = [chr(0x4E00 + i) for i in range(3_000)]
  lines = ["plain words fill it"] * 2_000 + rare
  tokenizer = train_tokenizer(
    lines, kind="wordpiece", vocab_size=60, lowercase=False
  )
  assert tokenizer.special.unk not in tokenizer.encode("plain words").ids
  tokens = [tokenizer.tokens(index) for index in range(tokenizer.vocab_size)]
  # 60 // 4 characters: the letters, which are 12, and the first of the others.
  assert sum(len(token) == 1 for token in tokens) == 15
  assert {"一", "丁", "丂"} < set(tokens)
  # Chinese characters are words of their own: no "##" is spent on them.
  assert sum(len(t) == 3 and t.startswith("##") for t in tokens) == 12


def test_training_survives_any_text():
  lines = [*STRANGE, "x" * 200_000, "日本語" * 9_000, *_sentences()]
  # Spellings of special tokens, and a character sentencepiece reserves.
  lines += 500 * ["[MASK] [MASK][SEP] <mask><unk> <pad> </s> \u2585 \u2581\t"]
  for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer = train_tokenizer(
      lines, kind=kind, vocab_size=700, lowercase=True
    )
    assert tokenizer.vocab_size <= 700
    assert tokenizer.special_ids.tolist() == [0, 1, 2, 3, 4]
    ids = tokenizer.encode(lines[-1]).ids
    assert set(ids.tolist()) & set(tokenizer.special) <= {tokenizer.special.unk}
